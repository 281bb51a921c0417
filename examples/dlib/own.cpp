/// @file own: trains the classifier with dlib::adam.
#include "classifier.h"

using namespace embedding;

static void train(Run &run) {
  Classifier net;
  initialise(net, run.data(), run.options().seed);
  std::vector<dlib::adam> solvers(Classifier::num_computational_layers, dlib::adam(0, 0.9f, 0.999f));
  for (int64_t step = 0; step < run.batches().count(); step++) {
    const Samples samples = to_matrices(run.data().train, run.batches().at(step));
    const double loss = find_gradients(net, samples);
    net.update_parameters(dlib::make_sstack(solvers), run.batches().lr(step));
    run.add_loss(loss, samples.count());
  }
  run.end(count_correct(run, net), memory_with_adam(net));
}

int main(int argc, char **argv) { return run_alone(argc, argv, train); }
