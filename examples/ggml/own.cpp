/// @file own: trains the classifier with ggml's AdamW.
#include "adamw_nodes.h"
#include "classifier.h"

using namespace embedding;

static void train(Run &run) {
  const int64_t part = part_of(run, 1);
  Classifier model(part);
  AdamWNodes optimizer(model);
  model.allocate(optimizer.graph());
  for (ggml_tensor *parameter : model.parameters()) {
    const std::vector<float> values = model.first_values(parameter, run.options().seed);
    ggml_backend_tensor_set(parameter, values.data(), 0, ggml_nbytes(parameter));
  }
  for (int64_t step = 0; step < run.batches().count(); step++) {
    const std::span<const int64_t> samples = run.batches().at(step);
    if (std::ssize(samples) != part) continue;
    model.set_batch(run.data().train, samples);
    ggml_graph_reset(model.graph());
    optimizer.set_rate(run.batches().lr(step));
    ggml_backend_graph_compute(model.backend(), optimizer.graph());
    run.add_loss(model.loss(), part);
  }
  const int64_t correct = count_correct(run, model, [&] { ggml_backend_graph_compute(model.backend(), model.forward()); });
  run.end(correct, memory_of(model));
}

int main(int argc, char **argv) { return run_alone(argc, argv, train); }
