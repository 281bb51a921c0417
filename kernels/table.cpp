/// @file The table of one target; compiled once per target.
#include "kernels/target.h"

#define ZERO_QUOTE(name) #name
#define ZERO_NAME_OF(name) ZERO_QUOTE(name)
#define ZERO_AND_ENTRY(kernel, Algorithm) , .kernel = kernel

namespace zero::kernels::ZERO_KERNEL_NAMESPACE {

constinit const Table kTable = {
    .target = ZERO_NAME_OF(ZERO_KERNEL_NAMESPACE),
    .reduce = reduce,
    .all_within = all_within,
    .copy_within = copy_within,
    .stream = stream,
    .flush = flush,
    .scale = scale,
    .widen = widen,
    .narrow = narrow,
    .random_words = random_words,
    .narrow_stochastic = narrow_stochastic,
    .join = join,
    .split = split,
    .encode = encode,
    .decode = decode,
    .add = add,
    .clamp = clamp,
    .average = average,
    .add_squares = add_squares ZERO_UPDATE_KERNELS(ZERO_AND_ENTRY),
    .lamb = lamb,
    .lamb_moments = lamb_moments,
    .lamb_direction = lamb_direction,
    .multiply = multiply,
    .multiply_symmetric = multiply_symmetric,
    .combine = combine,
    .interpolate = interpolate,
};

}  // namespace zero::kernels::ZERO_KERNEL_NAMESPACE
