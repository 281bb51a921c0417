/// @file model: the parameters `w` and `b` that optimizer scenarios train, on one rank.
#pragma once

#include <zero/zero.h>

#include "ranks.h"

/// Ids in order of registration.
enum { kW, kB, kParamCount };

struct model {
  struct rank *rank;
  int32_t dtype;
  zero_optimizer *optimizer;
  zero_step_result result; /* of the last step */
};

/// Elements of a parameter.
int64_t model_count(int64_t id);

/// A config of a stage, with buckets of 1024 bytes.
zero_config *model_config(int64_t stage);

/// Makes an optimizer with both parameters, not sealed. The config stays the caller's.
void model_create(struct model *model, struct rank *rank, const zero_config *config, int32_t dtype);

/// First values v(i, id) of rank 0, after seal.
void model_begin(struct model *model);

/// Gives the gradients of step t: v(i, 10 t + 3 id + rank), `b` before `w`, through acquired memory.
void model_give_gradients(struct model *model, int64_t t);

void model_step(struct model *model);

/// Says the hash of `w` and of `b`, which rank 0 reads.
void model_say_result(struct model *model);

void model_release(struct model *model);
