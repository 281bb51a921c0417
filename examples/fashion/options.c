/// @file options: the command line of train_fashion, read with getopt_long.
/// Knows nothing of what the options do.
#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zero/zero.h>

#include "../whole_option.h"
#include "../check.h"
#include "report.h"

static const char kUsage[] =
    "usage: train_fashion [options]\n"
    "Trains a small convolutional classifier on Fashion-MNIST, sharded over ranks with libzero.\n"
    "  --ranks N            ranks of this host, default 4; not under a launcher (mpirun, srun, torchrun), whose ranks count\n"
    "  --mode MODE          ranks are threads (default) or processes; not under a launcher\n"
    "  --device D           where the model is computed: cpu (default), cuda:N, or cuda: the first device; under a launcher\n"
    "                       rank i of a host takes its device i\n"
    "  --tier T             where libzero keeps parameters, gradients and states with --device cuda: device (default), or\n"
    "                       host, which ranks on several hosts need\n"
    "  --stage N            0 to 3: what is sharded: nothing, optimizer states, + gradients, + parameters; default 3\n"
    "  --bucket-bytes N     size of a gradient bucket; default 65536\n"
    "  --data DIR           folder of the *-ubyte.gz files; default /usr/share/datasets/fashion-mnist\n"
    "  --epochs N           default 8\n"
    "  --batch N            samples per step of all ranks together; default 192\n"
    "  --steps N            stop after this many steps; default 0: after all epochs\n"
    "  --optimizer NAME     adamw (default), adam, adagrad, lamb, lion, sgd, or muon for matrices with adamw for the rest\n"
    "  --compress-momentum M  with --optimizer sgd and --compress topk:K: momentum before the code, in the place of sgd's own\n"
    "  --lr X               first learning rate, falling to 0 over all epochs; default 0.004 (other optimizers: their own)\n"
    "  --precision P        of parameters and gradients: f32 (default); bf16 or f16, with fp32 master weights\n"
    "  --accumulate K       take each step in K micro-steps, each on a K-th of the step's samples; default 1\n"
    "  --accumulate-manner M  local (default): add gradients up on each rank; reduce: reduce them in each micro-step\n"
    "  --clip-norm X        scale gradients down to a global norm of at most X; default 0: never\n"
    "  --loss-scale S       multiply the loss by S; dynamic: by a scale that follows overflows; default 1\n"
    "  --first-scale S      where the dynamic scale begins; default 65536\n"
    "  --seed N             of first values and shuffles; default 1\n"
    "  --divisor D          weights (default: average over samples), ranks (average over ranks), one (sum over ranks)\n"
    "  --limit N            train on the first N images only; default 0: all\n"
    "  --caller-memory      keep gradients and fetched parameters in the program's own memory\n"
    "  --init FILE          first values: all parameters as raw 32-bit floats\n"
    "  --losses FILE        write the loss of every step, one per line\n"
    "  --report             print a table row: memory, traffic, accuracy, hash\n"
    "  --report-header      print the head of that table and stop\n"
    "  --report-file FILE   write the same and more as lines of key=value\n"
    "  --quiet              no progress line\n"
    "  --help               print this and stop\n";

/// Of options.tier while --tier was not given.
enum { kNoTier = -1 };

static int wrong(const char *option, const char *value, const char *expected) {
  fprintf(stderr, "train_fashion: --%s %s: expected %s\n", option, value, expected);
  return -1;
}

static int read_i64(const char *option, const char *text, int64_t min, int64_t max, int64_t *out) {
  char expected[96];
  char *end = NULL;
  errno = 0;
  const long long value = strtoll(text, &end, 10);
  if (errno || end == text || *end || value < min || value > max) {
    snprintf(expected, sizeof expected, "a whole number from %lld to %lld", (long long)min, (long long)max);
    return wrong(option, text, expected);
  }
  *out = value;
  return 0;
}

static int read_f64(const char *option, const char *text, double min, const char *expected, double *out) {
  char *end = NULL;
  const double value = strtod(text, &end);
  if (end == text || *end || !isfinite(value) || value < min) return wrong(option, text, expected);
  *out = value;
  return 0;
}

static int read_rate(const char *option, const char *text, double *out) { return read_f64(option, text, 0, "a number of 0 or more", out); }

/// The scales that libzero takes by default when they are dynamic.
static int read_scale(const char *option, const char *text, double *out) {
  static const char kExpected[] = "dynamic or a number from 1 to 4294967296";
  const char *expected = option[0] == 'l' ? kExpected : kExpected + sizeof "dynamic or " - 1;
  if (read_f64(option, text, 1, expected, out)) return -1;
  return *out <= 0x1p32 ? 0 : wrong(option, text, expected);
}

