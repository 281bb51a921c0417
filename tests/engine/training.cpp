/// @file Running small trainings.
#include "tests/engine/training.h"

#include "kernels/kernels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <numeric>
#include <random>

namespace zero::test {
namespace {

uint64_t mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

void expect_ok(const Status &status, const char *call) {
  ASSERT_TRUE(status.ok()) << call << ": " << status_name(status.code()) << ": " << status.text();
}

}  // namespace

std::string Model::text() const {
  std::string text = algorithm + " momentum " + std::to_string(momentum) + " divisor " + std::to_string(divisor) + " ranks " +
                     std::to_string(ranks) + " seed " + std::to_string(seed) + " counts";
  for (const int64_t count : counts) text += " " + std::to_string(count);
  return text;
}

std::string Manner::text() const {
  return "stage " + std::to_string(stage) + " bucket " + std::to_string(bucket_nbytes) + " overlap " + std::to_string(overlap) +
         " caller memory " + std::to_string(caller_memory) + " ranges " + std::to_string(by_ranges) + " threads " +
         std::to_string(threads) + " shard weights '" + shard_weights + "' ready seed " + std::to_string(ready_seed) + " order seed " +
         std::to_string(order_seed) + " source " + std::to_string(source);
}

float value_at(uint64_t seed, uint64_t stream, int64_t index) {
  const uint64_t bits = mix(mix(seed ^ (stream << 32)) + static_cast<uint64_t>(index));
  const auto fraction = static_cast<float>(static_cast<int64_t>(bits & 0xffffff) - 0x800000) / static_cast<float>(0x800000);
  return std::ldexp(fraction, -static_cast<int>((bits >> 24) % 12));
}

float first_value_at(const Model &model, int64_t id, int64_t index) {
  return value_at(model.seed, 1'000'000 + static_cast<uint64_t>(id), index);
}

float gradient_at(const Model &model, int64_t step, int64_t rank, int64_t id, int64_t index) {
  return value_at(model.seed, static_cast<uint64_t>((step * 64 + rank) * 64 + id), index);
}

double weight_of(const Model &model, int64_t step, int64_t rank) {
  if (model.divisor != ZERO_DIVISOR_WEIGHTS) return 1;
  // Some ranks have nothing in some steps; rank 0 always has something.
  const auto samples = static_cast<double>(mix(model.seed + static_cast<uint64_t>(step * 64 + rank)) % 4);
  return rank == 0 ? samples + 1 : samples;
}

Config make_config(const Model &model, const Manner &manner) {
  Config config;
  EXPECT_TRUE(config.set_i64(ZERO_KEY_STAGE, manner.stage).ok());
  EXPECT_TRUE(config.set_str(ZERO_KEY_ALGORITHM, model.algorithm.c_str()).ok());
  EXPECT_TRUE(config.set_i64(ZERO_KEY_BUCKET_BYTES, manner.bucket_nbytes).ok());
  EXPECT_TRUE(config.set_i64(ZERO_KEY_DIVISOR, model.divisor).ok());
  EXPECT_TRUE(config.set_i64(ZERO_KEY_GRAD_NORM, 1).ok());
  EXPECT_TRUE(config.set_i64(ZERO_KEY_OVERLAP, manner.overlap ? 1 : 0).ok());
  EXPECT_TRUE(config.set_i64(ZERO_KEY_THREADS, manner.threads).ok());
  EXPECT_TRUE(config.set_str(ZERO_KEY_SHARD_WEIGHTS, manner.shard_weights.c_str()).ok());
  if (model.algorithm == "custom") return config;
  EXPECT_TRUE(config.set_f64(ZERO_KEY_LR, 0.01).ok());
  EXPECT_TRUE(config.set_f64(ZERO_KEY_WEIGHT_DECAY, model.weight_decay).ok());
  if (model.algorithm == "sgd") {
    EXPECT_TRUE(config.set_f64(ZERO_KEY_MOMENTUM, model.momentum).ok());
    EXPECT_TRUE(config.set_f64(ZERO_KEY_NESTEROV, model.nesterov).ok());
  }
  return config;
}

std::shared_ptr<Optimizer> make_optimizer(const std::shared_ptr<Group> &group, const Model &model, const Manner &manner) {
  std::shared_ptr<Optimizer> optimizer;
  Status status = Optimizer::create(group, make_config(model, manner), &optimizer);
  EXPECT_TRUE(status.ok()) << status.text();
  if (optimizer == nullptr) return optimizer;
  for (size_t i = 0; i < model.counts.size(); ++i) {
    int64_t id = 0;
    status = optimizer->add_param(nullptr, ("p" + std::to_string(i)).c_str(), ZERO_DTYPE_F32, &model.counts[i], 1, &id);
    EXPECT_TRUE(status.ok()) << status.text();
  }
  if (manner.order_seed != 0) {
    std::vector<int64_t> order(model.counts.size());
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), std::mt19937_64(manner.order_seed));
    status = optimizer->set_order(order.data(), static_cast<int64_t>(order.size()));
    EXPECT_TRUE(status.ok()) << status.text();
  }
  status = optimizer->seal_queue()->run(optimizer->seal());
  EXPECT_TRUE(status.ok()) << status.text();
  return optimizer;
}

