/// @file sharded_adamw: a torch optimizer whose parameters, gradients and states lie in libzero, sharded over the ranks of a group.
/// Needs only libtorch, libzero, and handles.h, memory.h and adamw_states.h.
///
/// The tensors of the model keep their storage objects, whose memory is now libzero's: an address while a layer is in use, none otherwise.
/// What autograd saves of a parameter shares its storage, so a layer's parameters can go after its forward and come back before its
/// backward. A parameter that is used at another time is torch's error "data is not allocated yet".
#pragma once

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/utils/lambda_post_hook.h>
#include <torch/csrc/autograd/variable.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/optim/adamw.h>

#include <deque>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "../embedding/handles.h"
#include "adamw_states.h"

namespace embedding {

class ShardedAdamW : public torch::optim::Optimizer {
 public:
  /// Takes the model over; its parameters get the values of rank 0. A collective, as are forward, the backward of its result, and step.
  ///   model         a chain of layers, each gathered while it is in use; all parameters f32, trainable, and in one layer only
  ///   config        how to shard: its stage and bucket size
  ///   torch_update  torch::optim::AdamW updates the shards (its states are sharded with them), instead of libzero's AdamW
  ShardedAdamW(const torch::nn::Sequential &model, const torch::optim::AdamWOptions &options, zero_group *group, ConfigHandle config,
               bool torch_update = false);
  ~ShardedAdamW() override;
  ShardedAdamW(ShardedAdamW &&) = delete;

  /// The model's output; its backward, one per step, comes before this object goes. Where gradients are enabled, a rank counts by its
  /// samples, x.size(0).
  torch::Tensor forward(torch::Tensor x);

  /// Averages the gradients over the ranks and updates. NaN passes as it does in torch.
  torch::Tensor step(LossClosure closure = nullptr) override;

  /// Gathers all parameters, and gives them back before the next step: for what reads the whole model. acquire is a collective.
  void acquire();
  void release();

  friend Memory memory_of(const ShardedAdamW &optimizer);

  /// Errors: a run is saved and loaded slot by slot, with zero_optimizer_read and zero_optimizer_write.
  void save(torch::serialize::OutputArchive &archive) const override;
  void load(torch::serialize::InputArchive &archive) override;

 private:
  struct Parameter {
    torch::Tensor tensor;
    int64_t id = 0;
    int64_t users = 0;      ///< acquires without release
    bool expected = false;  ///< acquired for a backward that has not given the gradient yet
    std::shared_ptr<torch::autograd::Node> accumulator;
    uintptr_t hook = 0;
  };
  struct Layer {
    torch::nn::AnyModule module;
    std::vector<Parameter *> parameters;
  };

  const torch::optim::AdamWOptions &options() const;
  void create(ConfigHandle config, const char *algorithm);
  void add_layer(const torch::nn::AnyModule &module, const std::string &name);
  void add_parameter(const torch::Tensor &tensor, const std::string &name);
  void take_over(const Parameter &parameter);
  void make_torch_update();
  void set_hyper_parameters();
  void update_shards();

  void acquire(Parameter *parameter);
  void release(Parameter *parameter);
  void expect_gradient(Parameter *parameter);
  void give_gradient(Parameter *parameter);
  void expect_no_more();

