/// @file sharded_graph: a ggml graph whose parameters, gradients and optimizer states lie in libzero, sharded over the ranks of a group.
/// Needs only ggml, libzero, and handles.h and memory.h.
///
/// The graph is computed in segments. Before a segment its parameters get addresses (libzero gathers them in stage 3), and the gradients
/// that it writes; behind it libzero has these gradients, and reduces them while the next segments compute. Nothing is copied.
#pragma once

#include <ggml-backend.h>
#include <ggml.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "../embedding/handles.h"

namespace embedding {
namespace sharded_graph {

template <auto release>
struct Free {
  template <typename T>
  void operator()(T *handle) const {
    release(handle);
  }
};
using ContextHandle = std::unique_ptr<ggml_context, Free<ggml_free>>;
using BufferHandle = std::unique_ptr<ggml_backend_buffer, Free<ggml_backend_buffer_free>>;

/// Addresses without memory: where a tensor lies that has none. Whoever reads it ends the program there and then.
class NoMemory {
 public:
  explicit NoMemory(size_t nbytes) : nbytes_(nbytes) {
    address_ = mmap(nullptr, nbytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (address_ == MAP_FAILED) throw std::bad_alloc();
  }
  ~NoMemory() { munmap(address_, nbytes_); }
  NoMemory(const NoMemory &) = delete;
  NoMemory &operator=(const NoMemory &) = delete;
  void *address() const { return address_; }

 private:
  size_t nbytes_;
  void *address_;
};

/// A tensor that lies where it is put, with all views of it in a graph.
class Movable {
 public:
  explicit Movable(ggml_tensor *tensor) : tensor_(tensor) {}

  ggml_tensor *tensor() const { return tensor_; }
  void add_view(ggml_tensor *view) { views_.push_back(view); }
  void put(void *address);

 private:
  ggml_tensor *tensor_;
  std::vector<ggml_tensor *> views_;
  BufferHandle buffer_;
};

/// libzero packs small tensors, and ggml wants buffers at multiples of 32 bytes: the buffer of such a tensor begins before it.
inline void Movable::put(void *address) {
  if (tensor_->data == address) return;
  auto *const at = static_cast<char *>(address);
  const size_t before = reinterpret_cast<uintptr_t>(at) % 32;
  BufferHandle buffer(ggml_backend_cpu_buffer_from_ptr(at - before, before + ggml_nbytes(tensor_)));
  tensor_->buffer = nullptr;
  tensor_->data = nullptr;
  if (buffer == nullptr || ggml_backend_tensor_alloc(buffer.get(), tensor_, at) != GGML_STATUS_SUCCESS) throw std::bad_alloc();
  for (ggml_tensor *view : views_) {
    view->buffer = buffer.get();
    view->data = at + view->view_offs;
  }
  buffer_ = std::move(buffer);
}

inline ggml_tensor *root_of(ggml_tensor *tensor) { return tensor->view_src != nullptr ? tensor->view_src : tensor; }

/// Whether a node only looks at memory in another way.
inline bool computes_nothing(const ggml_tensor *node) {
  const ggml_op op = node->op;
  return op == GGML_OP_NONE || op == GGML_OP_VIEW || op == GGML_OP_RESHAPE || op == GGML_OP_PERMUTE || op == GGML_OP_TRANSPOSE;
}

inline std::vector<ggml_tensor *> nodes_of(ggml_cgraph *graph) {
  return std::vector<ggml_tensor *>(ggml_graph_nodes(graph), ggml_graph_nodes(graph) + ggml_graph_n_nodes(graph));
}

}  // namespace sharded_graph

class ShardedGraph {
 public:
  /// Takes over the parameters of a graph: its tensors with ggml_set_param(), in their order. Before the graph is allocated. A collective.
  ///   graph   with its backward (ggml_build_backward_expand() without accumulators); outlives this object, and is not extended
  ///   config  how to shard, and how to update: its stage, algorithm, hyper-parameters
  ShardedGraph(ggml_cgraph *graph, zero_group *group, const ConfigHandle &config);
  ShardedGraph(const ShardedGraph &) = delete;
  ShardedGraph &operator=(const ShardedGraph &) = delete;

  /// First values of a parameter: those that rank 0 gives. Before the first compute. A collective.
  void set(const ggml_tensor *parameter, const float *values);

