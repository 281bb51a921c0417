/// @file sharded: trains the classifier with libzero's AdamW, sharded over ranks.
#include "../embedding/ranks.h"
#include "classifier.h"
#include "sharded_graph.h"

using namespace embedding;

static void train(Rank &run) {
  int64_t ranks = 0;
  check(zero_group_size(run.group(), &ranks));
  const int64_t part = part_of(run, ranks);
  Classifier model(part);
  ShardedGraph graph(model.graph(), run.group(), run.sharding());
  model.allocate(model.graph());
  for (ggml_tensor *parameter : model.parameters()) {
    const std::vector<float> values = model.first_values(parameter, run.options().seed);
    graph.set(parameter, values.data());
  }
  for (int64_t step = 0; step < run.batches().count(); step++) {
    const std::span<const int64_t> samples = run.batches().at(step);
    if (std::ssize(samples) != part) continue;
    model.set_batch(run.data().train, samples);
    ggml_graph_reset(model.graph());
    check(zero_optimizer_set_f64(graph.optimizer(), 0, ZERO_KEY_LR, run.batches().lr(step)));
    graph.compute(model.backend());
    graph.step();
    run.add_loss(model.loss(), part);
  }
  const int64_t correct = count_correct(run, model, [&] { graph.evaluate(model.backend(), model.scores()); });
  run.end(correct, memory_of(graph));
}

int main(int argc, char **argv) { return run_ranks(argc, argv, train); }
