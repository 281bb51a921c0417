/// @file Small trainings for engine tests: models with reproducible values, and one run of them under any configuration.
/// Knows what may differ between runs whose bits must agree; never what the results should be.
#pragma once

#include "engine/optimizer/optimizer.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace zero::test {

/// What a model is trained with beyond the plain step.
struct Recipe {
  DType dtype = DType::f32;  ///< of every second tensor where `mixed`, otherwise of all
  bool mixed = false;        ///< the other tensors are f32
  int64_t grad = 0;
  int64_t master = ZERO_MASTER_F32;
  bool coded = false;  ///< parameters are stored as 8-bit codes, with an fp32 master
  DType first_moment = DType::f32;
  DType second_moment = DType::f32;
  bool stochastic = false;
  double clip_norm = 0;
  double clip_value = 0;
  double loss_scale = 1;
  std::vector<int32_t> micro_steps = {};  ///< kinds; empty: the step is one without a call
  bool accumulates_in_f32 = false;
  bool average = false;
  int64_t sets = 1;          ///< tensor i belongs to set i % sets
  int64_t frozen_every = 0;  ///< every n-th tensor is frozen
  bool tied = false;         ///< the last tensor is another name of the first
  bool untouched = false;
  int64_t unfilled_every = 0;  ///< every n-th tensor gets no gradient in odd steps
  uint64_t unfilled_seed = 0;  ///< not 0: by chance tensors get no gradient on any rank
  int64_t gather_below = 0;
  int64_t overflow_step = -1;  ///< one rank has an infinite gradient there
  int64_t replica_ranks = 0;   ///< of replicas that make steps of their own; 0: there is one, or Manner says
  int64_t sync_period = 1;
  int64_t sync_after = 0;
  double outer_lr = 1;
  double outer_momentum = 0;
  int64_t sync_fragments = 1;
  int64_t sync_delay = 0;
  double sync_mix = 0;
  bool ring = false;  ///< periods end with means over neighbours
  int64_t grad_code = ZERO_CODE_NONE;
  int64_t sync_code = ZERO_CODE_NONE;
  int64_t gather_code = ZERO_CODE_NONE;
  bool residual = false;
  int64_t flush_period = 0;
  std::vector<std::pair<int32_t, int64_t>> keys = {};  ///< further ones

  std::string text() const;
};

/// What decides the bits of a training.
struct Model {
  uint64_t seed = 1;
  int64_t ranks = 1;
  std::vector<int64_t> counts;
  std::string algorithm = "adamw";
  double momentum = 0;
  double nesterov = 0;
  double weight_decay = 0.01;
  std::vector<std::pair<int32_t, double>> hyper = {};  ///< further hyper-parameters, by key
  int64_t divisor = ZERO_DIVISOR_RANKS;
  double weight_unit = 1;  ///< all weights are whole multiples of it
  int64_t steps = 3;
  std::vector<int64_t> rows = {};  ///< by tensor: its first dimension, where it has two; 0 or empty: the algorithm says
  bool by_rows = false;            ///< gradients of those that have two are reduced by rows
  Recipe recipe;

  std::string text() const;
  int64_t tensors() const { return static_cast<int64_t>(counts.size()); }
  /// Matrices of some rows where the algorithm wants them.
  std::vector<int64_t> shape(int64_t id) const {
    const int64_t count = counts[static_cast<size_t>(id)];
    if (is_table(id)) return {rows[static_cast<size_t>(id)], count / rows[static_cast<size_t>(id)]};
    if (algorithm != "muon") return {count};
    int64_t height = 1;
    while (count > 0 && height * height < count && count % (2 * height) == 0) height *= 2;
    return {height, count / height};
  }
  bool is_table(int64_t id) const { return !rows.empty() && rows[static_cast<size_t>(id)] > 0; }
  DType dtype(int64_t id) const { return recipe.mixed && id % 2 == 1 && !shared(id) ? DType::f32 : recipe.dtype; }
  DType grad_dtype(int64_t id) const { return recipe.grad != 0 ? static_cast<DType>(recipe.grad) : dtype(id); }
  bool frozen(int64_t id) const { return recipe.frozen_every > 0 && id % recipe.frozen_every == recipe.frozen_every - 1 && !shared(id); }
  bool coded(int64_t id) const { return recipe.coded && counts[static_cast<size_t>(id)] >= kLine; }
  /// The first and last tensor, where they are tied.
  bool shared(int64_t id) const { return recipe.tied && (id == 0 || id + 1 == tensors()); }
  bool unfilled(int64_t id, int64_t step) const {
    return frozen(id) || (recipe.unfilled_every > 0 && step % 2 == 1 && id % recipe.unfilled_every == 0) ||
           (recipe.unfilled_seed != 0 && std::mt19937_64(recipe.unfilled_seed + static_cast<uint64_t>(step * 64 + id))() % 2 == 0);
  }
};