  /// Computes all nodes, in place of ggml_backend_graph_compute(). Once in a step. A collective.
  void compute(ggml_backend_t backend);

  /// Computes the nodes up to one that lies before the backward: without gradients, any number of times. A collective.
  void evaluate(ggml_backend_t backend, const ggml_tensor *last);

  /// Updates the parameters with the mean of the ranks' gradients. A collective.
  void step();

  /// For checkpoints, statistics and hyper-parameters. Parameter i is the i-th of the graph.
  zero_optimizer *optimizer() const { return optimizer_.get(); }

 private:
  using Movable = sharded_graph::Movable;

  /// Nodes that are computed in one go.
  struct Segment {
    std::vector<ggml_tensor *> nodes;
    std::vector<size_t> parameters;  ///< that they read
    std::vector<size_t> gradients;   ///< that they write
    ggml_cgraph *graph = nullptr;

    bool reads(size_t number) const { return std::find(parameters.begin(), parameters.end(), number) != parameters.end(); }
    /// Whether a node that reads these parameters belongs to the next segment.
    bool ends_before(const std::vector<size_t> &read) const {
      const bool knows_all = std::all_of(read.begin(), read.end(), [this](size_t number) { return reads(number); });
      return !gradients.empty() || (!parameters.empty() && !knows_all);
    }
  };

  void add_parameters(zero_group *group, const ConfigHandle &config);
  void find_gradients();
  bool is_free(const ggml_tensor *gradient) const;
  void seal();
  void find_views();
  std::vector<Segment> segments_until(const ggml_tensor *last) const;
  void add_node(ggml_tensor *node, std::vector<Segment> *segments) const;
  static sharded_graph::ContextHandle make_graphs(std::vector<Segment> *segments);
  void compute(ggml_backend_t backend, const Segment &segment);
  void begin();
  void acquire(size_t parameter);
  void release(size_t parameter);
  void acquire_gradient(size_t parameter);
  void give_gradient(size_t parameter);
  size_t number_of(const ggml_tensor *parameter) const;

