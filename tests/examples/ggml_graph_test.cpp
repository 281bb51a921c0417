/// @file ggml_graph_test: the header that joins ggml to libzero, against ggml alone. Tensors lie in libzero's memory while they are used;
/// steps are those of the gradients that ggml computes in memory of its own.
#include <ggml-alloc.h>
#include <ggml-cpu.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <thread>

#include <unistd.h>

#include <zero_frameworks/ggml/sharded_graph.h>

using embedding::check;

namespace {

constexpr int64_t kWidth = 40;
constexpr int64_t kBatch = 5;
constexpr double kTolerance = 1e-5;

void expect(bool holds, const char *what) {
  if (holds) return;
  std::printf("FAILED: %s\n", what);
  std::exit(1);
}

template <auto release>
using Owner = embedding::sharded_graph::Free<release>;

/// A weight that is used twice, a weight that is used as a view, and a bias whose gradient other nodes need too.
struct Model {
  std::unique_ptr<ggml_context, Owner<ggml_free>> context{ggml_init({size_t{1} << 20, nullptr, true})};
  std::unique_ptr<ggml_backend, Owner<ggml_backend_free>> backend{ggml_backend_cpu_init()};
  std::unique_ptr<ggml_gallocr, Owner<ggml_gallocr_free>> memory;
  std::vector<ggml_tensor *> parameters;
  ggml_tensor *input = ggml_new_tensor_2d(context.get(), GGML_TYPE_F32, kWidth, kBatch);
  ggml_tensor *last = nullptr;
  ggml_cgraph *graph = ggml_new_graph_custom(context.get(), 256, true);

  Model() {
    ggml_context *in = context.get();
    ggml_backend_cpu_set_n_threads(backend.get(), 1);
    ggml_tensor *twice = parameter("twice", ggml_new_tensor_2d(in, GGML_TYPE_F32, kWidth, kWidth));
    ggml_tensor *flat = parameter("flat", ggml_new_tensor_1d(in, GGML_TYPE_F32, (kWidth + 1) * kWidth));
    ggml_tensor *bias = parameter("bias", ggml_new_tensor_2d(in, GGML_TYPE_F32, kWidth, kBatch));
    ggml_tensor *small = parameter("small", ggml_new_tensor_1d(in, GGML_TYPE_F32, kWidth));
    ggml_set_input(input);
    ggml_tensor *layer = ggml_silu(in, ggml_add(in, ggml_mul_mat(in, twice, input), small));
    ggml_tensor *view = ggml_view_2d(in, flat, kWidth, kWidth, kWidth * sizeof(float), kWidth * sizeof(float));
    layer = ggml_silu(in, ggml_add(in, ggml_mul_mat(in, view, layer), bias));
    last = ggml_mul_mat(in, twice, layer);
    ggml_set_output(last);
    ggml_tensor *loss = ggml_sum(in, ggml_sqr(in, last));
    ggml_set_loss(loss);
    ggml_build_forward_expand(graph, loss);
    ggml_build_backward_expand(in, graph, nullptr);
  }

  ggml_tensor *parameter(const char *name, ggml_tensor *tensor) {
    ggml_set_param(tensor);
    ggml_set_name(tensor, name);
    parameters.push_back(tensor);
    return tensor;
  }

  void allocate() {
    memory.reset(ggml_gallocr_new(ggml_backend_get_default_buffer_type(backend.get())));
    expect(ggml_gallocr_alloc_graph(memory.get(), graph), "the graph is allocated");
  }