/// Memory of a device, for callers whose tensors lie there. Any thread.
class RemoteMemory {
 public:
  virtual ~RemoteMemory() = default;
  /// The keys that an optimizer needs for it.
  virtual void set(Config &config) const = 0;
  /// Calls give(data, stream) with memory that the stream fills with these bytes late, and overwrites it afterwards.
  virtual void lend(const std::vector<std::byte> &bytes, const std::function<void(const void *data, void *stream)> &give) const = 0;
  /// Calls fill(data, stream) with `nbytes` bytes and returns what the stream then finds there.
  virtual std::vector<std::byte> collect(int64_t nbytes, const std::function<void(void *data, void *stream)> &fill) const = 0;

  /// @name The optimizer's own memory there: acquire(stream) returns its address.
  /// @{
  using Acquire = std::function<const void *(void *stream)>;
  /// Has the stream write these bytes there late, and calls done(stream) before that has happened.
  virtual void write(const Acquire &, const std::vector<std::byte> &, const std::function<void(void *stream)> &) const {}
  /// What the stream finds there; calls done() before it is looked at.
  virtual std::vector<std::byte> read(const Acquire &, int64_t, const std::function<void()> &) const { return {}; }
  /// @}
};

/// What must not decide them.
struct Manner {
  int64_t stage = 0;
  int64_t bucket_nbytes = 26'214'400;
  int64_t pool_nbytes = 0;  ///< most that buckets may hold unreduced; 0: any
  bool overlap = false;
  bool caller_memory = false;            ///< gradients come from the test's memory, otherwise acquired addresses are filled
  const RemoteMemory *remote = nullptr;  ///< where the test's memory lies, and parameters are acquired to; nullptr: on the host
  bool kept_there = false;               ///< the optimizer's memory lies with remote too
  bool lends_host = false;               ///< gradients come from the host nevertheless
  bool by_ranges = false;                ///< gradients become ready in pieces
  int64_t threads = 1;
  std::string shard_weights;
  uint64_t ready_seed = 0;  ///< 0: last tensor first; otherwise a random order, another one on each rank
  uint64_t order_seed = 0;  ///< 0: default; otherwise a random set_order
  int32_t source = ZERO_SOURCE_LOCAL;
  int64_t verify_every = 0;
  int64_t trace_events = 0;
  bool one_copy = false;  ///< of whole parameters, where the stage allows it
  bool splits = false;    ///< every second step is reduce, apply and gather
  int64_t replica_ranks = 0;  ///< of replicas that make every step together; 0: there is one
  int64_t param_ranks = 0;    ///< over which stage 3 shards parameters, where it can; 0: as states; -1: those of a host
  bool norm = true;       ///< the norm is asked for, which needs reductions before updates
  MakeDomain domain = {};  ///< the memory that the optimizer is kept in; empty: the host's as ever

  bool keeps_one_copy() const { return one_copy && (stage == 1 || stage == 2); }

  std::string text() const;
};

/// Buckets are small, and reduced and gathered behind the caller's work.
inline Manner overlapped(int64_t stage) {
  Manner manner;
  manner.stage = stage;
  manner.overlap = true;
  manner.bucket_nbytes = 8192;
  return manner;
}

