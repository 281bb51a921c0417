/// @file classifier: the network, how samples become its inputs, and what is measured of a training. Both programs include it.
/// Knows nothing of libzero.
#pragma once

#include <dlib/dnn.h>
#include <dlib/matrix.h>

#include <cstdlib>
#include <mutex>
#include <vector>

#include "../embedding/run.h"
#include "net_memory.h"

namespace embedding {

/// A convolution that halves the image, and a dense layer.
template <int channels, typename Below>
using Convolution = dlib::max_pool<2, 2, 2, 2, dlib::relu<dlib::con<channels, 3, 3, 1, 1, Below>>>;
template <typename Below>
using Dense = dlib::relu<dlib::fc<256, Below>>;

using Image = dlib::matrix<unsigned char>;
using Convolutions = Convolution<32, Convolution<16, Convolution<8, dlib::input<Image>>>>;
using Classifier = dlib::loss_multiclass_log<dlib::fc<10, Dense<Dense<Dense<Dense<Dense<Convolutions>>>>>>>;

struct Samples {
  std::vector<Image> images;
  std::vector<unsigned long> labels;
  int64_t count() const { return static_cast<int64_t>(labels.size()); }
};

inline Samples to_matrices(const Dataset &data, std::span<const int64_t> numbers) {
  Samples samples;
  for (const int64_t number : numbers) {
    samples.images.emplace_back(dlib::mat(data.image(number), kSide, kSide));
    samples.labels.push_back(data.label(number));
  }
  return samples;
}

/// The same first values for the same seed, whichever thread asks. dlib draws them, with std::rand, when it first sees an image.
inline void initialise(Classifier &net, const Data &data, int64_t seed) {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  std::srand(static_cast<unsigned>(seed));
  const int64_t first[] = {0};
  net(to_matrices(data.train, first).images[0]);
}

/// Leaves the gradients of the mean loss in the net and returns that loss. A rank without samples has neither.
inline double find_gradients(Classifier &net, const Samples &samples) {
  if (samples.count() == 0) return 0;
  return net.compute_parameter_gradients(samples.images.begin(), samples.images.end(), samples.labels.begin());
}

/// How many of this run's tests the net classifies correctly.
inline int64_t count_correct(Run &run, Classifier &net) {
  int64_t correct = 0;
  for (int64_t step = 0; step < run.tests().per_epoch(); step++) {
    const Samples samples = to_matrices(run.data().test, run.tests().at(step));
    if (samples.count() == 0) continue;
    const std::vector<unsigned long> found = net(samples.images, samples.images.size());
    for (size_t i = 0; i < found.size(); i++) correct += found[i] == samples.labels[i];
  }
  return correct;
}

}  // namespace embedding
