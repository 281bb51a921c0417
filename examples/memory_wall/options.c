/// @file options: the command line of memory_wall, read with getopt_long.
/// Knows nothing of what the options do.
#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#include "../whole_option.h"

static const char kUsage[] =
    "usage: memory_wall [options]\n"
    "Trains the tensors of a GPT-2 with fp32 AdamW on synthetic gradients, in a process per rank: stage 0 first, which a machine of "
    "common\n"
    "size refuses, then stage 3. Not under a launcher: it starts its ranks itself, and looks at the memory of all of them.\n"
    "  --layers N       default 36: with the other defaults GPT-2 large, 774 million parameters\n"
    "  --width N        default 1280\n"
    "  --vocabulary N   default 50257\n"
    "  --context N      default 1024\n"
    "  --ranks N        default 4\n"
    "  --steps N        default 3\n"
    "  --limit-gib X    memory that all ranks may take together; default 0: what the machine has available\n"
    "  --help           print this and stop\n";

enum { kLayers = 1000, kWidth, kVocabulary, kContext, kRanks, kSteps, kLimit, kHelp };

static const struct option kOptions[] = {
    {"layers", required_argument, NULL, kLayers},
    {"width", required_argument, NULL, kWidth},
    {"vocabulary", required_argument, NULL, kVocabulary},
    {"context", required_argument, NULL, kContext},
    {"ranks", required_argument, NULL, kRanks},
    {"steps", required_argument, NULL, kSteps},
    {"limit-gib", required_argument, NULL, kLimit},
    {"help", no_argument, NULL, kHelp},
    {NULL, 0, NULL, 0},
};

static int read_i64(const char *option, const char *text, int64_t max, int64_t *out) {
  char *end = NULL;
  errno = 0;
  const long long value = strtoll(text, &end, 10);
  if (!errno && end != text && !*end && value >= 1 && value <= max) {
    *out = value;
    return 0;
  }
  fprintf(stderr, "memory_wall: --%s %s: expected a whole number from 1 to %lld\n", option, text, (long long)max);
  return -1;
}

static int read_limit(const char *text, double *out) {
  char *end = NULL;
  const double value = strtod(text, &end);
  if (end != text && !*end && value >= 0 && value <= 1e9) {
    *out = value;
    return 0;
  }
  fprintf(stderr, "memory_wall: --limit-gib %s: expected a number from 0 to 1e9\n", text);
  return -1;
}

static int read_value(int option, const char *name, const char *text, struct options *out) {
  switch (option) {
    case kLayers:
      return read_i64(name, text, 10000, &out->size.layers);
    case kWidth:
      return read_i64(name, text, 1000000, &out->size.width);
    case kVocabulary:
      return read_i64(name, text, 10000000, &out->size.vocabulary);
    case kContext:
      return read_i64(name, text, 10000000, &out->size.context);
    case kRanks:
      return read_i64(name, text, 1024, &out->ranks);
    case kSteps:
      return read_i64(name, text, 1000000, &out->steps);
    default:
      return read_limit(text, &out->limit_gib);
  }
}

enum outcome options_parse(int argc, char **argv, struct options *out) {
  *out = (struct options){.size = {.layers = 36, .width = 1280, .vocabulary = 50257, .context = 1024}, .ranks = 4, .steps = 3};
  int at = 0;
  int option;
  while ((option = getopt_long(argc, argv, "", kOptions, &at)) != -1) {
    const char *shortened = option == '?' ? NULL : shortened_option(argv, &kOptions[at]);
    if (shortened) fprintf(stderr, "memory_wall: unrecognized option '%s': --%s is written in full\n", shortened, kOptions[at].name);
    if (option == '?' || shortened) return kOutcomeWrong;
    if (option == kHelp) {
      fputs(kUsage, stdout);
      return kOutcomeDone;
    }
    if (read_value(option, kOptions[at].name, optarg, out)) return kOutcomeWrong;
  }
  if (optind == argc) return kOutcomeRun;
  fprintf(stderr, "memory_wall: unexpected argument '%s' (--help lists the options)\n", argv[optind]);
  return kOutcomeWrong;
}