/// The position of `text` in `names`, which ends with NULL.
static int read_name(const char *option, const char *text, const char *const *names, const char *expected, int *out) {
  for (int i = 0; names[i]; i++) {
    if (strcmp(text, names[i]) == 0) {
      *out = i;
      return 0;
    }
  }
  return wrong(option, text, expected);
}

static int read_mode(const char *option, const char *text, enum mode *out) {
  static const char *const kNames[] = {"threads", "processes", NULL};
  static const enum mode kModes[] = {kModeThreads, kModeProcesses};
  int at = 0;
  if (read_name(option, text, kNames, "threads or processes", &at)) return -1;
  *out = kModes[at];
  return 0;
}

/// cuda is cuda:0, unless settle() finds that each rank has its own.
static int read_device(const char *option, const char *text, int64_t *out) {
  static const char *const kNames[] = {"cpu", "cuda", NULL};
  int at = 0;
  if (strncmp(text, "cuda:", 5) == 0) return read_i64(option, text + 5, 0, 4095, out);
  if (read_name(option, text, kNames, "cpu, cuda or cuda:N", &at)) return -1;
  *out = at - 1;
  return 0;
}

static int read_tier(const char *option, const char *text, int32_t *out) {
  static const char *const kNames[] = {"host", "device", NULL};
  static const int32_t kTiers[] = {ZERO_TIER_HOST, ZERO_TIER_DEVICE};
  int at = 0;
  if (read_name(option, text, kNames, "host or device", &at)) return -1;
  *out = kTiers[at];
  return 0;
}

static int read_divisor(const char *option, const char *text, int32_t *out) {
  static const char *const kNames[] = {"ranks", "one", "weights", NULL};
  static const int32_t kDivisors[] = {ZERO_DIVISOR_RANKS, ZERO_DIVISOR_ONE, ZERO_DIVISOR_WEIGHTS};
  int at = 0;
  if (read_name(option, text, kNames, "weights, ranks or one", &at)) return -1;
  *out = kDivisors[at];
  return 0;
}

static int read_precision(const char *option, const char *text, int32_t *out) {
  static const char *const kNames[] = {"f32", "bf16", "f16", NULL};
  static const int32_t kDtypes[] = {ZERO_DTYPE_F32, ZERO_DTYPE_BF16, ZERO_DTYPE_F16};
  int at = 0;
  if (read_name(option, text, kNames, "f32, bf16 or f16", &at)) return -1;
  *out = kDtypes[at];
  return 0;
}

static int read_manner(const char *option, const char *text, int32_t *out) {
  static const char *const kNames[] = {"local", "reduce", NULL};
  static const int32_t kKinds[] = {ZERO_MICRO_STEP_LOCAL, ZERO_MICRO_STEP_REDUCE};
  int at = 0;
  if (read_name(option, text, kNames, "local or reduce", &at)) return -1;
  *out = kKinds[at];
  return 0;
}

static int read_recipe(const char *option, const char *text, const struct recipe **out) {
  *out = recipe_find(text);
  return *out ? 0 : wrong(option, text, recipe_names);
}

static int read_loss_scale(const char *option, const char *text, struct options *out) {
  out->dynamic_scale = strcmp(text, "dynamic") == 0;
  return out->dynamic_scale ? 0 : read_scale(option, text, &out->loss_scale);
}

enum {
  kRanks = 1000,
  kMode,
  kDevice,
  kTier,
  kStage,
  kBucket,
  kData,
  kEpochs,
  kBatch,
  kSteps,
  kOptimizer,
  kLr,
  kPrecision,
  kAccumulate,
  kManner,
  kClip,
  kLossScale,
  kFirstScale,
  kSeed,
  kDivisor,
  kLimit,
  kCaller,
  kInit,
  kLosses,
  kReport,
  kHeader,
  kReportFile,
  kQuiet,
  kHelp,
  kSaves,
  kReplicas,
  kServer,
  kStaleness
};

