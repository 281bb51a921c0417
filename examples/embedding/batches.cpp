/// @file batches: owners of what idx.c and sampler.c make.
#include "batches.h"

#include <new>
#include <stdexcept>

namespace embedding {

Dataset::Dataset(const Options &options, const std::string &name) {
  if (dataset_read(options.data.c_str(), name.c_str(), options.limit, &data_)) throw std::runtime_error("cannot read the images");
}

Dataset::~Dataset() { dataset_release(&data_); }

Batches::Batches(const Dataset &data, const Options &options, int64_t rank, int64_t ranks)
    : epochs_(options.epochs), lr_(options.lr), rank_(rank), ranks_(ranks) {
  if (sampler_create(&sampler_, data.count(), options.batch, static_cast<uint64_t>(options.seed))) throw std::bad_alloc();
}

Batches::~Batches() { sampler_release(&sampler_); }

std::span<const int64_t> Batches::at(int64_t step) {
  int64_t count = 0;
  const int64_t *samples = sampler_batch(&sampler_, step, &count);
  const int64_t first = rank_ * count / ranks_;
  return {samples + first, samples + (rank_ + 1) * count / ranks_};
}

}  // namespace embedding
