/// @file sharded_adamw: updates a dlib network with libzero, its states sharded over the ranks of a group.
/// Needs only dlib, libzero, and handles.h, memory.h and net_memory.h.
///
/// A dlib layer owns the memory of its parameters and gradients and shows them only whole. So every rank keeps both in the network,
/// whatever the stage: libzero gets a copy of the gradients and writes new parameters straight into the layers. Stage 3 keeps least beside
/// that.
#pragma once

#include <dlib/dnn.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "../embedding/handles.h"
#include "net_memory.h"

namespace embedding {

template <typename Net>
class ShardedAdamW {
 public:
  /// Takes the network over; its parameters, which must be allocated, get the values of rank 0. A collective, as is update_parameters.
  ///   net          outlives this object
  ///   like         hyper-parameters; libzero's weight decay is decoupled and also applies to biases, multipliers of layers are not read
  ///   config       how to shard: its stage and bucket size
  ///   dlib_update  dlib::adam updates the shards (its states are sharded with them), instead of libzero's AdamW
  ShardedAdamW(Net &net, const dlib::adam &like, zero_group *group, ConfigHandle config, bool dlib_update = false);
  ShardedAdamW(const ShardedAdamW &) = delete;
  ShardedAdamW &operator=(const ShardedAdamW &) = delete;

  /// Averages the network's gradients over the ranks, updates, and writes the new parameters into the network. This rank counts by its
  /// samples; without any its gradients are not read.
  void update_parameters(double learning_rate, int64_t samples);

  /// What the network and libzero keep.
  Memory memory() const;

 private:
  /// A piece of a parameter as dlib::adam takes it: like a layer.
  struct Shard {
    dlib::resizable_tensor params;
    const dlib::tensor &get_layer_params() const { return params; }
  };
  struct View {
    float *data;
    int64_t count;
  };

  void create(ConfigHandle config);
  void add_parameters();
  void give_first_values();
  void give_gradients();
  void take_parameters();
  View view(int64_t index, int32_t slot) const;
  void set_hyper_parameters(double learning_rate);
  void update_shards(double learning_rate);

  static constexpr int64_t kNone = -1;  ///< a layer without parameters

