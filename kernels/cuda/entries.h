/// @file Entries: the functions of the table in table.h. Internal to the folder.
#pragma once

#include "kernels/cuda/table.h"

namespace zero::kernels::cuda {

int32_t algorithm(const char *name);
int32_t prepare(int64_t device, const StepState *run, const Recipe *recipes, int64_t count, Scalars *out, void *stream);
int32_t prepare_each(int64_t device, const StepState *run, const Recipe *recipes, const UpdateSegment *pieces, int64_t count, Scalars *out,
                     void *stream);
int32_t update(int64_t device, int32_t algorithm, const Update *call, void *stream);
int32_t move_averages(int64_t device, const Update *call, void *stream);
int32_t lamb_norms(int64_t device, const Update *call, void *stream);
int32_t lamb_trust_ratios(int64_t device, const UpdateSegment *pieces, int64_t count, void *stream);
int32_t muon(int64_t device, const Matrix *call, void *stream);
int32_t decide(int64_t device, const DecisionRules *rules, const Found *found, StepState *run, void *stream);
int32_t end_step(int64_t device, StepState *run, int64_t counts, int64_t *words, int64_t word_count, void *stream);
int32_t put(int64_t device, void *out, const void *from, int64_t nbytes, void *stream);
int32_t count_updates(int64_t device, const StepState *run, int64_t *counts, const uint64_t *updated, int64_t count, void *stream);
int32_t reduce(int64_t device, const Reduce *call, int32_t *flag, void *stream);
int32_t all_within(int64_t device, const void *values, int64_t dtype, int64_t count, float limit, int32_t *flag, void *stream);
int32_t copy_within(int64_t device, void *out, const void *values, int64_t dtype, int64_t count, float limit, int32_t *flag, void *stream);
int32_t convert(int64_t device, void *out, int64_t out_dtype, const void *values, int64_t dtype, int64_t count, void *stream);
int32_t scale(int64_t device, float *out, const float *values, int64_t count, float factor, void *stream);
int32_t add(int64_t device, void *sum, int64_t sum_dtype, const void *values, int64_t dtype, int64_t count, float factor, void *stream);
int32_t multiply(int64_t device, const Product *call, void *stream);
int32_t add_squares(int64_t device, const void *values, int64_t dtype, int64_t count, int64_t *words, void *stream);
int32_t follow(int64_t device, float *masters, const void *values, int64_t dtype, int64_t count, void *stream);
int32_t encode(int64_t device, const Elements *codes, const void *values, int64_t dtype, int64_t count, const StepState *run, void *stream);
int32_t decode(int64_t device, void *out, int64_t dtype, const Elements *codes, int64_t count, void *stream);
int32_t agree(int64_t device, float *masters, const Elements *codes, int64_t count, int32_t masters_lead, void *stream);
int32_t hash(int64_t device, const Bytes *ranges, int64_t count, uint64_t *out, void *stream);

}  // namespace zero::kernels::cuda
