/// @file Building an optimizer, its first values, and going on in another one.
#include "tests/engine/training.h"
#include "tests/fuzz/training.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <numeric>

namespace zero::test::fuzz {
namespace {

void *allocate(uint64_t nbytes, uint64_t alignment, void * /*user*/) {
  return std::aligned_alloc(alignment, (nbytes + alignment - 1) / alignment * alignment);
}
void give_back(void *data, uint64_t /*nbytes*/, void * /*user*/) { std::free(data); }

}  // namespace

std::vector<float> values_at(uint64_t seed, uint64_t stream, int64_t begin, int64_t count) {
  std::vector<float> values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = value_at(seed, stream, begin + static_cast<int64_t>(i));
    if (std::abs(values[i]) < 0x1p-14F) values[i] = 0x1p-14F;
  }
  return values;
}

std::vector<std::byte> encoded(const std::vector<float> &values, int64_t dtype) { return encode(values, static_cast<DType>(dtype)); }

uint64_t hash_of(const std::vector<std::byte> &bytes) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const std::byte byte : bytes) hash = (hash ^ static_cast<uint64_t>(byte)) * 0x100000001b3;
  return hash;
}

zero_config *new_config(const Settings &settings) {
  zero_config *config = nullptr;
  zero_config_create(&config);
  for (const Setting &each : settings) {
    if (each.type == 1) zero_config_set_i64(config, each.key, each.integer);
    if (each.type == 2) zero_config_set_f64(config, each.key, each.number);
    if (each.type == 3) zero_config_set_str(config, each.key, each.text.c_str());
  }
  return config;
}

Training::Training(const Program &program, const Way &way, int64_t rank, zero_group *group, Calls &calls, Facts &facts)
    : program_(program), way_(way), rank_(rank), group_(group), calls_(calls), facts_(facts), agreed_(way.seed ^ 0xa9) {
  acquired_.resize(program.tensors.size());
}

bool Training::buffers_any() const {
  for (int64_t id = 0; id < program_.size(); ++id) {
    if (buffers(id)) return true;
  }
  return false;
}

bool Training::build() {
  Settings all = program_.settings;
  all.insert(all.end(), way_.settings.begin(), way_.settings.end());
  zero_config *config = new_config(all);
  if (way_.hooked) zero_config_set_allocator(config, allocate, give_back, nullptr, nullptr);
  const int32_t created = calls_.make("optimizer_create", [&] { return zero_optimizer_create(group_, config, &optimizer_); });
  zero_config_release(config);
  tell("created", static_cast<uint64_t>(created));
  if (created != ZERO_OK || !add_all()) return false;
  const int32_t sealed = calls_.meet("optimizer_seal", zero_optimizer_seal, zero_optimizer_seal_async, optimizer_);
  tell("sealed", static_cast<uint64_t>(sealed));
  if (calls_.may_fail()) calls_.must(sealed);
  return sealed == ZERO_OK;
}

bool Training::add_all() {
  bool added = true;
  const auto add = [&](const std::string &what, int32_t status) {
    tell(what, static_cast<uint64_t>(status));
    added = added && status == ZERO_OK;
  };
  int64_t out = 0;
  for (const Settings &settings : program_.sets) {
    zero_config *config = new_config(settings);
    add("set", calls_.make("add_set", [&] { return zero_optimizer_add_set(optimizer_, config, &out); }));
    zero_config_release(config);
  }
  for (int64_t id = 0; id < program_.size(); ++id) {
    const Tensor &tensor = program_.tensor(id);
    zero_config *config = new_config(tensor.settings);
    const std::string name = "p" + std::to_string(id);
    add(name, calls_.make("add_param " + name, [&] {
      return zero_optimizer_add_param(optimizer_, config, name.c_str(), tensor.dtype, tensor.shape.data(), std::ssize(tensor.shape), &out);
    }));
    zero_config_release(config);
  }
  for (int64_t id = 0; id < program_.module_buffers; ++id) {
    const int64_t count = 5 + 300 * id;
    add("module buffer", calls_.make("add_module_buffer", [&] {
      return zero_optimizer_add_module_buffer(optimizer_, ("b" + std::to_string(id)).c_str(), ZERO_DTYPE_F32, &count, 1,
                                              ZERO_SYNC_AVERAGE + static_cast<int32_t>(id % 2), &out);
    }));
  }
  if (!added) return false;
  std::vector<int64_t> ids(program_.tensors.size());
  std::iota(ids.begin(), ids.end(), 0);
  if (way_.gathers_in_order) calls_.must(zero_optimizer_set_gather_order(optimizer_, ids.data(), std::ssize(ids)));
  std::shuffle(ids.begin(), ids.end(), std::mt19937_64(way_.seed));
  if (way_.reorders) calls_.must(zero_optimizer_set_order(optimizer_, ids.data(), std::ssize(ids)));
  return true;
}