  Net &net_;
  dlib::adam like_;
  zero_group *group_;
  bool dlib_update_;
  OptimizerHandle optimizer_;
  std::vector<int64_t> ids_;         ///< by layer
  std::vector<dlib::adam> solvers_;  ///< by view, of dlib's update
  AbortOnThrow guard_;
};

template <typename Net>
ShardedAdamW<Net>::ShardedAdamW(Net &net, const dlib::adam &like, zero_group *group, ConfigHandle config, bool dlib_update)
    : net_(net), like_(like), group_(group), dlib_update_(dlib_update), guard_(group) {
  create(std::move(config));
  add_parameters();
  check(zero_optimizer_seal(optimizer_.get()));
  give_first_values();
  int64_t views = 0;
  check(zero_optimizer_view_count(optimizer_.get(), &views));
  if (dlib_update_) solvers_.assign(static_cast<size_t>(views), like);
}

/// NaN passes as it does in dlib. Gradients come all at once, so there is nothing for reductions to overlap with.
template <typename Net>
void ShardedAdamW<Net>::create(ConfigHandle config) {
  check(zero_config_set_str(config.get(), ZERO_KEY_ALGORITHM, dlib_update_ ? "custom" : "adamw"));
  check(zero_config_set_i64(config.get(), ZERO_KEY_DIVISOR, ZERO_DIVISOR_WEIGHTS));
  check(zero_config_set_i64(config.get(), ZERO_KEY_NONFINITE, ZERO_NONFINITE_PROPAGATE));
  check(zero_config_set_i64(config.get(), ZERO_KEY_OVERLAP, 0));
  if (!dlib_update_) {
    check(zero_config_set_f64(config.get(), ZERO_KEY_BETA1, like_.get_momentum1()));
    check(zero_config_set_f64(config.get(), ZERO_KEY_BETA2, like_.get_momentum2()));
    check(zero_config_set_f64(config.get(), ZERO_KEY_WEIGHT_DECAY, like_.get_weight_decay()));
  }
  optimizer_ = make_optimizer(group_, config);
}

/// Gradients are given in the order of registration, from the last layer to the first.
template <typename Net>
void ShardedAdamW<Net>::add_parameters() {
  ids_.assign(Net::num_computational_layers, kNone);
  dlib::visit_layer_parameters(net_, [this](size_t layer, dlib::tensor &params) {
    const auto count = static_cast<int64_t>(params.size());
    if (count == 0) return;
    check(zero_optimizer_add_param(optimizer_.get(), nullptr, ("layer" + std::to_string(layer)).c_str(), ZERO_DTYPE_F32, &count, 1,
                                   &ids_[layer]));
  });
  std::vector<int64_t> order;
  std::copy_if(ids_.begin(), ids_.end(), std::back_inserter(order), [](int64_t id) { return id != kNone; });
  if (order.empty())
    throw std::invalid_argument("ShardedAdamW: the network has no parameters; dlib makes them when it first sees an input");
  check(zero_optimizer_set_order(optimizer_.get(), order.data(), static_cast<int64_t>(order.size())));
}

/// Rank 0 writes all of them, the other ranks an empty range.
template <typename Net>
void ShardedAdamW<Net>::give_first_values() {
  int64_t rank = 0;
  check(zero_group_rank(group_, &rank));
  dlib::visit_layer_parameters(net_, [this, rank](size_t layer, dlib::tensor &params) {
    if (ids_[layer] == kNone) return;
    const int64_t count = rank == 0 ? static_cast<int64_t>(params.size()) : 0;
    check(zero_optimizer_write(optimizer_.get(), ids_[layer], ZERO_SLOT_PARAM, 0, params.host(), count, nullptr));
  });
  check(zero_optimizer_begin(optimizer_.get(), ZERO_SOURCE_SHARDS));
  take_parameters();
}

template <typename Net>
void ShardedAdamW<Net>::update_parameters(double learning_rate, int64_t samples) {
  check(zero_optimizer_set_weight(optimizer_.get(), weight_of(group_, samples)));
  if (samples > 0) give_gradients();
  if (dlib_update_) {
    check(zero_optimizer_reduce(optimizer_.get(), nullptr, nullptr));
    update_shards(learning_rate);
    check(zero_optimizer_gather(optimizer_.get(), nullptr));
  } else {
    set_hyper_parameters(learning_rate);
    check(zero_optimizer_step(optimizer_.get(), nullptr, nullptr));
  }
  take_parameters();
}

/// dlib::adam adds its epsilon, 1e-8, to the root of the second moment before that is corrected for its start at 0, libzero after it.
template <typename Net>
void ShardedAdamW<Net>::set_hyper_parameters(double learning_rate) {
  int64_t steps = 0;
  check(zero_optimizer_get_i64(optimizer_.get(), ZERO_KEY_STEP_COUNT, &steps));
  const double correction = std::sqrt(1 - std::pow(like_.get_momentum2(), static_cast<double>(steps + 1)));
  check(zero_optimizer_set_f64(optimizer_.get(), 0, ZERO_KEY_LR, learning_rate));
  check(zero_optimizer_set_f64(optimizer_.get(), 0, ZERO_KEY_EPSILON, 1e-8 / correction));
}

template <typename Net>
void ShardedAdamW<Net>::give_gradients() {
  dlib::visit_layer_parameter_gradients(net_, [this](size_t layer, dlib::tensor &gradient) {
    if (ids_[layer] == kNone) return;
    const auto count = static_cast<int64_t>(gradient.size());
    check(zero_optimizer_grad_ready(optimizer_.get(), ids_[layer], gradient.host(), 0, count, nullptr));
  });
}

template <typename Net>
void ShardedAdamW<Net>::take_parameters() {
  dlib::visit_layer_parameters(net_, [this](size_t layer, dlib::tensor &params) {
    if (ids_[layer] == kNone) return;
    void *address = nullptr;
    check(zero_optimizer_param_acquire(optimizer_.get(), ids_[layer], params.host_write_only(), static_cast<int64_t>(params.size()),
                                       nullptr, &address));
    check(zero_optimizer_param_release(optimizer_.get(), ids_[layer]));
  });
}

template <typename Net>
typename ShardedAdamW<Net>::View ShardedAdamW<Net>::view(int64_t index, int32_t slot) const {
  int64_t id = 0;
  int64_t offset = 0;
  int64_t count = 0;
  void *data = nullptr;
  check(zero_optimizer_view(optimizer_.get(), index, slot, &id, &offset, &count, &data));
  return {static_cast<float *>(data), count};
}

/// dlib's tensors own their memory: shards are copied into them and the step is added here, as dlib adds it.
template <typename Net>
void ShardedAdamW<Net>::update_shards(double learning_rate) {
  for (size_t i = 0; i < solvers_.size(); i++) {
    const View params = view(static_cast<int64_t>(i), ZERO_SLOT_PARAM);
    const View gradients = view(static_cast<int64_t>(i), ZERO_SLOT_GRAD);
    Shard shard;
    dlib::resizable_tensor gradient(params.count);
    shard.params.set_size(params.count);
    std::copy_n(params.data, params.count, shard.params.host_write_only());
    std::copy_n(gradients.data, params.count, gradient.host_write_only());
    const float *step = solvers_[i](static_cast<float>(learning_rate), shard, gradient).host();
    for (int64_t e = 0; e < params.count; e++) params.data[e] += step[e];
  }
}

template <typename Net>
Memory ShardedAdamW<Net>::memory() const {
  const Memory own = memory_of(net_);
  Memory memory = memory_of(optimizer_.get());
  memory.parameters += own.parameters;
  memory.gradients += own.gradients;
  for (size_t i = 0; i < solvers_.size(); i++) memory.states += view(static_cast<int64_t>(i), ZERO_SLOT_PARAM).count * kAdamStateBytes;
  return memory;
}

}  // namespace embedding
