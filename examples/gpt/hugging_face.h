/// @file hugging_face: a model in files of Hugging Face's layout: a run begins with them and ends as them. The library reads and writes
/// tensors; here are their names and config.json.
/// Knows nothing of training.
#ifndef GPT_HUGGING_FACE_H
#define GPT_HUGGING_FACE_H

#include <zero/zero.h>

#include "options.h"
#include "shape.h"

/// All functions return 0, or -1 after a line on standard error.

/// Before ranks start: --init has a config.json, if any, of a model with these sizes, and --export may be written to.
int hugging_face_check(const struct options *options, const struct shape *shape);

/// The parameters of a sealed optimizer become those of --init, and it has begun. A collective.
int hugging_face_load(const struct options *options, const struct shape *shape, zero_group *group, zero_optimizer *optimizer);

/// Writes the parameters to --export and, into a folder, a config.json. A collective.
int hugging_face_export(const struct options *options, const struct shape *shape, zero_group *group, zero_optimizer *optimizer);

#endif
