/// @file sample: text that the model writes on from a beginning.
/// Knows nothing of training.
#ifndef GPT_SAMPLE_H
#define GPT_SAMPLE_H

#include "trainer.h"

/// Carries --sample on by --sample-length bytes, and prints both on rank 0. A collective, because
/// in stage 3 every byte gathers all parameters. Returns 0, or -1 after a line on standard error.
int sample_print(struct trainer *trainer);

/// Writes the logits that follow each of the first tokens of the text, as many as --context says, to
/// rank 0's file. A collective.
int sample_write_logits(struct trainer *trainer, FILE *file);

#endif
