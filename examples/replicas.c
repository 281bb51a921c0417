/// @file replicas: see the header.
#include "replicas.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

const char replica_usage[] =
    "  --replica-ranks R    consecutive ranks share one replica of the model; -1: those of a host; default 0: all ranks\n"
    "  --param-ranks R      with --stage 3: consecutive ranks share the parameters, all ranks the states; -1: those of a host;\n"
    "                       default 0: parameters are shared as states are\n"
    "  --sync-every H       replicas make steps of their own and meet after every H; default 1: they make every step together\n"
    "  --sync-after N       before that, replicas make the first N steps together; default 0\n"
    "  --outer KIND         what happens when they meet: mean (default), or nesterov, with rate 0.7 and momentum 0.9 (DiLoCo)\n"
    "  --sync-fragments K   the model is cut into K parts, which meet in turn, each once in H steps; default 1\n"
    "  --sync-delay D       parts travel behind D steps before the result is used; default 0; below H / K\n"
    "  --sync-mix A         when replicas meet, their own values keep the weight A, from 0 (default) to 1\n"
    "  --neighbours KIND    none (default): replicas meet all others, or ring: each meets the one before it and the one behind\n"
    "                       it, with --sync-every from 2 on\n"
    "  --grad-code CODE     sums of gradients travel between replicas as f8, i8 or i4; default f32\n"
    "  --sync-code CODE     the same for changes of parameters when they meet\n"
    "  --gather-code CODE   parameters follow their masters by differences in f8, i8 or i4, with --stage 1 or 2; default f32\n"
    "  --compress HOW       how sums of gradients travel between replicas; the rest is sent later (--residual f32):\n"
    "                       topk:K     the K largest of each 256 values, K from 1 to 64\n"
    "                       sign       signs, and a mean magnitude for each 256 values\n"
    "                       1bit-adam:N  after N steps signs of the first moment of adam or adamw, without --clip-norm\n"
    "                       lowrank:R  matrices as factors of rank R, from 1 to 64, with --replica-ranks 1\n"
    "  --code-after N       nothing is coded before N steps were made; default 0\n"
    "  --residual KIND      what rounding to codes loses: none (default), or f32: it is added to the next step's gradients\n"
    "  --delay 1            each step applies the gradients of the step before, which are reduced behind this one, with --stage 1;\n"
    "                       default 0. It needs a lower rate\n"
    "  --flush-every K      every K-th step sends in full what is coded, with what was lost; default 0: none does\n"
    "  --strategy NAME      hsdp, diloco, zeropp or slow_link: sets those of these options that are not given;\n"
    "                       zeropp goes with --stage 3\n";

static int read_whole(const char *name, const char *text, long long least, int64_t *out) {
  char *end;
  errno = 0;
  const long long value = strtoll(text, &end, 10);
  if (!errno && end != text && !*end && value >= least && value <= 1 << 20) {
    *out = value;
    return 1;
  }
  fprintf(stderr, "%s: --%s %s: expected a whole number from %lld to %d\n", program_invocation_short_name, name, text, least, 1 << 20);
  return -1;
}

static int read_part(const char *name, const char *text, double *out) {
  char *end;
  const double value = strtod(text, &end);
  if (end != text && !*end && value >= 0 && value <= 1) {
    *out = value;
    return 1;
  }
  fprintf(stderr, "%s: --%s %s: expected a number from 0 to 1\n", program_invocation_short_name, name, text);
  return -1;
}

static int read_code(const char *name, const char *text, int64_t *out) {
  static const char *const kNames[] = {"f32", "f8", "i8", "i4"}; /* by zero_code */
  for (int code = ZERO_CODE_NONE; code <= ZERO_CODE_I4; code++) {
    if (strcmp(text, kNames[code]) != 0) continue;
    *out = code;
    return 1;
  }
  fprintf(stderr, "%s: --%s %s: expected f32, f8, i8 or i4\n", program_invocation_short_name, name, text);
  return -1;
}

/// The number from 1 on behind a name and a colon; 0: the text is another.
static int64_t read_count(const char *text, const char *name, long most) {
  const size_t length = strlen(name);
  if (strncmp(text, name, length) != 0 || !isdigit((unsigned char)text[length])) return 0;
  char *end;
  const long count = strtol(text + length, &end, 10);
  return count >= 1 && count <= most && !*end ? count : 0;
}

/// Sets what the library needs for one of the codes that lose most of a gradient.
static int read_compression(const char *name, const char *text, struct replica_options *options) {
  const int64_t warm_up = read_count(text, "1bit-adam:", 1 << 20);
  options->code_top = read_count(text, "topk:", 64);
  options->code_rank = read_count(text, "lowrank:", 64);
  if (strcmp(text, "sign") != 0 && !options->code_top && !options->code_rank && !warm_up) {
    fprintf(stderr, "%s: --%s %s: expected topk:K or lowrank:R with K and R from 1 to 64, sign, or 1bit-adam:N with N from 1 to %d\n",
            program_invocation_short_name, name, text, 1 << 20);
    return -1;
  }
  options->code_freeze = warm_up > 0;
  if (warm_up > 0) options->code_after = warm_up;
  options->grad_code = options->code_top ? ZERO_CODE_TOP : options->code_rank ? ZERO_CODE_LOW_RANK : ZERO_CODE_SIGN;
  options->residual = ZERO_RESIDUAL_F32;
  return 1;
}