/// Everything a training ends with, on one rank.
struct Outcome {
  std::vector<float> params;
  std::vector<float> states;
  std::vector<std::byte> slots;  ///< every slot of every tensor
  std::vector<double> norms;
  std::vector<double> scales;  ///< loss scales after each step
  int64_t skipped = 0;
  int64_t unfilled = 0;
};

/// Fails the test when `call` failed.
void expect_ok(const Status &status, const char *call);
/// Runs a task of the optimizer to its end.
inline Status run_task(Optimizer &optimizer, Task task) { return optimizer.queue()->run(std::move(task)); }

/// Reproducible values in about (-1, 1), with many exponents.
float value_at(uint64_t seed, uint64_t stream, int64_t index);
/// The gradient that a rank has for an element in a step.
float gradient_at(const Model &model, int64_t step, int64_t rank, int64_t id, int64_t index);
float first_value_at(const Model &model, int64_t id, int64_t index);
double weight_of(const Model &model, int64_t step, int64_t rank);

Config make_config(const Model &model, const Manner &manner);
/// A sealed optimizer with the model's tensors, before begin. Fails the test on errors.
std::shared_ptr<Optimizer> make_optimizer(const std::shared_ptr<Group> &group, const Model &model, const Manner &manner);
/// Writes first values and begins.
void begin_training(Optimizer &optimizer, const Model &model, const Manner &manner);
/// One that is sealed and has begun.
std::shared_ptr<Optimizer> begun_optimizer(const std::shared_ptr<Group> &group, const Model &model, const Manner &manner);
/// Gives this rank's gradients of a step.
void give_gradients(Optimizer &optimizer, const Model &model, const Manner &manner, int64_t step);
/// One step with this rank's gradients.
zero_step_result train_step(Optimizer &optimizer, const Model &model, const Manner &manner, int64_t step);
/// Steps first to last - 1.
void train_steps(Optimizer &optimizer, const Model &model, const Manner &manner, int64_t first, int64_t last);
/// What several ranks keep alike has the same bits on all of them.
void expect_same_on_all_ranks(Optimizer &optimizer);
/// fp32 values in another dtype, rounded to nearest even, and back.
std::vector<std::byte> encode(const std::vector<float> &values, DType dtype);
std::vector<float> decode(const void *values, DType dtype, int64_t count);
/// Elements that this rank updates: in stage 0 and in a world of one all of them.
int64_t owned_count(Optimizer &optimizer);
/// Ranks of one replica.
int64_t replica_ranks_of(const Model &model, const Manner &manner);
/// Reads all slots of all tensors.
std::vector<std::byte> read_slots(Optimizer &optimizer, const Model &model);
/// Reads a whole f32 slot of all tensors, one after another.
std::vector<float> read_slot(Optimizer &optimizer, const Model &model, int32_t slot);
/// Runs the whole training.
Outcome train(const std::shared_ptr<Group> &group, const Model &model, const Manner &manner);

/// What a training must end with: the same without ranks, shards and buckets, by the plain reference kernels over whole tensors; no norms.
Outcome reference_training(const Model &model);

/// 1 to 40 tensors of log-uniform sizes, some without elements, at most `most` elements in all.
Model random_model(uint64_t seed, int64_t ranks, int64_t most);
/// A recipe that goes with the model's algorithm.
Recipe random_recipe(uint64_t seed, const std::string &algorithm);
Manner random_manner(uint64_t seed, int64_t ranks);

/// Elements of two arrays that differ in any bit.
int64_t differing(const std::vector<float> &a, const std::vector<float> &b);
int64_t differing(const Outcome &a, const Outcome &b);
/// Trains plainly, then in random manners, of which the first four have stages 0 to 3: all must end with the same bits. Returns the plain
/// outcome.
Outcome expect_same_in_every_manner(const std::shared_ptr<Group> &group, const Model &model, uint64_t seed, int64_t manners = 5);

}  // namespace zero::test