  ggml_cgraph *graph_;
  int64_t rank_ = 0;
  bool begun_ = false;
  OptimizerHandle optimizer_;
  std::unique_ptr<sharded_graph::NoMemory> nowhere_;
  std::vector<Movable> parameters_;
  std::vector<Movable> gradients_;
  std::unordered_map<const ggml_tensor *, size_t> numbers_;           ///< by parameter
  std::unordered_map<const ggml_tensor *, size_t> gradient_numbers_;  ///< by gradient
  std::vector<Segment> segments_;
  sharded_graph::ContextHandle copies_;  ///< of gradients that other nodes need too
  sharded_graph::ContextHandle graphs_;
  AbortOnThrow guard_;
};

inline ShardedGraph::ShardedGraph(ggml_cgraph *graph, zero_group *group, const ConfigHandle &config) : graph_(graph), guard_(group) {
  check(zero_group_rank(group, &rank_));
  add_parameters(group, config);
  find_gradients();
  seal();
  find_views();
  segments_ = segments_until(nullptr);
  graphs_ = make_graphs(&segments_);
  size_t most = 0;
  for (const Movable &parameter : parameters_) most = std::max(most, ggml_nbytes(parameter.tensor()));
  nowhere_ = std::make_unique<sharded_graph::NoMemory>(most);
  for (Movable &parameter : parameters_) parameter.put(nowhere_->address());
  for (Movable &gradient : gradients_) gradient.put(nowhere_->address());
}

inline void ShardedGraph::add_parameters(zero_group *group, const ConfigHandle &config) {
  optimizer_ = make_optimizer(group, config);
  for (ggml_tensor *node : sharded_graph::nodes_of(graph_)) {
    if ((node->flags & GGML_TENSOR_FLAG_PARAM) == 0) continue;
    const std::string name = ggml_get_name(node);
    if (node->type != GGML_TYPE_F32 || !ggml_is_contiguous(node) || node->view_src != nullptr || node->data != nullptr) {
      throw std::invalid_argument("ShardedGraph: parameter '" + name + "' must be a contiguous f32 tensor, no view, without memory yet");
    }
    std::vector<int64_t> shape(node->ne, node->ne + ggml_n_dims(node));
    std::reverse(shape.begin(), shape.end());
    int64_t id = 0;
    check(zero_optimizer_add_param(optimizer_.get(), nullptr, name.c_str(), ZERO_DTYPE_F32, shape.data(),
                                   static_cast<int64_t>(shape.size()), &id));
    numbers_.emplace(node, parameters_.size());
    parameters_.emplace_back(node);
  }
}

/// The nodes that compute gradients write them into libzero's memory. A gradient that is a view, or that other nodes read, is copied
/// there by a node of its own at the end.
inline void ShardedGraph::find_gradients() {
  const size_t count = parameters_.size();
  copies_.reset(ggml_init({count * ggml_tensor_overhead(), nullptr, true}));
  if (copies_ == nullptr) throw std::bad_alloc();
  for (size_t i = 0; i < count; i++) {
    ggml_tensor *gradient = ggml_graph_get_grad(graph_, parameters_[i].tensor());
    if (gradient == nullptr || ggml_graph_get_grad_acc(graph_, parameters_[i].tensor()) != nullptr) {
      throw std::invalid_argument(std::string("ShardedGraph: parameter '") + ggml_get_name(parameters_[i].tensor()) +
                                  "' needs a gradient without an accumulator: ggml_build_backward_expand(ctx, graph, NULL)");
    }
    if (!is_free(gradient)) {
      gradient = ggml_cont(copies_.get(), gradient);
      ggml_build_forward_expand(graph_, gradient);
    }
    gradient_numbers_.emplace(gradient, i);
    gradients_.emplace_back(gradient);
  }
}

inline bool ShardedGraph::is_free(const ggml_tensor *gradient) const {
  if (gradient->view_src != nullptr || gradient->data != nullptr || !ggml_is_contiguous(gradient) ||
      gradient_numbers_.count(gradient) != 0) {
    return false;
  }
  for (const ggml_tensor *node : sharded_graph::nodes_of(graph_)) {
    if (node->view_src == gradient || std::find(node->src, node->src + GGML_MAX_SRC, gradient) != node->src + GGML_MAX_SRC) return false;
  }
  return true;
}

/// Reductions run in the order in which the nodes compute gradients.
inline void ShardedGraph::seal() {
  std::vector<int64_t> order;
  for (const ggml_tensor *node : sharded_graph::nodes_of(graph_)) {
    const auto found = gradient_numbers_.find(node);
    if (found != gradient_numbers_.end()) order.push_back(static_cast<int64_t>(found->second));
  }
  check(zero_optimizer_set_order(optimizer_.get(), order.data(), static_cast<int64_t>(order.size())));
  check(zero_optimizer_seal(optimizer_.get()));
}

inline void ShardedGraph::find_views() {
  for (ggml_tensor *node : sharded_graph::nodes_of(graph_)) {
    const auto found = numbers_.find(node->view_src);
    if (found != numbers_.end()) parameters_[found->second].add_view(node);
  }
}

/// A segment ends behind a gradient, and before a node that reads further parameters.
inline void ShardedGraph::add_node(ggml_tensor *node, std::vector<Segment> *segments) const {
  std::vector<size_t> read;
  for (ggml_tensor *source : node->src) {
    if (source == nullptr || sharded_graph::computes_nothing(node)) continue;
    const auto found = numbers_.find(sharded_graph::root_of(source));
    if (found != numbers_.end()) read.push_back(found->second);
  }
  if (segments->empty() || segments->back().ends_before(read)) segments->emplace_back();
  Segment &segment = segments->back();
  segment.nodes.push_back(node);
  for (size_t number : read) {
    if (!segment.reads(number)) segment.parameters.push_back(number);
  }
  const auto written = gradient_numbers_.find(node);
  if (written != gradient_numbers_.end()) segment.gradients.push_back(written->second);
}

/// The nodes up to one, or all.
inline std::vector<ShardedGraph::Segment> ShardedGraph::segments_until(const ggml_tensor *last) const {
  std::vector<Segment> segments;
  for (ggml_tensor *node : sharded_graph::nodes_of(graph_)) {
    add_node(node, &segments);
    if (node == last) return segments;
  }
  if (last != nullptr) throw std::invalid_argument(std::string("ShardedGraph: '") + ggml_get_name(last) + "' is no node of the graph");
  return segments;
}

inline sharded_graph::ContextHandle ShardedGraph::make_graphs(std::vector<Segment> *segments) {
  size_t nbytes = 0;
  for (const Segment &segment : *segments) nbytes += ggml_graph_overhead_custom(segment.nodes.size(), false);
  sharded_graph::ContextHandle context(ggml_init({nbytes, nullptr, true}));
  if (context == nullptr) throw std::bad_alloc();
  for (Segment &segment : *segments) {
    segment.graph = ggml_new_graph_custom(context.get(), segment.nodes.size(), false);
    for (ggml_tensor *node : segment.nodes) ggml_graph_add_node(segment.graph, node);
  }
  return context;
}

inline size_t ShardedGraph::number_of(const ggml_tensor *parameter) const {
  const auto found = numbers_.find(parameter);
  if (found == numbers_.end()) {
    throw std::invalid_argument(std::string("ShardedGraph: '") + ggml_get_name(parameter) + "' is no parameter of the graph");
  }
  return found->second;
}

inline void ShardedGraph::set(const ggml_tensor *parameter, const float *values) {
  const int64_t count = rank_ == 0 ? ggml_nelements(parameter) : 0;
  check(zero_optimizer_write(optimizer_.get(), static_cast<int64_t>(number_of(parameter)), ZERO_SLOT_PARAM, 0, values, count, nullptr));
  begun_ = false;
}

inline void ShardedGraph::begin() {
  if (std::exchange(begun_, true)) return;
  check(zero_optimizer_begin(optimizer_.get(), ZERO_SOURCE_SHARDS));
}

inline void ShardedGraph::compute(ggml_backend_t backend) {
  begin();
  for (const Segment &segment : segments_) compute(backend, segment);
}

inline void ShardedGraph::evaluate(ggml_backend_t backend, const ggml_tensor *last) {
  begin();
  std::vector<Segment> segments = segments_until(last);
  for (const Segment &segment : segments) {
    if (!segment.gradients.empty()) throw std::invalid_argument("ShardedGraph: evaluate ends before the first gradient is computed");
  }
  const sharded_graph::ContextHandle context = make_graphs(&segments);
  for (const Segment &segment : segments) compute(backend, segment);
}

inline void ShardedGraph::compute(ggml_backend_t backend, const Segment &segment) {
  for (size_t number : segment.parameters) acquire(number);
  for (size_t number : segment.gradients) acquire_gradient(number);
  const ggml_status status = ggml_backend_graph_compute(backend, segment.graph);
  if (status != GGML_STATUS_SUCCESS) throw std::runtime_error(std::string("ShardedGraph: ") + ggml_status_to_string(status));
  for (size_t number : segment.gradients) give_gradient(number);
  for (size_t number : segment.parameters) release(number);
}

inline void ShardedGraph::step() { check(zero_optimizer_step(optimizer_.get(), nullptr, nullptr)); }

inline void ShardedGraph::acquire(size_t parameter) {
  void *address = nullptr;
  check(zero_optimizer_param_acquire(optimizer_.get(), static_cast<int64_t>(parameter), nullptr, 0, nullptr, &address));
  parameters_[parameter].put(address);
}

inline void ShardedGraph::release(size_t parameter) {
  parameters_[parameter].put(nowhere_->address());
  check(zero_optimizer_param_release(optimizer_.get(), static_cast<int64_t>(parameter)));
}

/// Nodes overwrite: what a micro-step before left there would be lost.
inline void ShardedGraph::acquire_gradient(size_t parameter) {
  void *address = nullptr;
  int64_t accumulate = 0;
  check(zero_optimizer_grad_acquire(optimizer_.get(), static_cast<int64_t>(parameter), nullptr, &address, &accumulate));
  if (accumulate != 0) throw std::logic_error("ShardedGraph: compute comes once in a step; micro-steps are not supported");
  gradients_[parameter].put(address);
}

inline void ShardedGraph::give_gradient(size_t parameter) {
  gradients_[parameter].put(nowhere_->address());
  const int64_t count = ggml_nelements(gradients_[parameter].tensor());
  check(zero_optimizer_grad_ready(optimizer_.get(), static_cast<int64_t>(parameter), nullptr, 0, count, nullptr));
}

inline Memory memory_of(const ShardedGraph &graph) { return memory_of(graph.optimizer()); }

}  // namespace embedding