int replica_option(struct replica_options *options, const char *name, const char *text) {
  if (strcmp(name, "replica-ranks") == 0) return read_whole(name, text, -1, &options->ranks);
  if (strcmp(name, "param-ranks") == 0) return read_whole(name, text, -1, &options->param_ranks);
  if (strcmp(name, "sync-every") == 0) return read_whole(name, text, 1, &options->every);
  if (strcmp(name, "sync-after") == 0) return read_whole(name, text, 0, &options->after);
  if (strcmp(name, "sync-fragments") == 0) return read_whole(name, text, 1, &options->fragments);
  if (strcmp(name, "sync-delay") == 0) return read_whole(name, text, 0, &options->delay);
  if (strcmp(name, "sync-mix") == 0) return read_part(name, text, &options->mix);
  if (strcmp(name, "grad-code") == 0) return read_code(name, text, &options->grad_code);
  if (strcmp(name, "gather-code") == 0) return read_code(name, text, &options->gather_code);
  if (strcmp(name, "sync-code") == 0) return read_code(name, text, &options->sync_code);
  if (strcmp(name, "compress") == 0) return read_compression(name, text, options);
  if (strcmp(name, "compress-momentum") == 0) return read_part(name, text, &options->code_momentum);
  if (strcmp(name, "code-after") == 0) return read_whole(name, text, 0, &options->code_after);
  if (strcmp(name, "flush-every") == 0) return read_whole(name, text, 0, &options->flush);
  if (strcmp(name, "delay") == 0) return read_whole(name, text, 0, &options->grad_delay);
  if (strcmp(name, "strategy") == 0) {
    options->strategy = text; /* the library knows the names */
    return 1;
  }
  if (strcmp(name, "neighbours") == 0) {
    options->neighbours = strcmp(text, "ring") == 0 ? ZERO_NEIGHBOURS_RING : ZERO_NEIGHBOURS_NONE;
    if (options->neighbours || strcmp(text, "none") == 0) return 1;
    fprintf(stderr, "%s: --neighbours %s: expected none or ring\n", program_invocation_short_name, text);
    return -1;
  }
  if (strcmp(name, "residual") == 0) {
    options->residual = strcmp(text, "f32") == 0;
    if (options->residual || strcmp(text, "none") == 0) return 1;
    fprintf(stderr, "%s: --residual %s: expected none or f32\n", program_invocation_short_name, text);
    return -1;
  }
  if (strcmp(name, "outer") != 0) return 0;
  options->nesterov = strcmp(text, "nesterov") == 0;
  if (options->nesterov || strcmp(text, "mean") == 0) return 1;
  fprintf(stderr, "%s: --outer %s: expected mean or nesterov\n", program_invocation_short_name, text);
  return -1;
}

/// Options that were not given are left to the strategy.
int replica_configure(const struct replica_options *options, zero_config *config) {
  const struct {
    int32_t key;
    int64_t value;
    const char *what;
  } kChosen[] = {{ZERO_KEY_REPLICA_RANKS, options->ranks, "set ranks of a replica"},
                 {ZERO_KEY_PARAM_RANKS, options->param_ranks, "set ranks that share parameters"},
                 {ZERO_KEY_SYNC_PERIOD, options->every, "set period"},
                 {ZERO_KEY_SYNC_AFTER, options->after, "set steps before the period"},
                 {ZERO_KEY_SYNC_FRAGMENTS, options->fragments, "set fragments"},
                 {ZERO_KEY_SYNC_DELAY, options->delay, "set delay"},
                 {ZERO_KEY_GRAD_CODE, options->grad_code, "set code of gradients"},
                 {ZERO_KEY_GATHER_CODE, options->gather_code, "set code of gathers"},
                 {ZERO_KEY_SYNC_CODE, options->sync_code, "set code of synchronisations"},
                 {ZERO_KEY_CODE_TOP, options->code_top, "set values that a code keeps"},
                 {ZERO_KEY_CODE_RANK, options->code_rank, "set rank of factors"},
                 {ZERO_KEY_CODE_AFTER, options->code_after, "set steps before codes"},
                 {ZERO_KEY_CODE_FREEZE, options->code_freeze, "set moments behind codes"},
                 {ZERO_KEY_NEIGHBOURS, options->neighbours, "set neighbours"},
                 {ZERO_KEY_RESIDUAL, options->residual, "set residual"},
                 {ZERO_KEY_GRAD_DELAY, options->grad_delay, "set delay of gradients"},
                 {ZERO_KEY_FLUSH_PERIOD, options->flush, "set period of full steps"}};
  for (size_t i = 0; i < sizeof kChosen / sizeof *kChosen; i++) {
    if (kChosen[i].value != 0 && failed(zero_config_set_i64(config, kChosen[i].key, kChosen[i].value), kChosen[i].what)) return -1;
  }
  if (options->strategy && failed(zero_config_set_str(config, ZERO_KEY_STRATEGY, options->strategy), "set strategy")) return -1;
  if (options->mix > 0 && failed(zero_config_set_f64(config, ZERO_KEY_SYNC_MIX, options->mix), "set mix")) return -1;
  if (options->code_momentum > 0 && (failed(zero_config_set_f64(config, ZERO_KEY_CODE_MOMENTUM, options->code_momentum), "set momentum") ||
                                     failed(zero_config_set_f64(config, ZERO_KEY_MOMENTUM, 0), "set no other momentum")))
    return -1;
  if (!options->nesterov) return 0;
  return failed(zero_config_set_f64(config, ZERO_KEY_OUTER_LR, 0.7), "set outer rate") ||
                 failed(zero_config_set_f64(config, ZERO_KEY_OUTER_MOMENTUM, 0.9), "set outer momentum")
             ? -1
             : 0;
}

int64_t replica_stop(const struct replica_options *options, int64_t step, const zero_step_result *result) {
  const int part = options->every > 1 || (options->every == 0 && options->strategy && strcmp(options->strategy, "diloco") == 0);
  return part && step >= options->after && !result->synced ? 0 : result->stop_reason;
}
