/// @file sharded: trains the classifier with libzero's AdamW, sharded over ranks.
#include "../embedding/ranks.h"
#include "classifier.h"
#include "sharded_adamw.h"

using namespace embedding;

static void train(Rank &run) {
  Classifier net;
  initialise(net, run.data(), run.options().seed);
  ShardedAdamW optimizer(net, dlib::adam(0, 0.9f, 0.999f), run.group(), run.sharding(), run.options().framework_update);
  for (int64_t step = 0; step < run.batches().count(); step++) {
    const Samples samples = to_matrices(run.data().train, run.batches().at(step));
    const double loss = find_gradients(net, samples);
    optimizer.update_parameters(run.batches().lr(step), samples.count());
    run.add_loss(loss, samples.count());
  }
  run.end(count_correct(run, net), optimizer.memory());
}

int main(int argc, char **argv) { return run_ranks(argc, argv, train); }
