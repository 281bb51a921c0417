/// @file Updates slots in every storage, and compares them with an update in fp32 and roundings
/// element by element, and with float64.
#include "kernels/update.h"

#include "model.h"
#include "random.h"
#include "storage.h"
#include "tests/algorithms.h"

#include <Random123/philox.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace zero::kernels::update_test {
namespace {

using test::all_storages;
using test::kFirst;
using test::Model;
using test::random_model;
using test::Storage;
using test::Stored;
using test::text;

float limited(float value, float limit) { return limit > 0 && std::fabs(value) > limit ? std::copysign(limit, value) : value; }

/// A random number as kernels/random.h places it in counter and key.
uint32_t random_word(const UpdateScalars &scalars, uint32_t slot, uint64_t place) {
  const auto step = static_cast<uint64_t>(scalars.step);
  const r123::Philox4x32::ctr_type counter = {{static_cast<uint32_t>(place / 4), static_cast<uint32_t>(place / 4 >> 32),
                                               static_cast<uint32_t>(step), slot + 256 * static_cast<uint32_t>(step >> 32)}};
  return r123::Philox4x32()(counter, {{static_cast<uint32_t>(scalars.seed), static_cast<uint32_t>(scalars.seed >> 32)}})[place % 4];
}

/// The random number of an element, in the upper bits.
uint32_t random_number(const UpdateScalars &scalars, uint32_t slot, DType dtype, int64_t element) {
  const uint64_t place = kFirst + static_cast<uint64_t>(element);
  if (dtype != DType::bf16) return random_word(scalars, slot, place);
  const uint32_t both = random_word(scalars, slot, place / 2);
  return place % 2 == 0 ? both << 16 : both & 0xffff0000;
}

/// The result that update() promises, element by element: fp32 values of the slots, the plain fp32
/// kernel, then each rounding.
void update_by_element(const Algorithm &algorithm, Model &model, const UpdateScalars &scalars) {
  const Table &table = *supported().front();
  std::vector<float> firsts;
  std::vector<float> seconds;
  std::vector<uint32_t> words[3];
  for (int64_t i = 0; i < model.count; ++i) {
    float param = model.kept(i);
    const float grad = limited(model.grad.get(i) * scalars.grad_factor, scalars.clip_value);
    float first = model.first.get(i);
    float second = model.second.get(i);
    (table.*algorithm.update)({.param = &param, .grad = &grad, .state = {&first, &second}, .count = 1}, algorithm.constants(scalars.hyper));
    const DType dtypes[3] = {model.param.dtype(), model.first.dtype(), model.second.dtype()};
    for (uint32_t slot = 0; slot < 3; ++slot) words[slot].push_back(random_number(scalars, slot, dtypes[slot], i));
    model.keep(i, param, scalars.stochastic ? &words[0].back() : nullptr);
    firsts.push_back(first);
    seconds.push_back(second);
    const float before = model.average.get(i);
    const float after = std::fma(static_cast<float>(1 - scalars.average_decay), model.kept(i) - before, before);
    if (model.storage.averages) model.average.set(i, after);
  }
  if (algorithm.layerwise) return;  // its last pass does not change the states
  model.first.assign(firsts, scalars.stochastic ? words[1].data() : nullptr);
  if (algorithm.state_count > 1) model.second.assign(seconds, scalars.stochastic ? words[2].data() : nullptr);
}

UpdateScalars random_scalars(test::Random &random, const Storage &storage) {
  UpdateScalars scalars;
  scalars.stochastic = storage.stochastic;
  scalars.seed = random.next();
  scalars.step = 1 + random.below(4);
  scalars.streams = random.below(2) == 0;
  scalars.hyper = {
      .lr = 0.01, .momentum = 0.9, .beta1 = 0.9, .beta2 = 0.95, .epsilon = 1e-8, .weight_decay = 0.1, .step = 1 + random.below(4)};
  if (random.below(4) == 0) scalars.hyper.momentum = 0;
  if (random.below(2) == 0) scalars.grad_factor = 0.37F;
  if (random.below(2) == 0) scalars.clip_value = 0.01F;
  scalars.average_decay = 0.99;
  return scalars;
}

const Algorithm &random_algorithm(test::Random &random) {
  static const zero::test::Names kNames = zero::test::any_shape_names();
  return *find_algorithm(kNames[static_cast<size_t>(random.below(std::ssize(kNames)))]);
}

TEST(Update, EveryTargetAndStorageHasTheBitsOfOneElementAtATime) {
  test::Random random(40);
  int64_t updates = 0;
  const std::vector<Storage> storages = all_storages();
  for (int64_t i = 0; i < test::cases(100 * static_cast<int64_t>(storages.size())); ++i) {
    const Storage &storage = storages[static_cast<size_t>(i) % storages.size()];
    const int64_t count = i % 11 == 0 ? random.below(3) : random.below(i % 7 == 0 ? 2600 : 300);
    UpdateScalars scalars = random_scalars(random, storage);
    if (random.below(4) == 0) scalars.hyper.step = static_cast<int64_t>(random.next() >> 9);
    if (random.below(4) == 0) scalars.step = static_cast<int64_t>(random.next() >> 9);
    const Model before = random_model(random, storage, count, i % 3 == 0);
    const Algorithm &algorithm = random_algorithm(random);
    Model expected = before;
    update_by_element(algorithm, expected, scalars);
    for (const Table *table : supported()) {
      Model actual = before;
      update(*table, algorithm, actual.piece(), scalars);
      ASSERT_EQ(actual, expected) << table->target << " " << algorithm.name << " " << text(storage) << " count " << count << " case " << i;
      ++updates;
    }
  }
  std::printf("%lld updates compared over %zu storages\n", static_cast<long long>(updates), storages.size());
}

/// Another rank's copy of a piece, `offset` elements behind the beginning of its memory.
struct Copies {
  Stored param, master, first, second, average;