  void set_input(int64_t rank) {
    std::vector<float> values(kWidth * kBatch);
    for (size_t i = 0; i < values.size(); i++) values[i] = std::sin(static_cast<float>(i) + static_cast<float>(rank));
    ggml_backend_tensor_set(input, values.data(), 0, ggml_nbytes(input));
    ggml_graph_reset(graph);
  }
};

std::vector<float> first_values(const ggml_tensor *parameter) {
  std::vector<float> values(static_cast<size_t>(ggml_nelements(parameter)));
  for (size_t i = 0; i < values.size(); i++) values[i] = 0.3f * std::cos(static_cast<float>(i * 7 + values.size()));
  return values;
}

using Values = std::vector<std::vector<double>>;  ///< by parameter

/// What ggml alone computes: its parameters less the mean gradient of so many ranks.
Values stepped_by_ggml(int64_t ranks) {
  Values stepped;
  for (int64_t rank = 0; rank < ranks; rank++) {
    Model model;
    for (ggml_tensor *parameter : model.parameters) ggml_set_output(ggml_graph_get_grad(model.graph, parameter));
    model.allocate();
    for (ggml_tensor *parameter : model.parameters) {
      ggml_backend_tensor_set(parameter, first_values(parameter).data(), 0, ggml_nbytes(parameter));
    }
    model.set_input(rank);
    expect(ggml_backend_graph_compute(model.backend.get(), model.graph) == GGML_STATUS_SUCCESS, "ggml computes");
    for (size_t p = 0; p < model.parameters.size(); p++) {
      const std::vector<float> values = first_values(model.parameters[p]);
      if (rank == 0) stepped.emplace_back(values.begin(), values.end());
      std::vector<float> gradient(values.size());
      ggml_tensor *of = ggml_graph_get_grad(model.graph, model.parameters[p]);
      ggml_backend_tensor_get(of, gradient.data(), 0, ggml_nbytes(of));
      for (size_t i = 0; i < gradient.size(); i++) stepped[p][i] -= gradient[i] / static_cast<double>(ranks) / 100;
    }
  }
  return stepped;
}

/// ggml calls it between nodes: tensors that are not at the place of those without memory lie where libzero says.
struct Watch {
  const embedding::ShardedGraph *graph;
  Model *model;
  void *nowhere;
  std::vector<ggml_tensor *> gradients;
  std::vector<int64_t> seen;           ///< by parameter: times that it had memory
  std::vector<int64_t> seen_gradient;  ///< the same of its gradient

  static bool look(void *watch) {
    static_cast<Watch *>(watch)->look();
    return false;
  }

  void look() {
    for (size_t i = 0; i < model->parameters.size(); i++) {
      const auto id = static_cast<int64_t>(i);
      void *address = nullptr;
      int64_t add = 0;
      if (number(i)->data != nowhere) {
        check(zero_optimizer_param_acquire(graph->optimizer(), id, nullptr, 0, nullptr, &address));
        check(zero_optimizer_param_release(graph->optimizer(), id));
        expect(number(i)->data == address, "a parameter lies where libzero has it");
        seen[i]++;
      }
      if (gradients[i]->data != nowhere) {
        check(zero_optimizer_grad_acquire(graph->optimizer(), id, nullptr, &address, &add));
        expect(gradients[i]->data == address, "a gradient lies where libzero has it");
        seen_gradient[i]++;
      }
    }
  }

