/// @file sharded: trains the classifier with libzero's AdamW, sharded over ranks.
#include "../embedding/ranks.h"
#include "classifier.h"
#include "sharded_adamw.h"

using namespace embedding;

static void train(Rank &run) {
  torch::nn::Sequential model = make_classifier(run.options().seed);
  ShardedAdamW optimizer(model, torch::optim::AdamWOptions(run.options().lr), run.group(), run.sharding(), run.options().framework_update);
  for (int64_t step = 0; step < run.batches().count(); step++) {
    const Samples samples = to_tensors(run.data().train, run.batches().at(step));
    optimizer.param_groups()[0].options().set_lr(run.batches().lr(step));
    optimizer.zero_grad();
    const torch::Tensor loss = torch::nn::functional::cross_entropy(optimizer.forward(samples.images), samples.labels);
    loss.backward();
    optimizer.step();
    run.add_loss(loss.item<double>(), samples.count());
  }
  const int64_t correct = count_correct(run, [&](const torch::Tensor &images) { return optimizer.forward(images); });
  run.end(correct, memory_of(optimizer));
}

int main(int argc, char **argv) { return run_ranks(argc, argv, train); }
