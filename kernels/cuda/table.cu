/// @file The table of the kernels for CUDA devices.
#include "kernels/cuda/entries.h"
#include "kernels/cuda/launch.h"

/// Symbols for the module of CUDA's runtime, which is C and knows only the table's address.
extern "C" {
extern const zero::kernels::cuda::Table zero_cuda_kernels;
int32_t zero_cuda_load_kernels();
}

int32_t zero_cuda_load_kernels() { return zero::kernels::cuda::load_all(); }

constinit const zero::kernels::cuda::Table zero_cuda_kernels = {
    .struct_size = sizeof(zero::kernels::cuda::Table),
    .algorithm = zero::kernels::cuda::algorithm,
    .prepare = zero::kernels::cuda::prepare,
    .prepare_each = zero::kernels::cuda::prepare_each,
    .update = zero::kernels::cuda::update,
    .move_averages = zero::kernels::cuda::move_averages,
    .lamb_norms = zero::kernels::cuda::lamb_norms,
    .lamb_trust_ratios = zero::kernels::cuda::lamb_trust_ratios,
    .muon = zero::kernels::cuda::muon,
    .decide = zero::kernels::cuda::decide,
    .end_step = zero::kernels::cuda::end_step,
    .put = zero::kernels::cuda::put,
    .count_updates = zero::kernels::cuda::count_updates,
    .reduce = zero::kernels::cuda::reduce,
    .all_within = zero::kernels::cuda::all_within,
    .copy_within = zero::kernels::cuda::copy_within,
    .convert = zero::kernels::cuda::convert,
    .scale = zero::kernels::cuda::scale,
    .add = zero::kernels::cuda::add,
    .multiply = zero::kernels::cuda::multiply,
    .add_squares = zero::kernels::cuda::add_squares,
    .follow = zero::kernels::cuda::follow,
    .encode = zero::kernels::cuda::encode,
    .decode = zero::kernels::cuda::decode,
    .agree = zero::kernels::cuda::agree,
    .hash = zero::kernels::cuda::hash,
};