  /// libzero's numbers follow the nodes of the graph.
  ggml_tensor *number(size_t i) const { return by_number[i]; }
  std::vector<ggml_tensor *> by_number;
};

Watch watch_of(const embedding::ShardedGraph &graph, Model *model) {
  Watch watch = {&graph, model, model->parameters[0]->data, {}, std::vector<int64_t>(4), std::vector<int64_t>(4), {}};
  for (int n = 0; n < ggml_graph_n_nodes(model->graph); n++) {
    ggml_tensor *node = ggml_graph_node(model->graph, n);
    if ((node->flags & GGML_TENSOR_FLAG_PARAM) != 0) watch.by_number.push_back(node);
  }
  for (ggml_tensor *parameter : watch.by_number) {
    ggml_tensor *gradient = ggml_graph_get_grad(model->graph, parameter);
    for (int n = 0; n < ggml_graph_n_nodes(model->graph); n++) {  // the copy of one that cannot lie there itself
      ggml_tensor *node = ggml_graph_node(model->graph, n);
      if (node->op == GGML_OP_CONT && node->src[0] == gradient && node->data == watch.nowhere) gradient = node;
    }
    watch.gradients.push_back(gradient);
  }
  return watch;
}

void run_rank(const char *name, int64_t rank, int64_t ranks, int64_t stage, const Values &expected) {
  zero_group *group = nullptr;
  check(zero_group_create_local(name, rank, ranks, nullptr, &group));
  const embedding::GroupHandle owner(group);
  embedding::ConfigHandle config = embedding::make_config();
  check(zero_config_set_i64(config.get(), ZERO_KEY_STAGE, stage));
  check(zero_config_set_str(config.get(), ZERO_KEY_ALGORITHM, "sgd"));
  check(zero_config_set_f64(config.get(), ZERO_KEY_LR, 0.01));
  Model model;
  embedding::ShardedGraph graph(model.graph, group, config);
  model.allocate();
  for (ggml_tensor *parameter : model.parameters) {
    std::vector<float> values = first_values(parameter);
    if (rank != 0) std::fill(values.begin(), values.end(), 7.0f);  // those of rank 0 count
    graph.set(parameter, values.data());
  }
  Watch watch = watch_of(graph, &model);
  ggml_backend_cpu_set_abort_callback(model.backend.get(), Watch::look, &watch);
  model.set_input(rank);
  graph.evaluate(model.backend.get(), model.last);
  graph.compute(model.backend.get());
  graph.step();
  for (size_t i = 0; i < watch.seen.size(); i++) {
    expect(watch.seen[i] > 0, "each parameter is seen");
    expect(watch.seen_gradient[i] > 0, "each gradient is seen");
  }
  for (size_t p = 0; p < model.parameters.size(); p++) {
    size_t id = 0;
    while (watch.by_number[id] != model.parameters[p]) id++;
    std::vector<float> got(expected[p].size());
    check(zero_optimizer_read(graph.optimizer(), static_cast<int64_t>(id), ZERO_SLOT_PARAM, 0, got.data(), static_cast<int64_t>(got.size()),
                              nullptr));
    for (size_t i = 0; i < got.size(); i++) {
      expect(std::abs(got[i] - expected[p][i]) <= kTolerance, "a step is that of ggml's gradients");
    }
  }
}

/// ggml names the extent of neighbouring elements first, libzero last: as files have them.
void export_shapes(const std::string &path) {
  zero_group *group = nullptr;
  check(zero_group_create_local("ggml_graph_test", 0, 1, nullptr, &group));
  const embedding::GroupHandle owner(group);
  Model model;
  embedding::ShardedGraph graph(model.graph, group, embedding::make_config());
  for (ggml_tensor *parameter : model.parameters) graph.set(parameter, first_values(parameter).data());
  model.allocate();
  model.set_input(0);
  graph.compute(model.backend.get());
  graph.step();
  zero_checkpoint *checkpoint = nullptr;
  check(zero_checkpoint_create(group, nullptr, &checkpoint));
  check(zero_checkpoint_add_optimizer(checkpoint, "", graph.optimizer()));
  check(zero_checkpoint_export(checkpoint, path.c_str(), 0, nullptr, nullptr));
  zero_checkpoint_release(checkpoint);
  std::ifstream file(path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  const size_t bias = bytes.find("\"bias\"");
  const std::string shape = "[" + std::to_string(kBatch) + "," + std::to_string(kWidth) + "]";
  expect(bias != std::string::npos && bytes.find(shape, bias) < bytes.find('}', bias), "an export has row-major shapes");
}

/// A graph that cannot be taken over is refused with the name of the parameter.
void refuse_graphs() {
  zero_group *group = nullptr;
  check(zero_group_create_local("ggml_graph_test", 0, 1, nullptr, &group));
  const embedding::GroupHandle owner(group);
  Model model;
  model.allocate();
  try {
    embedding::ShardedGraph graph(model.graph, group, embedding::make_config());
  } catch (const std::invalid_argument &error) {
    expect(std::string(error.what()).find("'twice'") != std::string::npos, "the error names the parameter");
    return;
  }
  expect(false, "a graph whose parameters have memory is refused");
}

}  // namespace

int main(int argc, char **argv) {
  expect(argc == 2, "usage: ggml_graph_test FILE.safetensors");
  for (int64_t ranks = 1; ranks <= 3; ranks++) {
    const Values expected = stepped_by_ggml(ranks);
    for (int64_t stage = 0; stage <= 3; stage++) {
      const std::string name = "ggml_graph_test." + std::to_string(getpid()) + "." + std::to_string(ranks) + "." + std::to_string(stage);
      std::vector<std::thread> threads;
      for (int64_t rank = 0; rank < ranks; rank++) {
        threads.emplace_back([&, rank] { run_rank(name.c_str(), rank, ranks, stage, expected); });
      }
      for (std::thread &thread : threads) thread.join();
      std::printf("%d ranks, stage %d: addresses and steps are right\n", static_cast<int>(ranks), static_cast<int>(stage));
    }
  }
  export_shapes(argv[1]);
  refuse_graphs();
}
