/// @file The slots of one piece in every storage, as the tests of updates keep them.
#pragma once

#include "kernels/update.h"
#include "random.h"
#include "storage.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

namespace zero::kernels::test {

/// How the slots of one piece are stored.
struct Storage {
  DType param;
  DType grad;
  bool has_master;
  DType master;
  DType first;
  DType second;
  bool averages;
  bool stochastic;

  bool has_remainder() const { return has_master && master == DType::u16; }
};

inline std::string text(const Storage &storage) {
  return std::string("param ") + dtype_name(storage.param) + " grad " + dtype_name(storage.grad) + " master " +
         (storage.has_master ? dtype_name(storage.master) : "none") + " states " + dtype_name(storage.first) + " " +
         dtype_name(storage.second) + (storage.averages ? " average" : "") + (storage.stochastic ? " stochastic" : "");
}

inline constexpr DType kFirsts[] = {DType::f32, DType::bf16, DType::f8e4m3};
inline constexpr DType kSeconds[] = {DType::f32, DType::bf16, DType::f8ue5m3};

inline void add_storages(DType param, DType grad, bool has_master, DType master, std::vector<Storage> &storages) {
  for (const DType first : kFirsts) {
    for (const DType second : kSeconds) {
      for (const bool averages : {false, true}) {
        for (const bool stochastic : {false, true})
          storages.push_back({param, grad, has_master, master, first, second, averages, stochastic});
      }
    }
  }
}

inline std::vector<Storage> all_storages() {
  std::vector<Storage> storages;
  for (const DType param : {DType::f32, DType::f16, DType::bf16}) {
    for (const DType grad : {DType::f32, DType::f16, DType::bf16}) {
      add_storages(param, grad, false, DType::f32, storages);
      add_storages(param, grad, true, DType::f32, storages);
      if (param == DType::bf16) add_storages(param, grad, true, DType::u16, storages);
    }
  }
  return storages;
}

inline constexpr uint64_t kFirst = (uint64_t{1} << 35) + 7 * kLine;  ///< place of the first element

/// The slots of one piece.
struct Model {
  Stored param, grad, master, first, second, average;
  Storage storage;
  int64_t count;

  Model(const Storage &how, int64_t elements)
      : param(how.param, elements),
        grad(how.grad, elements),
        master(how.master, elements),
        first(how.first, elements),
        second(how.second, elements),
        average(DType::f32, elements),
        storage(how),
        count(elements) {}

  /// The fp32 value that is updated.
  float kept(int64_t i) const {
    if (!storage.has_master) return param.get(i);
    if (!storage.has_remainder()) return master.get(i);
    const int32_t difference = static_cast<int16_t>(master.get_bits(i));
    return std::bit_cast<float>((uint32_t{param.get_bits(i)} << 16) + static_cast<uint32_t>(difference));
  }

  void keep(int64_t i, float value, const uint32_t *random) {
    const auto bits = std::isnan(value) ? 0x7fc00000U : std::bit_cast<uint32_t>(value);
    if (storage.has_remainder()) {
      param.set(i, round_away(value));
      master.set_bits(i, static_cast<uint16_t>(bits));
    } else if (storage.has_master) {
      param.set_nearest(i, value);
      master.set(i, value);
    } else {
      param.set_rounded(i, value, random);
    }
  }

  UpdateSegment piece() {
    UpdateSegment result;
    result.param = {param.data(), storage.param};
    if (storage.has_master) result.master = {master.data(), storage.master};
    result.grad = {grad.data(), storage.grad};
    result.state[0] = {first.data(), storage.first, first.scales()};
    result.state[1] = {second.data(), storage.second, second.scales()};
    if (storage.averages) result.average = {average.data(), DType::f32};
    result.count = count;
    result.first = kFirst;
    return result;
  }

  friend bool operator==(const Model &a, const Model &b) {
    return a.param == b.param && a.grad == b.grad && a.master == b.master && a.first == b.first && a.second == b.second &&
           a.average == b.average;
  }
};

inline Model random_model(Random &random, const Storage &storage, int64_t count, bool special) {
  Model model(storage, count);
  const auto value = [&] {
    return special ? double{std::bit_cast<float>(static_cast<uint32_t>(random.special_bits(32, 23)))} : double{random.value(12)};
  };
  for (int64_t i = 0; i < count; ++i) {
    model.keep(i, static_cast<float>(value()), nullptr);
    model.grad.set_nearest(i, value());
    model.average.set(i, value());
  }
  std::vector<float> first(static_cast<size_t>(count));
  std::vector<float> second(first.size());
  for (float &element : first) element = static_cast<float>(value());
  for (float &element : second) element = std::fabs(static_cast<float>(value()));
  model.first.assign(first, nullptr);
  model.second.assign(second, nullptr);
  return model;
}

}  // namespace zero::kernels::test