static const struct option kOptions[] = {
    {"ranks", required_argument, NULL, kRanks},
    {"mode", required_argument, NULL, kMode},
    {"device", required_argument, NULL, kDevice},
    {"tier", required_argument, NULL, kTier},
    {"stage", required_argument, NULL, kStage},
    {"bucket-bytes", required_argument, NULL, kBucket},
    {"data", required_argument, NULL, kData},
    {"epochs", required_argument, NULL, kEpochs},
    {"batch", required_argument, NULL, kBatch},
    {"steps", required_argument, NULL, kSteps},
    {"optimizer", required_argument, NULL, kOptimizer},
    {"lr", required_argument, NULL, kLr},
    {"precision", required_argument, NULL, kPrecision},
    {"accumulate", required_argument, NULL, kAccumulate},
    {"accumulate-manner", required_argument, NULL, kManner},
    {"clip-norm", required_argument, NULL, kClip},
    {"loss-scale", required_argument, NULL, kLossScale},
    {"first-scale", required_argument, NULL, kFirstScale},
    {"seed", required_argument, NULL, kSeed},
    {"divisor", required_argument, NULL, kDivisor},
    {"limit", required_argument, NULL, kLimit},
    {"caller-memory", no_argument, NULL, kCaller},
    {"init", required_argument, NULL, kInit},
    {"losses", required_argument, NULL, kLosses},
    {"report", no_argument, NULL, kReport},
    {"report-header", no_argument, NULL, kHeader},
    {"report-file", required_argument, NULL, kReportFile},
    {"quiet", no_argument, NULL, kQuiet},
    {"help", no_argument, NULL, kHelp},
    {"save", required_argument, NULL, kSaves},
    {"save-every", required_argument, NULL, kSaves},
    {"keep", required_argument, NULL, kSaves},
    {"resume", no_argument, NULL, kSaves},
    {"stop-exit", required_argument, NULL, kSaves},
    {"replica-ranks", required_argument, NULL, kReplicas},
    {"param-ranks", required_argument, NULL, kReplicas},
    {"sync-every", required_argument, NULL, kReplicas},
    {"sync-after", required_argument, NULL, kReplicas},
    {"sync-fragments", required_argument, NULL, kReplicas},
    {"sync-delay", required_argument, NULL, kReplicas},
    {"sync-mix", required_argument, NULL, kReplicas},
    {"outer", required_argument, NULL, kReplicas},
    {"neighbours", required_argument, NULL, kReplicas},
    {"grad-code", required_argument, NULL, kReplicas},
    {"gather-code", required_argument, NULL, kReplicas},
    {"sync-code", required_argument, NULL, kReplicas},
    {"compress", required_argument, NULL, kReplicas},
    {"compress-momentum", required_argument, NULL, kReplicas},
    {"code-after", required_argument, NULL, kReplicas},
    {"residual", required_argument, NULL, kReplicas},
    {"flush-every", required_argument, NULL, kReplicas},
    {"delay", required_argument, NULL, kReplicas},
    {"strategy", required_argument, NULL, kReplicas},
    {"server", required_argument, NULL, kServer},
    {"staleness", required_argument, NULL, kStaleness},
    {NULL, 0, NULL, 0},
};

/// Options with a value that must be checked. The bounds are those of the example; libzero checks its own.
static int read_value(int option, const char *name, const char *text, struct options *out) {
  switch (option) {
    case kRanks:
      return read_i64(name, text, 1, 1024, &out->ranks);
    case kMode:
      return read_mode(name, text, &out->mode);
    case kDevice:
      out->own_device = strcmp(text, "cuda") == 0;
      return read_device(name, text, &out->device);
    case kTier:
      return read_tier(name, text, &out->tier);
    case kStage:
      return read_i64(name, text, 0, 3, &out->stage);
    case kBucket:
      return read_i64(name, text, 1024, INT64_C(1) << 40, &out->bucket_nbytes);
    case kEpochs:
      return read_i64(name, text, 1, 100000, &out->epochs);
    case kBatch:
      return read_i64(name, text, 1, 1000000, &out->batch);
    case kSteps:
      return read_i64(name, text, 0, INT64_C(1) << 40, &out->steps);
    case kOptimizer:
      return read_recipe(name, text, &out->recipe);
    case kLr:
      return read_rate(name, text, &out->lr);
    case kPrecision:
      return read_precision(name, text, &out->dtype);
    case kAccumulate:
      return read_i64(name, text, 1, 1000000, &out->accumulate);
    case kManner:
      return read_manner(name, text, &out->manner);
    case kClip:
      return read_rate(name, text, &out->clip_norm);
    case kLossScale:
      return read_loss_scale(name, text, out);
    case kFirstScale:
      return read_scale(name, text, &out->first_scale);
    case kSeed:
      return read_i64(name, text, 0, INT64_MAX, &out->seed);
    case kDivisor:
      return read_divisor(name, text, &out->divisor);
    case kServer:
      return read_i64(name, text, 1, 1023, &out->servers.count);
    case kStaleness:
      return read_i64(name, text, 0, INT64_C(1) << 40, &out->servers.staleness);
    default:
      return read_i64(name, text, 0, INT64_MAX, &out->limit);
  }
}

