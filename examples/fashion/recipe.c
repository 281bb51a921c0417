/// @file recipe: the table of optimizers, and parameter sets.
/// Knows nothing of steps or precision.
#include "recipe.h"

#include <stddef.h>
#include <string.h>

#include "../check.h"
#include "model.h"

static const struct recipe kRecipes[] = {
    {"adamw", "adamw", NULL, 0.004, 0, 0},    {"adam", "adam", NULL, 0.004, 0, 0},  {"adagrad", "adagrad", NULL, 0.02, 0, 0},
    {"lamb", "lamb", NULL, 0.01, 0, 0},       {"lion", "lion", NULL, 0.0005, 0, 0}, {"sgd", "sgd", NULL, 0.05, 0, 0.9},
    {"muon", "adamw", "muon", 0.004, 2.5, 0},
};

const char recipe_names[] = "adamw, adam, adagrad, lamb, lion, sgd or muon";

enum { kMatrixSet = 1 };

const struct recipe *recipe_find(const char *name) {
  for (size_t i = 0; i < sizeof kRecipes / sizeof *kRecipes; i++) {
    if (strcmp(kRecipes[i].name, name) == 0) return &kRecipes[i];
  }
  return NULL;
}

int recipe_fill(const struct recipe *recipe, zero_config *config) {
  if (failed(zero_config_set_str(config, ZERO_KEY_ALGORITHM, recipe->algorithm), "set algorithm")) return -1;
  return recipe->momentum > 0 && failed(zero_config_set_f64(config, ZERO_KEY_MOMENTUM, recipe->momentum), "set momentum") ? -1 : 0;
}

static int add_matrix_set(const struct recipe *recipe, zero_config *set, zero_config *matrix, zero_optimizer *optimizer) {
  int64_t number = 0;
  return failed(zero_config_set_str(set, ZERO_KEY_ALGORITHM, recipe->matrices), "set algorithm") ||
                 failed(zero_optimizer_add_set(optimizer, set, &number), "zero_optimizer_add_set") ||
                 failed(zero_config_set_i64(matrix, ZERO_KEY_SET, number), "set parameter set")
             ? -1
             : 0;
}

/// `matrix` is the config of matrices, or NULL.
static int add_params(int32_t dtype, const zero_config *matrix, zero_optimizer *optimizer) {
  for (int i = 0; i < kTensorCount; i++) {
    const struct tensor *tensor = &model_tensors[i];
    int64_t id = 0;
    if (failed(
            zero_optimizer_add_param(optimizer, tensor->ndim == 2 ? matrix : NULL, tensor->name, dtype, tensor->shape, tensor->ndim, &id),
            "zero_optimizer_add_param")) {
      return -1;
    }
  }
  return 0;
}

int recipe_add_params(const struct recipe *recipe, int32_t dtype, zero_optimizer *optimizer) {
  zero_config *set = NULL;
  zero_config *matrix = NULL;
  if (!recipe->matrices) return add_params(dtype, NULL, optimizer);
  const int status = failed(zero_config_create(&set), "zero_config_create") || failed(zero_config_create(&matrix), "zero_config_create") ||
                     add_matrix_set(recipe, set, matrix, optimizer) || add_params(dtype, matrix, optimizer);
  zero_config_release(set);
  zero_config_release(matrix);
  return status ? -1 : 0;
}

int recipe_set_lr(const struct recipe *recipe, zero_optimizer *optimizer, double lr) {
  if (failed(zero_optimizer_set_f64(optimizer, 0, ZERO_KEY_LR, lr), "zero_optimizer_set_f64")) return -1;
  if (!recipe->matrices) return 0;
  return failed(zero_optimizer_set_f64(optimizer, kMatrixSet, ZERO_KEY_LR, lr * recipe->matrix_factor), "zero_optimizer_set_f64") ? -1 : 0;
}