void begin_training(Optimizer &optimizer, const Model &model, const Manner &manner) {
  const int64_t rank = optimizer.group()->rank();
  for (size_t i = 0; i < model.counts.size(); ++i) {
    const auto id = static_cast<int64_t>(i);
    if (manner.source == ZERO_SOURCE_SHARDS) {
      // Each rank writes an even part, whoever owns it.
      const Range part = even_share(model.counts[i], rank, model.ranks);
      std::vector<float> values;
      for (int64_t k = part.begin; k < part.end; ++k) values.push_back(first_value_at(model, id, k));
      expect_ok(optimizer.queue()->run(optimizer.write(id, ZERO_SLOT_PARAM, part.begin, values.data(), part.count())), "write");
      continue;
    }
    if (manner.source == ZERO_SOURCE_ROOT && rank != 0) continue;
    void *data = nullptr;
    expect_ok(optimizer.queue()->run(optimizer.param_acquire(id, nullptr, 0, &data)), "param_acquire");
    EXPECT_EQ(reinterpret_cast<uintptr_t>(data) % 64, 0U);
    for (int64_t k = 0; k < model.counts[i]; ++k) static_cast<float *>(data)[k] = first_value_at(model, id, k);
    expect_ok(optimizer.param_release(id), "param_release");
  }
  expect_ok(optimizer.queue()->run(optimizer.begin(manner.source)), "begin");
}

namespace {

void give_range(Optimizer &optimizer, const Model &model, const Manner &manner, int64_t step, int64_t id, Range range) {
  const int64_t rank = optimizer.group()->rank();
  if (manner.caller_memory) {
    std::vector<float> values;
    for (int64_t k = range.begin; k < range.end; ++k) values.push_back(gradient_at(model, step, rank, id, k));
    expect_ok(optimizer.grad_ready(id, values.data(), range.begin, range.count()), "grad_ready");
    return;
  }
  void *data = nullptr;
  int64_t accumulate = -1;
  expect_ok(optimizer.grad_acquire(id, &data, &accumulate), "grad_acquire");
  for (int64_t k = range.begin; k < range.end; ++k) static_cast<float *>(data)[k] = gradient_at(model, step, rank, id, k);
  expect_ok(optimizer.grad_ready(id, nullptr, range.begin, range.count()), "grad_ready");
}

/// What one rank does with one tensor at a time: all of it, or three pieces in an order of their own.
std::vector<std::pair<int64_t, Range>> ready_plan(const Model &model, const Manner &manner, int64_t step, int64_t rank) {
  std::vector<std::pair<int64_t, Range>> plan;
  for (auto id = static_cast<int64_t>(model.counts.size()) - 1; id >= 0; --id) {
    const int64_t count = model.counts[static_cast<size_t>(id)];
    if (!manner.by_ranges) {
      plan.push_back({id, {0, count}});
      continue;
    }
    const int64_t a = count / 3;
    const int64_t b = count - count / 4;
    for (const Range range : {Range{a, b}, Range{b, count}, Range{0, a}}) {
      if (!range.empty()) plan.push_back({id, range});
    }
  }
  if (manner.ready_seed != 0) {
    std::shuffle(plan.begin(), plan.end(), std::mt19937_64(manner.ready_seed + static_cast<uint64_t>(step * 16 + rank)));
  }
  return plan;
}

}  // namespace