/// One option of the command line. kOutcomeRun: read on.
static enum outcome take(int option, const char *name, const char *text, struct options *out) {
  switch (option) {
    case '?':
      return kOutcomeWrong; /* getopt_long has written its line */
    case kHelp:
      fputs(kUsage, stdout);
      fputs(save_usage, stdout);
      fputs(replica_usage, stdout);
      fputs(server_usage, stdout);
      return kOutcomeDone;
    case kHeader:
      report_header();
      return kOutcomeDone;
    case kData:
      out->data = text;
      break;
    case kInit:
      out->init = text;
      break;
    case kLosses:
      out->losses = text;
      break;
    case kReportFile:
      out->report_file = text;
      break;
    case kReport:
      out->report = 1;
      break;
    case kQuiet:
      out->quiet = 1;
      break;
    case kCaller:
      out->caller_memory = 1;
      break;
    case kSaves:
      return save_option(&out->saves, name, text) < 0 ? kOutcomeWrong : kOutcomeRun;
    case kReplicas:
      return replica_option(&out->replicas, name, text) < 0 ? kOutcomeWrong : kOutcomeRun;
    default:
      return read_value(option, name, text, out) ? kOutcomeWrong : kOutcomeRun;
  }
  return kOutcomeRun;
}

/// The ranks are those of the launcher, where there is one; otherwise those that the options ask for.
static int settle_ranks(struct options *out) {
  char variable[64];
  if (failed(zero_group_launcher(variable, sizeof variable, NULL), "zero_group_launcher")) return -1;
  if (*variable != '\0' && (out->ranks != 0 || out->mode != kModeNotGiven)) {
    fprintf(stderr, "train_fashion: --%s is for ranks that this program starts, but a launcher has started them (%s is %s)\n",
            out->ranks != 0 ? "ranks" : "mode", variable, getenv(variable));
    return -1;
  }
  if (*variable != '\0') {
    out->mode = kModeLauncher;
    return 0;
  }
  if (out->mode == kModeNotGiven) out->mode = kModeThreads;
  if (out->ranks == 0) out->ranks = 4;
  return 0;
}

/// What follows from several options.
static int settle(struct options *out) {
  if (settle_ranks(out) || server_options_settle(&out->servers, out->ranks) || save_options_settle(&out->saves)) return -1;
  if (out->servers.count > 0) out->divisor = ZERO_DIVISOR_RANKS; /* a worker makes the mean over its batch */
  if (out->tier != kNoTier && out->device < 0) {
    fprintf(stderr, "train_fashion: --tier is for --device cuda\n");
    return -1;
  }
  if (out->tier == kNoTier) out->tier = out->device < 0 ? ZERO_TIER_HOST : ZERO_TIER_DEVICE;
  out->own_device = out->own_device && out->mode == kModeLauncher;
  if (out->lr < 0) out->lr = out->recipe->lr;
  if (out->replicas.code_momentum > 0 && strcmp(out->recipe->algorithm, "sgd") != 0) {
    fprintf(stderr, "train_fashion: --compress-momentum is for --optimizer sgd, whose momentum it replaces\n");
    return -1;
  }
  if (out->first_scale > 0 && !out->dynamic_scale) {
    fprintf(stderr, "train_fashion: --first-scale is for --loss-scale dynamic\n");
    return -1;
  }
  if (out->dynamic_scale) out->loss_scale = out->first_scale > 0 ? out->first_scale : 65536;
  return 0;
}

enum outcome options_parse(int argc, char **argv, struct options *out) {
  *out = (struct options){.device = -1,
                          .tier = kNoTier,
                          .stage = 3,
                          .bucket_nbytes = 65536,
                          .data = "/usr/share/datasets/fashion-mnist",
                          .epochs = 8,
                          .batch = 192,
                          .recipe = recipe_find("adamw"),
                          .lr = -1,
                          .dtype = ZERO_DTYPE_F32,
                          .accumulate = 1,
                          .manner = ZERO_MICRO_STEP_LOCAL,
                          .loss_scale = 1,
                          .seed = 1,
                          .divisor = ZERO_DIVISOR_WEIGHTS,
                          .saves = {.keep = -1},
                          .servers = {.staleness = -1}};
  int at = 0;
  int option;
  while ((option = getopt_long(argc, argv, "", kOptions, &at)) != -1) {
    const char *shortened = option == '?' ? NULL : shortened_option(argv, &kOptions[at]);
    if (shortened) {
      fprintf(stderr, "train_fashion: unrecognized option '%s': --%s is written in full\n", shortened, kOptions[at].name);
      return kOutcomeWrong;
    }
    if (option != '?') server_options_see(&out->servers, kOptions[at].name, optarg);
    const enum outcome outcome = take(option, kOptions[at].name, optarg, out);
    if (outcome != kOutcomeRun) return outcome;
  }
  if (optind < argc) {
    fprintf(stderr, "train_fashion: unexpected argument '%s' (--help lists the options)\n", argv[optind]);
    return kOutcomeWrong;
  }
  return settle(out) ? kOutcomeWrong : kOutcomeRun;
}
