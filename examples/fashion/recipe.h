/// @file recipe: which algorithm updates which parameters, at which rate: what --optimizer names.
/// Knows nothing of steps or precision.
#ifndef FASHION_RECIPE_H
#define FASHION_RECIPE_H

#include <stdint.h>
#include <zero/zero.h>

struct recipe {
  const char *name;
  const char *algorithm; /* of all parameters, but matrices when they have their own */
  const char *matrices;  /* algorithm of the parameters with two dimensions, or NULL */
  double lr;             /* first rate when none is given */
  double matrix_factor;  /* rate of the matrices over that of the others */
  double momentum;       /* of algorithm "sgd" */
};

/// NULL when no recipe has that name; recipe_names lists them.
const struct recipe *recipe_find(const char *name);
extern const char recipe_names[];

/// All below return 0, or -1 after a line on standard error.

/// The algorithm of the optimizer.
int recipe_fill(const struct recipe *recipe, zero_config *config);

/// Registers all parameters of the model in this dtype; matrices with an algorithm of their own are a second parameter set.
int recipe_add_params(const struct recipe *recipe, int32_t dtype, zero_optimizer *optimizer);

/// The rate of the next step.
int recipe_set_lr(const struct recipe *recipe, zero_optimizer *optimizer, double lr);

#endif