  zero_group *group_;
  OptimizerHandle optimizer_;
  std::deque<Parameter> parameters_;
  std::deque<Layer> layers_;
  std::vector<torch::Tensor> shards_;  ///< this rank's pieces of parameters, in libzero's memory
  std::unique_ptr<torch::optim::AdamW> torch_update_;
  AbortOnThrow guard_;
};

namespace sharded_adamw {

/// The storage keeps its size; what it held is freed.
inline void set_address(const torch::Tensor &tensor, void *address) {
  tensor.storage().set_data_ptr_noswap(at::DataPtr(address, at::kCPU));
}

inline torch::Tensor view(zero_optimizer *optimizer, int64_t index, int32_t slot) {
  int64_t id = 0;
  int64_t offset = 0;
  int64_t count = 0;
  void *data = nullptr;
  check(zero_optimizer_view(optimizer, index, slot, &id, &offset, &count, &data));
  return torch::from_blob(data, {count});
}

}  // namespace sharded_adamw

inline ShardedAdamW::ShardedAdamW(const torch::nn::Sequential &model, const torch::optim::AdamWOptions &options, zero_group *group,
                                  ConfigHandle config, bool torch_update)
    : Optimizer(model->parameters(), std::make_unique<torch::optim::AdamWOptions>(options)), group_(group), guard_(group) {
  create(std::move(config), torch_update ? "custom" : "adamw");
  for (size_t i = 0; i < model->size(); i++) add_layer(model->begin()[static_cast<std::ptrdiff_t>(i)], std::to_string(i));
  check(zero_optimizer_seal(optimizer_.get()));
  for (const Parameter &parameter : parameters_) take_over(parameter);
  check(zero_optimizer_begin(optimizer_.get(), ZERO_SOURCE_SHARDS));
  if (torch_update) make_torch_update();
}

inline ShardedAdamW::~ShardedAdamW() {
  for (Parameter &parameter : parameters_) {
    parameter.accumulator->del_post_hook(parameter.hook);
    sharded_adamw::set_address(parameter.tensor, nullptr);
  }
}

inline void ShardedAdamW::create(ConfigHandle config, const char *algorithm) {
  check(zero_config_set_str(config.get(), ZERO_KEY_ALGORITHM, algorithm));
  check(zero_config_set_i64(config.get(), ZERO_KEY_DIVISOR, ZERO_DIVISOR_WEIGHTS));
  check(zero_config_set_i64(config.get(), ZERO_KEY_NONFINITE, ZERO_NONFINITE_PROPAGATE));
  optimizer_ = make_optimizer(group_, config);
}

inline void ShardedAdamW::add_layer(const torch::nn::AnyModule &module, const std::string &name) {
  const size_t first = parameters_.size();
  for (const auto &item : module.ptr()->named_parameters()) add_parameter(item.value(), name + "." + item.key());
  Layer &layer = layers_.emplace_back();
  layer.module = module;
  for (size_t i = first; i < parameters_.size(); i++) layer.parameters.push_back(&parameters_[i]);
}

/// The accumulator is the node of the graph that adds to the tensor's gradient; autograd itself holds it only weakly.
inline void ShardedAdamW::add_parameter(const torch::Tensor &tensor, const std::string &name) {
  TORCH_CHECK(tensor.scalar_type() == torch::kFloat32 && tensor.device().is_cpu(), name, ": only f32 parameters on the CPU can be sharded");
  TORCH_CHECK(tensor.requires_grad(), name, ": only trainable parameters can be sharded");
  TORCH_CHECK(tensor.is_contiguous() && tensor.storage().nbytes() == tensor.nbytes(), name, ": shares its storage with another tensor");
  for (const Parameter &other : parameters_) TORCH_CHECK(!other.tensor.is_same(tensor), name, ": belongs to an earlier layer too");
  Parameter &parameter = parameters_.emplace_back();
  parameter.tensor = tensor;
  check(zero_optimizer_add_param(optimizer_.get(), nullptr, name.c_str(), ZERO_DTYPE_F32, tensor.sizes().data(), tensor.dim(),
                                 &parameter.id));
  parameter.accumulator = torch::autograd::impl::grad_accumulator(tensor);
  parameter.hook = parameter.accumulator->add_post_hook(std::make_unique<torch::autograd::utils::LambdaPostHook>(
      [this, &parameter](const torch::autograd::variable_list &outputs, const torch::autograd::variable_list &) {
        give_gradient(&parameter);
        return outputs;
      }));
}

/// Rank 0 writes the values, each rank keeps its shard of them, and torch's memory is freed.
inline void ShardedAdamW::take_over(const Parameter &parameter) {
  int64_t rank = 0;
  check(zero_group_rank(group_, &rank));
  check(zero_optimizer_write(optimizer_.get(), parameter.id, ZERO_SLOT_PARAM, 0, parameter.tensor.data_ptr(),
                             rank == 0 ? parameter.tensor.numel() : 0, nullptr));
  sharded_adamw::set_address(parameter.tensor, nullptr);
}

inline void ShardedAdamW::make_torch_update() {
  int64_t count = 0;
  check(zero_optimizer_view_count(optimizer_.get(), &count));
  for (int64_t i = 0; i < count; i++) shards_.push_back(sharded_adamw::view(optimizer_.get(), i, ZERO_SLOT_PARAM));
  torch_update_ = std::make_unique<torch::optim::AdamW>(shards_, options());
}

inline const torch::optim::AdamWOptions &ShardedAdamW::options() const {
  TORCH_CHECK(param_groups_.size() == 1, "ShardedAdamW has one parameter group: that of its model");
  const auto &options = static_cast<const torch::optim::AdamWOptions &>(param_groups_[0].options());
  TORCH_CHECK(!options.amsgrad(), "ShardedAdamW has no amsgrad");
  return options;
}

inline torch::Tensor ShardedAdamW::forward(torch::Tensor x) {
  if (torch::GradMode::is_enabled()) check(zero_optimizer_set_weight(optimizer_.get(), weight_of(group_, x.size(0))));
  for (Layer &layer : layers_) {
    for (Parameter *parameter : layer.parameters) acquire(parameter);
    x = layer.module.forward(x);
    for (Parameter *parameter : layer.parameters) release(parameter);
    if (!x.requires_grad() || layer.parameters.empty()) continue;
    x.register_hook([this, &layer](const torch::Tensor &) {
      for (Parameter *parameter : layer.parameters) expect_gradient(parameter);
    });
  }
  return x;
}

inline torch::Tensor ShardedAdamW::step(LossClosure closure) {
  torch::Tensor loss;
  if (closure) {
    const at::AutoGradMode with_gradients(true);
    loss = closure();
  }
  expect_no_more();
  if (torch_update_) {
    check(zero_optimizer_reduce(optimizer_.get(), nullptr, nullptr));
    update_shards();
    check(zero_optimizer_gather(optimizer_.get(), nullptr));
  } else {
    set_hyper_parameters();
    check(zero_optimizer_step(optimizer_.get(), nullptr, nullptr));
  }
  return loss;
}

inline void ShardedAdamW::set_hyper_parameters() {
  const torch::optim::AdamWOptions &now = options();
  const std::pair<int32_t, double> values[] = {{ZERO_KEY_LR, now.lr()},
                                               {ZERO_KEY_BETA1, std::get<0>(now.betas())},
                                               {ZERO_KEY_BETA2, std::get<1>(now.betas())},
                                               {ZERO_KEY_EPSILON, now.eps()},
                                               {ZERO_KEY_WEIGHT_DECAY, now.weight_decay()}};
  for (const auto &[key, value] : values) check(zero_optimizer_set_f64(optimizer_.get(), 0, key, value));
}

/// Gradients lie in libzero's memory only between reduce and gather.
inline void ShardedAdamW::update_shards() {
  for (size_t i = 0; i < shards_.size(); i++) {
    shards_[i].mutable_grad() = sharded_adamw::view(optimizer_.get(), static_cast<int64_t>(i), ZERO_SLOT_GRAD);
  }
  torch_update_->param_groups()[0].set_options(std::make_unique<torch::optim::AdamWOptions>(options()));
  torch_update_->step();
  for (torch::Tensor &shard : shards_) shard.mutable_grad().reset();
}

inline void ShardedAdamW::acquire(Parameter *parameter) {
  if (parameter->users++ > 0) return;
  void *address = nullptr;
  check(zero_optimizer_param_acquire(optimizer_.get(), parameter->id, nullptr, 0, nullptr, &address));
  sharded_adamw::set_address(parameter->tensor, address);
}

inline void ShardedAdamW::release(Parameter *parameter) {
  if (--parameter->users > 0) return;
  sharded_adamw::set_address(parameter->tensor, nullptr);
  check(zero_optimizer_param_release(optimizer_.get(), parameter->id));
}

inline void ShardedAdamW::expect_gradient(Parameter *parameter) {
  acquire(parameter);
  parameter->expected = true;
}

/// At the end of a parameter's backward: libzero copies the gradient, torch keeps none.
inline void ShardedAdamW::give_gradient(Parameter *parameter) {
  const torch::Tensor gradient = parameter->tensor.grad().contiguous();
  check(zero_optimizer_grad_ready(optimizer_.get(), parameter->id, gradient.data_ptr(), 0, gradient.numel(), nullptr));
  parameter->tensor.mutable_grad().reset();
  parameter->expected = false;
  release(parameter);
}

/// A parameter that its layer's forward did not use has no backward.
inline void ShardedAdamW::expect_no_more() {
  for (Parameter &parameter : parameters_) {
    if (std::exchange(parameter.expected, false)) release(&parameter);
  }
}

inline void ShardedAdamW::acquire() {
  for (Parameter &parameter : parameters_) acquire(&parameter);
}

inline void ShardedAdamW::release() {
  for (Parameter &parameter : parameters_) release(&parameter);
}

inline Memory memory_of(const ShardedAdamW &optimizer) {
  Memory memory = memory_of(optimizer.optimizer_.get());
  if (optimizer.torch_update_) memory.states += state_nbytes(*optimizer.torch_update_);
  return memory;
}

inline void ShardedAdamW::save(torch::serialize::OutputArchive &) const {
  TORCH_CHECK(false, "the states of ShardedAdamW are saved with zero_optimizer_read");
}

inline void ShardedAdamW::load(torch::serialize::InputArchive &) {
  TORCH_CHECK(false, "the states of ShardedAdamW are loaded with zero_optimizer_write");
}

}  // namespace embedding