void give_gradients(Optimizer &optimizer, const Model &model, const Manner &manner, int64_t step) {
  const int64_t rank = optimizer.group()->rank();
  if (model.divisor == ZERO_DIVISOR_WEIGHTS) expect_ok(optimizer.set_weight(weight_of(model, step, rank)), "set_weight");
  for (const auto &[id, range] : ready_plan(model, manner, step, rank)) give_range(optimizer, model, manner, step, id, range);
}

zero_step_result train_step(Optimizer &optimizer, const Model &model, const Manner &manner, int64_t step) {
  give_gradients(optimizer, model, manner, step);
  zero_step_result result{};
  result.struct_size = sizeof result;
  expect_ok(optimizer.queue()->run(optimizer.step(&result)), "step");
  return result;
}

std::vector<float> read_slot(Optimizer &optimizer, const Model &model, int32_t slot) {
  std::vector<float> all;
  for (size_t i = 0; i < model.counts.size(); ++i) {
    std::vector<float> values(static_cast<size_t>(model.counts[i]));
    expect_ok(optimizer.queue()->run(optimizer.read(static_cast<int64_t>(i), slot, 0, values.data(), model.counts[i])), "read");
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

namespace {

/// Reads parameters the way a forward pass does; they must be what read() tells.
void expect_acquired(Optimizer &optimizer, const Model &model, const std::vector<float> &params) {
  size_t begin = 0;
  for (size_t i = 0; i < model.counts.size(); ++i) {
    const auto count = static_cast<size_t>(model.counts[i]);
    void *data = nullptr;
    expect_ok(optimizer.queue()->run(optimizer.param_acquire(static_cast<int64_t>(i), nullptr, 0, &data)), "param_acquire");
    const bool same = count == 0 || std::memcmp(data, params.data() + begin, count * sizeof(float)) == 0;
    EXPECT_TRUE(same) << "tensor " << i;
    expect_ok(optimizer.param_release(static_cast<int64_t>(i)), "param_release");
    begin += count;
  }
}

}  // namespace

Outcome train(const std::shared_ptr<Group> &group, const Model &model, const Manner &manner) {
  Outcome outcome;
  const std::shared_ptr<Optimizer> optimizer = make_optimizer(group, model, manner);
  if (optimizer == nullptr) return outcome;
  begin_training(*optimizer, model, manner);
  for (int64_t step = 0; step < model.steps; ++step) {
    const zero_step_result result = train_step(*optimizer, model, manner, step);
    outcome.norms.push_back(result.grad_norm);
    outcome.unfilled += result.unfilled_count;
  }
  outcome.params = read_slot(*optimizer, model, ZERO_SLOT_PARAM);
  expect_acquired(*optimizer, model, outcome.params);
  if (model.algorithm != "sgd" || model.momentum > 0) outcome.states = read_slot(*optimizer, model, ZERO_SLOT_FIRST_MOMENT);
  if (model.algorithm != "sgd") {
    const std::vector<float> second = read_slot(*optimizer, model, ZERO_SLOT_SECOND_MOMENT);
    outcome.states.insert(outcome.states.end(), second.begin(), second.end());
  }
  return outcome;
}

Model random_model(uint64_t seed, int64_t ranks, int64_t most) {
  std::mt19937_64 random(seed);
  Model model;
  model.seed = seed;
  model.ranks = ranks;
  const auto tensors = static_cast<int64_t>(random() % 40) + 1;
  std::uniform_real_distribution<double> exponent(0, std::log2(static_cast<double>(most)));
  int64_t total = 0;
  for (int64_t i = 0; i < tensors; ++i) {
    int64_t count = random() % 12 == 0 ? 0 : static_cast<int64_t>(std::exp2(exponent(random)));
    count = std::min(count, most - total);
    total += count;
    model.counts.push_back(count);
  }
  static constexpr const char *kAlgorithms[] = {"adamw", "adam", "sgd", "sgd", "sgd"};
  const size_t which = random() % 5;
  model.algorithm = kAlgorithms[which];
  model.momentum = which >= 3 ? 0.9 : 0;
  model.nesterov = which == 4 ? 1 : 0;
  model.weight_decay = random() % 3 == 0 ? 0 : 0.01;
  model.divisor = static_cast<int64_t>(random() % 3);
  return model;
}

Manner random_manner(uint64_t seed, int64_t ranks) {
  std::mt19937_64 random(seed);
  static constexpr int64_t kBuckets[] = {1024, 4096, 65'536, 1 << 20, 26'214'400};
  Manner manner;
  manner.stage = static_cast<int64_t>(random() % 4);
  manner.bucket_nbytes = kBuckets[random() % 5];
  manner.overlap = random() % 2 == 0;
  manner.caller_memory = random() % 2 == 0;
  manner.by_ranges = random() % 3 == 0;
  manner.threads = static_cast<int64_t>(random() % 3) + 1;
  // The same pattern of ready gradients on all ranks, or another on each: then the pool grows.
  manner.ready_seed = random() % 2 == 0 ? 0 : random() | 1;
  manner.order_seed = random() % 3 == 0 ? random() | 1 : 0;
  manner.source = static_cast<int32_t>(random() % 3);
  if (random() % 3 == 0) {
    for (int64_t rank = 0; rank < ranks; ++rank)
      manner.shard_weights += (rank > 0 ? "," : "") + std::to_string(rank == 0 ? 1 : random() % 4);
  }
  return manner;
}

int64_t differing(const std::vector<float> &a, const std::vector<float> &b) {
  if (a.size() != b.size()) return static_cast<int64_t>(std::max(a.size(), b.size()));
  int64_t count = 0;
  for (size_t i = 0; i < a.size(); ++i) count += std::bit_cast<uint32_t>(a[i]) != std::bit_cast<uint32_t>(b[i]) ? 1 : 0;
  return count;
}

int64_t differing(const Outcome &a, const Outcome &b) {
  int64_t count = differing(a.params, b.params) + differing(a.states, b.states);
  if (a.norms.size() != b.norms.size()) return count + 1;
  for (size_t i = 0; i < a.norms.size(); ++i) count += std::bit_cast<uint64_t>(a.norms[i]) != std::bit_cast<uint64_t>(b.norms[i]) ? 1 : 0;
  return count;
}

Outcome reference_training(const Model &model) {
  const kernels::Table &table = *kernels::supported().front();
  Outcome outcome;
  std::vector<float> second;
  for (size_t i = 0; i < model.counts.size(); ++i) {
    const auto id = static_cast<int64_t>(i);
    const auto count = static_cast<size_t>(model.counts[i]);
    std::vector<float> param(count), moment(count), square(count), grad(count);
    for (size_t k = 0; k < count; ++k) param[k] = first_value_at(model, id, static_cast<int64_t>(k));
    for (int64_t step = 0; step < model.steps; ++step) {
      std::vector<std::vector<float>> given(static_cast<size_t>(model.ranks), std::vector<float>(count));
      std::vector<const void *> sources;
      double divisor = model.divisor == ZERO_DIVISOR_RANKS ? static_cast<double>(model.ranks) : model.divisor == ZERO_DIVISOR_ONE ? 1 : 0;
      for (int64_t rank = 0; rank < model.ranks; ++rank) {
        const double weight = weight_of(model, step, rank);
        if (model.divisor == ZERO_DIVISOR_WEIGHTS) divisor += weight;
        for (size_t k = 0; k < count; ++k) {
          const float value = gradient_at(model, step, rank, id, static_cast<int64_t>(k));
          given[static_cast<size_t>(rank)][k] = weight == 0 ? 0.0F : static_cast<float>(weight) * value;
        }
        sources.push_back(given[static_cast<size_t>(rank)].data());
      }
      if (count == 0) continue;
      table.reduce({grad.data(), sources.data(), model.ranks, model.counts[i], DType::f32, ReduceOp::sum, divisor});
      const kernels::HyperParameters hyper{0.01, model.momentum, 0, model.nesterov, 0.9, 0.999, 1e-8, model.weight_decay, step + 1};
      const kernels::Slots slots{param.data(), grad.data(), {moment.data(), square.data()}, model.counts[i]};
      (table.*kernels::find_algorithm(model.algorithm)->update)(slots, hyper);
    }
    outcome.params.insert(outcome.params.end(), param.begin(), param.end());
    if (model.algorithm != "sgd" || model.momentum > 0) outcome.states.insert(outcome.states.end(), moment.begin(), moment.end());
    if (model.algorithm != "sgd") second.insert(second.end(), square.begin(), square.end());
  }
  outcome.states.insert(outcome.states.end(), second.begin(), second.end());
  return outcome;
}

}  // namespace zero::test
