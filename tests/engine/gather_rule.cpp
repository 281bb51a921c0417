/// @file The rule of coded differences, element by element.
#include "tests/engine/gather_rule.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <set>
#include <utility>

namespace zero::test {
namespace {

float largest_of(const std::vector<float> &line) {
  float largest = 0;
  for (const float value : line) largest = std::max(largest, std::fabs(value));
  return largest;
}

/// The nearest number of E4M3 that is at most 448.
float nearest_f8(float magnitude) {
  const double value = std::min(magnitude, 448.0F);
  const int exponent = value > 0 ? std::max(std::ilogb(value), -6) : -6;
  const double step = std::ldexp(1.0, exponent - 3);
  return static_cast<float>(std::nearbyint(value / step) * step);
}

float decoded_f8(float value, float scale) {
  const float inverse = scale == 0 ? 0 : 1 / scale;
  return std::copysign(nearest_f8(std::fabs(value) * inverse) * scale, value);
}

float rounded(float value, DType dtype) { return decode(encode({value}, dtype).data(), dtype, 1).front(); }

}  // namespace

Model gather_model(int64_t ranks, int64_t code) {
  Model model;
  model.seed = static_cast<uint64_t>(ranks * 10 + code);
  model.ranks = ranks;
  model.counts = {3000, 17, 0, 1024, 1, 257, 255, 256, 700};
  model.recipe.gather_code = code;
  return model;
}

Manner in_stage(int64_t stage) {
  Manner manner;
  manner.stage = stage;
  return manner;
}

std::vector<float> read_masters(Optimizer &optimizer, const Model &model, int64_t id) {
  std::vector<float> values(static_cast<size_t>(model.counts[static_cast<size_t>(id)]));
  if (model.frozen(id)) return values;
  expect_ok(run_task(optimizer, optimizer.read(id, ZERO_SLOT_MASTER, 0, values.data(), std::ssize(values))), "read");
  return values;
}

std::vector<std::byte> acquired_bytes(Optimizer &optimizer, const Model &model, int64_t id) {
  std::vector<std::byte> values(static_cast<size_t>(model.counts[static_cast<size_t>(id)] * dtype_nbytes(model.dtype(id))));
  void *data = nullptr;
  expect_ok(run_task(optimizer, optimizer.param_acquire(id, nullptr, 0, &data)), "param_acquire");
  if (!values.empty()) std::memcpy(values.data(), data, values.size());
  expect_ok(optimizer.param_release(id), "param_release");
  return values;
}

std::vector<float> decoded_line(const std::vector<float> &line, int64_t code) {
  const float largest = largest_of(line);
  const float most = code == ZERO_CODE_I8 ? 127 : 7;
  const float scale = code == ZERO_CODE_F8 && largest > 0 ? std::max(largest / 448, 0x1p-126F) : largest / most;
  const float inverse = most / largest;
  std::vector<float> decoded;
  for (const float value : line) {
    if (code == ZERO_CODE_F8) {
      decoded.push_back(decoded_f8(value, scale));
    } else {
      decoded.push_back(std::isinf(inverse) ? 0 : std::nearbyint(value * inverse) * scale);
    }
  }
  return decoded;
}

double half_quantum(const std::vector<float> &line, float element, int64_t code) {
  const auto largest = static_cast<double>(largest_of(line));
  if (code == ZERO_CODE_F8) return std::max(std::fabs(static_cast<double>(element)) / 16, largest / 458752);
  return largest / (code == ZERO_CODE_I8 ? 254 : 14);
}

GatherRule::GatherRule(const Model &model) : model_(model) {
  for (int64_t id = 0; id < model.tensors(); ++id) {
    std::vector<float> values;
    const int64_t from = model.shared(id) ? 0 : id;
    for (int64_t k = 0; k < model.counts[static_cast<size_t>(id)]; ++k) values.push_back(first_value_at(model, from, k));
    values_.push_back(decode(encode(values, model.dtype(id)).data(), model.dtype(id), std::ssize(values)));
  }
  lay_out();
}

/// Tensors of one format lie end to end, on multiples of 32 elements, those of a line or more on multiples of 256; smaller ones cross none.
/// A line with a tensor of less than a line travels in full.
void GatherRule::lay_out() {
  std::map<DType, int64_t> ends;
  std::vector<int64_t> begins(values_.size());
  std::set<std::pair<DType, int64_t>> shared;
  for (int64_t id = 0; id < model_.tensors(); ++id) {
    const int64_t count = model_.counts[static_cast<size_t>(id)];
    if (count == 0 || model_.frozen(id) || (model_.recipe.tied && id + 1 == model_.tensors())) continue;
    int64_t begin = round_up(ends[model_.dtype(id)], 32);
    if (count >= kLine || begin / kLine != (begin + count - 1) / kLine) begin = round_up(begin, kLine);
    if (count < kLine) shared.insert({model_.dtype(id), begin / kLine});
    begins[static_cast<size_t>(id)] = begin;
    ends[model_.dtype(id)] = begin + count;
  }
  for (int64_t id = 0; id < model_.tensors(); ++id) {
    const int64_t count = model_.counts[static_cast<size_t>(id)];
    const int64_t last = (begins[static_cast<size_t>(id)] + count) / kLine;
    const bool shares = shared.count({model_.dtype(id), last}) > 0;
    coded_.push_back(count < kLine ? 0 : shares ? count - count % kLine : count);
  }
}

void GatherRule::follow(const std::vector<std::vector<float>> &masters, bool in_full) {
  for (int64_t id = 0; id < model_.tensors(); ++id) {
    if (model_.frozen(id)) continue;
    const std::vector<float> &master = masters[static_cast<size_t>(model_.shared(id) ? 0 : id)];
    std::vector<float> &values = values_[static_cast<size_t>(id)];
    const int64_t coded = in_full ? 0 : coded_count(model_.shared(id) ? 0 : id);
    const auto count = static_cast<int64_t>(values.size());
    for (int64_t begin = 0; begin < coded; begin += kLine) {
      std::vector<float> line;
      for (int64_t k = begin; k < std::min(begin + kLine, coded); ++k)
        line.push_back(master[static_cast<size_t>(k)] - values[static_cast<size_t>(k)]);
      const std::vector<float> decoded = decoded_line(line, model_.recipe.gather_code);
      for (size_t k = 0; k < line.size(); ++k) {
        float &value = values[static_cast<size_t>(begin) + k];
        value = rounded(value + decoded[k], model_.dtype(id));
      }
    }
    for (int64_t k = coded; k < count; ++k) values[static_cast<size_t>(k)] = rounded(master[static_cast<size_t>(k)], model_.dtype(id));
  }
}

std::vector<std::byte> GatherRule::stored(int64_t id) const { return encode(values(id), model_.dtype(id)); }

}  // namespace zero::test
