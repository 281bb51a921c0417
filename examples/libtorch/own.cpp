/// @file own: trains the classifier with torch::optim::AdamW.
#include "classifier.h"

using namespace embedding;

static void train(Run &run) {
  torch::nn::Sequential model = make_classifier(run.options().seed);
  torch::optim::AdamW optimizer(model->parameters(), torch::optim::AdamWOptions(run.options().lr));
  for (int64_t step = 0; step < run.batches().count(); step++) {
    const Samples samples = to_tensors(run.data().train, run.batches().at(step));
    optimizer.param_groups()[0].options().set_lr(run.batches().lr(step));
    optimizer.zero_grad();
    const torch::Tensor loss = torch::nn::functional::cross_entropy(model->forward(samples.images), samples.labels);
    loss.backward();
    optimizer.step();
    run.add_loss(loss.item<double>(), samples.count());
  }
  const int64_t correct = count_correct(run, [&](const torch::Tensor &images) { return model->forward(images); });
  run.end(correct, memory_of(optimizer));
}

int main(int argc, char **argv) { return run_alone(argc, argv, train); }