  Copies(const Storage &storage, int64_t reach)
      : param(storage.param, reach),
        master(storage.master, reach),
        first(storage.first, reach),
        second(storage.second, reach),
        average(DType::f32, reach) {}

  /// Copies the slots of a model to their places: the parameter, and the other slots if `states`.
  void take(const Model &model, int64_t offset, bool states) {
    param.put_at(offset, model.param, model.count);
    if (!states) return;
    if (model.storage.has_master) master.put_at(offset, model.master, model.count);
    first.put_at(offset, model.first, model.count);
    second.put_at(offset, model.second, model.count);
    if (model.storage.averages) average.put_at(offset, model.average, model.count);
  }

  Replica lend(const Storage &storage, bool states) {
    Replica replica{.param = {param.data(), param.dtype()}};
    if (!states) return replica;
    if (storage.has_master) replica.master = {master.data(), master.dtype()};
    replica.state[0] = {first.data(), first.dtype(), first.scales()};
    replica.state[1] = {second.data(), second.dtype(), second.scales()};
    if (storage.averages) replica.average = {average.data(), DType::f32};
    return replica;
  }

  friend bool operator==(const Copies &, const Copies &) = default;
};

/// Contributions to a gradient, and replicas, in the memory of other ranks.
struct Peers {
  std::vector<Stored> sources;
  std::vector<Copies> copies;
  bool take_states = false;  ///< copies include states
  std::vector<const void *> source_data;
  std::vector<Replica> replicas;
  double divisor = 1;
  int64_t offset = 0;  ///< offset of the piece in the copies