void Training::write_first_values() {
  bool some_initialised = false;
  bool some_codes = false;
  for (const Tensor &tensor : program_.tensors) {
    some_initialised = some_initialised || tensor.initialised;
    some_codes = some_codes || (tensor.coded && tensor.frozen && !tensor.initialised);
  }
  int64_t source = agreed_.below(some_codes ? 2 : 3);
  if (some_initialised) source = ZERO_SOURCE_SHARDS;
  for (int64_t id = 0; id < program_.size(); ++id) write_first_value(id, static_cast<int32_t>(source));
  begin(static_cast<int32_t>(source));
}

void Training::write_first_value(int64_t id, int32_t source) {
  const Tensor &tensor = program_.tensor(id);
  if (tensor.tied_to >= 0 && agreed_.one_in(2)) return;
  if (tensor.initialised) {
    if (tensor.tied_to < 0) init(id, id % 3, program_.seed);
    return;
  }
  const std::vector<float> values = values_at(program_.seed, 7'000 + static_cast<uint64_t>(program_.holder(id)), 0, tensor.count);
  const std::vector<std::byte> bytes = encoded(values, tensor.dtype);
  if (source == ZERO_SOURCE_SHARDS) {
    const bool codes = tensor.coded && tensor.count >= 256;
    const std::vector<std::byte> masters = encoded(decode(bytes.data(), static_cast<DType>(tensor.dtype), tensor.count), ZERO_DTYPE_F32);
    const std::vector<std::byte> &given = codes ? masters : bytes;
    const int64_t element = tensor.count == 0 ? 0 : std::ssize(given) / tensor.count;
    const int64_t from = tensor.count * rank_ / program_.ranks;
    const int64_t count = tensor.count * (rank_ + 1) / program_.ranks - from;
    calls_.must(calls_.meet(name("write", id), zero_optimizer_write, zero_optimizer_write_async, optimizer_, id,
                            int32_t{codes ? ZERO_SLOT_MASTER : ZERO_SLOT_PARAM}, from, given.data() + from * element, count, nullptr));
    return;
  }
  const bool one_writes = source == ZERO_SOURCE_ROOT || (way_.one_copy && !buffers(id));
  void *data = nullptr;
  if (one_writes && rank_ != 0) return;
  calls_.must(
      calls_.make(name("param_acquire", id), [&] { return zero_optimizer_param_acquire(optimizer_, id, nullptr, 0, nullptr, &data); }));
  if (!bytes.empty()) std::memcpy(data, bytes.data(), bytes.size());
  calls_.must(calls_.make(name("param_release", id), [&] { return zero_optimizer_param_release(optimizer_, id); }));
}

/// What follows parameters until the first step would be held to be written.
void Training::save_and_remake(bool stepped) {
  struct Slot {
    int64_t id, number, dtype, count;
    std::vector<std::byte> entries;
  };
  std::vector<Slot> slots;
  std::vector<std::pair<std::pair<int64_t, int32_t>, double>> hyper;
  std::vector<std::pair<int32_t, int64_t>> scalars;
  std::vector<std::vector<std::byte>> module_buffers;
  for (int64_t id = 0; id < program_.size(); ++id) {
    int64_t count = 0;
    calls_.must(zero_optimizer_slot_count(optimizer_, id, &count));
    for (int64_t index = 0; index < count; ++index) {
      Slot slot{id, 0, 0, 0, {}};
      calls_.must(zero_optimizer_slot(optimizer_, id, index, &slot.number, &slot.dtype, &slot.count));
      if (!stepped && slot.number == ZERO_SLOT_AVERAGE) continue;
      slot.entries = read(id, static_cast<int32_t>(slot.number), slot.dtype, slot.count);
      slots.push_back(std::move(slot));
    }
  }
  for (int64_t set = 0; set <= std::ssize(program_.sets); ++set) {
    for (int32_t key = 400; key < 412; ++key) {
      double value = 0;
      if (zero_optimizer_get_f64(optimizer_, set, key, &value) == ZERO_OK) hyper.push_back({{set, key}, value});
    }
  }
  hyper.push_back({{0, ZERO_KEY_LOSS_SCALE}, 0});
  calls_.must(zero_optimizer_get_f64(optimizer_, 0, ZERO_KEY_LOSS_SCALE, &hyper.back().second));
  for (int32_t key = ZERO_KEY_STEP_COUNT; key <= ZERO_KEY_OVERFLOW_COUNT; ++key) {
    scalars.push_back({key, 0});
    calls_.must(zero_optimizer_get_i64(optimizer_, key, &scalars.back().second));
  }
  for (int64_t id = 0; id < program_.module_buffers; ++id) {
    void *data = nullptr;
    int64_t count = 0;
    calls_.must(zero_optimizer_module_buffer(optimizer_, id, &data, &count));
    const auto *bytes = static_cast<const std::byte *>(data);
    module_buffers.emplace_back(bytes, bytes + count * 4);
  }
  release();
  way_ = random_way(way_.seed + 1'000'003, program_);
  const std::string place = place_;
  place_ = "again ";
  const size_t told = facts_.size();
  if (!build()) calls_.must(ZERO_E_STATE);
  facts_.resize(told);
  place_ = place;
  for (const auto &[key, value] : scalars) calls_.must(zero_optimizer_set_i64(optimizer_, key, value));
  for (const Slot &slot : slots) {
    const int64_t from = slot.count * rank_ / program_.ranks;
    const int64_t element = slot.count == 0 ? 0 : std::ssize(slot.entries) / slot.count;
    calls_.must(calls_.meet(name("write", slot.id), zero_optimizer_write, zero_optimizer_write_async, optimizer_, slot.id,
                            static_cast<int32_t>(slot.number), from, slot.entries.data() + from * element,
                            slot.count * (rank_ + 1) / program_.ranks - from, nullptr));
  }
  for (const auto &[key, value] : hyper)
    calls_.must(calls_.make(name("set_f64", key.second), [&] { return zero_optimizer_set_f64(optimizer_, key.first, key.second, value); }));
  for (int64_t id = 0; id < program_.module_buffers; ++id) {
    void *data = nullptr;
    int64_t count = 0;
    calls_.must(zero_optimizer_module_buffer(optimizer_, id, &data, &count));
    std::memcpy(data, module_buffers[static_cast<size_t>(id)].data(), static_cast<size_t>(count * 4));
  }
  begin(ZERO_SOURCE_SHARDS);
}

void Training::release_params() {
  for (int64_t id = 0; id < program_.size(); ++id) {
    for (int64_t &held = acquired_[static_cast<size_t>(id)]; held > 0; --held)
      calls_.must(calls_.make(name("param_release", id), [&] { return zero_optimizer_param_release(optimizer_, id); }));
  }
}

void Training::release() {
  if (optimizer_ == nullptr) return;
  zero_optimizer *handle = std::exchange(optimizer_, nullptr);
  calls_.make("optimizer_release", [&] {
    zero_optimizer_release(handle);
    return ZERO_OK;
  });
  std::fill(acquired_.begin(), acquired_.end(), 0);
}

}  // namespace zero::test::fuzz