  void lend(UpdateSegment &piece, const Storage &storage) {
    for (Stored &source : sources) source_data.push_back(source.data());
    for (Copies &rank : copies) replicas.push_back(rank.lend(storage, take_states));
    piece.sources = source_data;
    piece.replicas = replicas;
    piece.divisor = divisor;
    piece.peers_offset = offset;
  }
};

Peers random_peers(test::Random &random, const Storage &storage, int64_t count, bool special) {
  constexpr int64_t kSourceCounts[] = {0, 1, 2, 3, 4, 5, 8, 9, 16};
  Peers peers;
  peers.take_states = random.below(2) == 0;
  peers.offset = peers.take_states ? kLine * random.below(3) : random.below(2) == 0 ? 16 * random.below(20) : random.below(300);
  peers.divisor = random.below(2) == 0 ? 1.0 : static_cast<double>(1 + random.below(9));
  for (int64_t i = kSourceCounts[random.below(9)]; i > 0; --i) {
    Stored source(storage.grad, peers.offset + count);
    for (int64_t k = peers.offset; k < peers.offset + count; ++k) {
      source.set_nearest(k, special ? std::bit_cast<float>(static_cast<uint32_t>(random.special_bits(32, 23))) : random.value(12));
    }
    peers.sources.push_back(std::move(source));
  }
  for (int64_t i = random.below(10); i > 0; --i) peers.copies.emplace_back(storage, peers.offset + count);
  return peers;
}

/// DESIGN's T(lo, hi) in fp32.
float tree_sum(const std::vector<Stored> &sources, int64_t index, size_t lo, size_t hi) {
  if (hi - lo == 1) return sources[lo].get(index);
  size_t half = 1;
  while (2 * half < hi - lo) half *= 2;
  return tree_sum(sources, index, lo, lo + half) + tree_sum(sources, index, lo + half, hi);
}

void compare_with_reduction_and_copies(test::Random &random, const Storage &storage, int64_t i) {
  const int64_t count = i % 11 == 0 ? random.below(3) : random.below(i % 97 == 0 ? 10000 : i % 7 == 0 ? 2600 : 300);
  const bool special = i % 3 == 0;
  const UpdateScalars scalars = random_scalars(random, storage);
  const Model before = random_model(random, storage, count, special);
  const Peers peers = random_peers(random, storage, count, special);
  const Algorithm &algorithm = random_algorithm(random);
  Model expected = before;
  for (int64_t k = 0; k < count && !peers.sources.empty(); ++k) {
    const float sum = tree_sum(peers.sources, peers.offset + k, 0, peers.sources.size());
    expected.grad.set_nearest(k, sum / static_cast<float>(peers.divisor));
  }
  update_by_element(algorithm, expected, scalars);
  expected.grad = before.grad;
  Copies copies(storage, peers.offset + count);
  copies.take(expected, peers.offset, peers.take_states);
  for (const Table *table : supported()) {
    Model actual = before;
    Peers lent = peers;
    UpdateSegment piece = actual.piece();
    lent.lend(piece, storage);
    update(*table, algorithm, piece, scalars);
    const std::string name = std::string(table->target) + " " + algorithm.name + " " + text(storage) + " count " + std::to_string(count) +
                             " sources " + std::to_string(peers.sources.size()) + (peers.take_states ? " whole" : "") + " replicas " +
                             std::to_string(peers.copies.size()) + " offset " + std::to_string(peers.offset) + " case " + std::to_string(i);
    ASSERT_EQ(actual, expected) << name;
    ASSERT_TRUE(lent.sources == peers.sources) << name;
    for (const Copies &given : lent.copies) ASSERT_TRUE(given == copies) << name;
  }
}

TEST(Update, SumsOfRanksAndReplicasAreThoseOfAReductionAndCopies) {
  test::Random random(44);
  const std::vector<Storage> storages = all_storages();
  for (int64_t i = 0; i < test::cases(40 * static_cast<int64_t>(storages.size())) && !HasFatalFailure(); ++i) {
    compare_with_reduction_and_copies(random, storages[static_cast<size_t>(i) % storages.size()], i);
  }
}

/// Replicas that take averages have the moved average, too. Nothing else changes.
TEST(Update, AveragesMoveWhereNothingIsUpdated) {
  test::Random random(46);
  const std::vector<Storage> storages = all_storages();
  for (int64_t i = 0; i < test::cases(40 * static_cast<int64_t>(storages.size())); ++i) {
    const Storage &storage = storages[static_cast<size_t>(i) % storages.size()];
    if (!storage.averages) continue;
    const int64_t count = i % 11 == 0 ? random.below(3) : random.below(i % 7 == 0 ? 2600 : 300);
    const UpdateScalars scalars = random_scalars(random, storage);
    const Model before = random_model(random, storage, count, i % 3 == 0);
    Peers peers = random_peers(random, storage, count, false);
    peers.sources.clear();
    Model expected = before;
    for (int64_t k = 0; k < count; ++k) {
      const float average = before.average.get(k);
      expected.average.set(k, std::fma(static_cast<float>(1 - scalars.average_decay), before.kept(k) - average, average));
    }
    Copies copies(storage, peers.offset + count);
    if (peers.take_states) copies.average.put_at(peers.offset, expected.average, count);
    for (const Table *table : supported()) {
      Model actual = before;
      Peers lent = peers;
      UpdateSegment piece = actual.piece();
      lent.lend(piece, storage);
      move_average(*table, piece, scalars);
      ASSERT_EQ(actual, expected) << table->target << " " << text(storage) << " count " << count << " case " << i;
      for (const Copies &given : lent.copies) ASSERT_TRUE(given == copies) << table->target << " " << text(storage) << " case " << i;
    }
  }
}

/// Storages that kernels read directly, without conversion of blocks to fp32.
TEST(Update, SumsOfRanksAndReplicasInOnePassAreToo) {
  test::Random random(45);
  constexpr DType kF32 = DType::f32;
  const Storage storages[] = {{kF32, kF32, false, kF32, kF32, kF32, false, false},
                              {kF32, kF32, false, kF32, kF32, kF32, true, false},
                              {DType::bf16, DType::bf16, true, kF32, kF32, kF32, true, false},
                              {DType::bf16, DType::bf16, true, DType::u16, DType::bf16, DType::bf16, true, true},
                              {DType::bf16, DType::bf16, false, kF32, kF32, kF32, true, true},
                              {kF32, DType::bf16, false, kF32, kF32, kF32, false, false},
                              {DType::f16, DType::f16, true, kF32, kF32, kF32, false, false},
                              {DType::bf16, DType::bf16, true, kF32, kF32, kF32, false, false},
                              {DType::bf16, kF32, true, kF32, kF32, kF32, false, false},
                              {DType::bf16, kF32, true, kF32, DType::bf16, DType::bf16, true, true},
                              {DType::bf16, DType::bf16, true, DType::u16, kF32, kF32, false, false},
                              {kF32, kF32, false, kF32, DType::bf16, DType::bf16, false, false},
                              {DType::bf16, DType::bf16, true, kF32, DType::bf16, DType::bf16, false, false},
                              {DType::bf16, DType::bf16, true, DType::u16, DType::bf16, DType::bf16, false, false},
                              {DType::bf16, DType::bf16, true, DType::u16, DType::bf16, DType::bf16, false, true},
                              {DType::bf16, DType::bf16, false, kF32, kF32, kF32, false, false},
                              {DType::bf16, DType::bf16, false, kF32, kF32, kF32, false, true},
                              {DType::bf16, DType::bf16, false, kF32, DType::bf16, DType::bf16, false, false},
                              {DType::bf16, DType::bf16, false, kF32, DType::bf16, DType::bf16, false, true}};
  for (int64_t i = 0; i < test::cases(10'000) && !HasFatalFailure(); ++i) {
    compare_with_reduction_and_copies(random, storages[static_cast<size_t>(i) % std::size(storages)], i);
  }
}

/// One AdamW step in float64, without any rounding.
struct Exact {
  double param, first, second;
};

Exact exact_adamw(const Model &model, int64_t i, const UpdateScalars &scalars) {
  const HyperParameters &hyper = scalars.hyper;
  const auto step = static_cast<double>(hyper.step);
  double gradient = double{model.grad.get(i)} * scalars.grad_factor;
  if (scalars.clip_value > 0) gradient = std::clamp(gradient, -double{scalars.clip_value}, double{scalars.clip_value});
  Exact exact = {};
  exact.first = hyper.beta1 * model.first.get(i) + (1 - hyper.beta1) * gradient;
  exact.second = hyper.beta2 * model.second.get(i) + (1 - hyper.beta2) * gradient * gradient;
  const double before = model.kept(i);
  const double direction =
      exact.first / (1 - std::pow(hyper.beta1, step)) / (std::sqrt(exact.second / (1 - std::pow(hyper.beta2, step))) + hyper.epsilon);
  exact.param = before * (1 - hyper.lr * hyper.weight_decay) - hyper.lr * direction;
  return exact;
}

/// u = 2^-24. fp32 arithmetic of one step, magnitudes at most 1: g takes 1 rounding; m = fma(w, g -
/// m, m) 3 more of values below 2 and a constant: 6 u. v: 3 roundings of positive terms, 2
/// constants and twice that of g: 7 u relative. The direction m / (sqrt(v) + eps): m's error over
/// sqrt(v), and relative (3.5 + 5) u; then lr times that, and p takes 3 roundings of at most |p| +
/// lr |direction|. To this the storage adds half a quantum of each dtype, with stochastic rounding
/// a whole one.
TEST(Update, EveryStorageIsAsCloseToFloat64AsItsDtypesAllow) {
  test::Random random(41);
  const Algorithm &adamw = *find_algorithm("adamw");
  double worst = 0;
  for (const Storage &storage : all_storages()) {
    for (int64_t step = 1; step <= 3; ++step) {
      UpdateScalars scalars = random_scalars(random, storage);
      scalars.hyper.step = step;
      const Model before = random_model(random, storage, 500, false);
      Model after = before;
      update(active(), adamw, after.piece(), scalars);
      for (int64_t i = 0; i < after.count; ++i) {
        const Exact exact = exact_adamw(before, i, scalars);
        const double root = std::sqrt(exact.second / (1 - std::pow(scalars.hyper.beta2, static_cast<double>(step))));
        const double scale = scalars.hyper.lr / (1 - std::pow(scalars.hyper.beta1, static_cast<double>(step)));
        const double move = scale * std::fabs(exact.first) / root;
        const double arithmetic = 0x1p-24 * (3 * (std::fabs(exact.param) + 2 * move) + scale * 6 / root + 9 * move);
        const auto check = [&](float actual, DType dtype, double wanted, double error, bool stochastic, double line_scale = 0) {
          const bool doubled = stochastic && dtype != DType::f32;
          const double bound = test::half_quantum(wanted, dtype, line_scale) * (doubled ? 2 : 1) + error * 1.01;
          const double difference = std::fabs(actual - wanted);
          worst = std::max(worst, difference / bound);
          ASSERT_LE(difference, bound) << text(storage) << " element " << i;
        };
        if (storage.has_master) check(after.kept(i), DType::f32, exact.param, arithmetic, false);
        check(after.param.get(i), storage.param, exact.param, arithmetic, storage.stochastic && !storage.has_master);
        check(after.first.get(i), storage.first, exact.first, 6 * 0x1p-24, storage.stochastic, after.first.scale(i / kLine));
        const double error = 7 * 0x1p-24 * exact.second;
        check(after.second.get(i), storage.second, exact.second, error, storage.stochastic, after.second.scale(i / kLine));
      }
    }
  }
  std::printf("largest difference: %.2f of its bound\n", worst);
}

TEST(Update, StatesBeginWithTheValuesOfTheirAlgorithm) {
  test::Random random(43);
  for (const Storage &storage : all_storages()) {
    UpdateScalars scalars = random_scalars(random, storage);
    scalars.hyper.initial_accumulator = 0.25;
    Model model = random_model(random, storage, 1500, true);
    for (const char *name : {"adamw", "adagrad"}) {
      begin_states(active(), *find_algorithm(name), model.piece(), scalars);
      const float expected = std::string(name) == "adagrad" ? 0.25F : 0.0F;
      for (int64_t i = 0; i < model.count; ++i) {
        ASSERT_EQ(model.first.get(i), expected) << name << " " << text(storage);
        ASSERT_EQ(model.second.get(i), 0.0F) << name << " " << text(storage);
      }
    }
  }
}

TEST(Update, PiecesCutOnLinesGiveTheBitsOfOne) {
  test::Random random(42);
  const Algorithm &adamw = *find_algorithm("adamw");
  for (const Storage &storage : all_storages()) {
    const int64_t count = 3000 + random.below(500);
    const UpdateScalars scalars = random_scalars(random, storage);
    const Model before = random_model(random, storage, count, false);
    Model whole = before;
    update(active(), adamw, whole.piece(), scalars);
    Model cut = before;
    for (int64_t at = 0; at < count;) {
      const int64_t end = std::min(count, at + kLine * (1 + random.below(5)));
      UpdateSegment part = cut.piece();
      for (Elements *slot : {&part.param, &part.master, &part.grad, &part.state[0], &part.state[1], &part.average}) {
        if (slot->data != nullptr) slot->data = static_cast<char *>(slot->data) + at * dtype_nbytes(slot->dtype);
        if (slot->scales != nullptr) slot->scales += at / kLine;
      }
      part.count = end - at;
      part.first = kFirst + static_cast<uint64_t>(at);
      update(active(), adamw, part, scalars);
      at = end;
    }
    ASSERT_EQ(cut, whole) << text(storage);
  }
}

}  // namespace
}  // namespace zero::kernels::update_test
