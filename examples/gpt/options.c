/// @file options: a table of options, read with getopt_long.
/// Knows nothing of what the options do.
#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zero/zero.h>

#include "../check.h"
#include "../whole_option.h"
#include "products.h"
#include "report.h"
#include "shape.h"

static const char kUsage[] =
    "usage: train_gpt [options]\n"
    "Trains a GPT on the bytes of a text, sharded over ranks with libzero.\n"
    "  --model NAME           tiny (3.3M parameters, default), small (10.8M) or gpt2 (124M)\n"
    "  --untied-head          the head has a table of its own, not that of the tokens\n"
    "  --ranks N              ranks of this host, default 4; not under a launcher (mpirun, srun, torchrun), whose ranks count\n"
    "  --mode MODE            ranks are threads (default) or processes; not under a launcher\n"
    "  --stage N              0 to 3: what is sharded: nothing, optimizer states, + gradients, + parameters; default 3\n"
    "  --precision P          of parameters and gradients: f32 (default), or bf16 with fp32 master weights\n"
    "  --text PATH            a file, or a folder with *.txt, *.md, *.txt.gz or *.md.gz; default: Debian's package anarchism\n"
    "  --tokens FILE          a token file of llm.c for GPT-2 instead\n"
    "  --steps N              default 500\n"
    "  --batch N              sequences per step of all ranks together; default 8\n"
    "  --context N            tokens of a sequence; default: the model's (128, 256, 256)\n"
    "  --micro-steps K        take each step in K micro-steps, each on a K-th of the step's sequences; default 1\n"
    "  --lr X                 highest learning rate; it falls to a tenth along a cosine; default 0.001\n"
    "  --warm-up N            steps in which the rate rises to it; default 40\n"
    "  --weight-decay X       of matrices; default 0.1\n"
    "  --clip-norm X          scale gradients down to a global norm of at most X; 0: never; default 1\n"
    "  --seed N               of first values, batches and samples; default 1\n"
    "  --init PATH            begin with GPT-2 files of Hugging Face's layout: a folder, or a .safetensors file; --resume wins\n"
    "  --export PATH          at the end, write the model for transformers: a new folder, or a .safetensors file without config.json\n"
    "  --validate K           loss on the last tenth of the text every K steps; default 0: at the end only\n"
    "  --validation-batches N batches of sequences for that; default 8\n"
    "  --sample TEXT          at the end, write the model's continuation of this text\n"
    "  --sample-length N      bytes of that; default 300\n"
    "  --temperature X        of the sample: 0 takes the likeliest byte; default 0.8\n"
    "  --products KIND        matrix products: blas (default), or plain C loops\n"
    "  --csv FILE             write the loss of each step, and bytes by category\n"
    "  --plot FILE            draw that as an SVG picture (needs --csv, and Debian's python3-matplotlib)\n"
    "  --write-first FILE     write the first values of all parameters as raw 32-bit floats\n"
    "  --write-gradients FILE the same of the gradients of the first step\n"
    "  --write-logits FILE    at the end, write the logits of the text's first tokens as raw 32-bit floats\n"
    "  --report               print a table row: memory, traffic, speed, loss, hash\n"
    "  --report-header        print the head of that table and stop\n"
    "  --report-file FILE     write the same and more as lines of key=value\n"
    "  --quiet                no progress line\n"
    "  --help                 print this and stop\n";

enum kind { kWhole, kNumber, kText, kChoice, kFlag, kReplica };

struct choice {
  const char *name;
  int64_t value;
};

/// One option: where its value goes, and what it may be. The bounds are those of the example;
/// libzero checks its own.
struct rule {
  const char *name;
  enum kind kind;
  size_t offset;
  double least, most;
  const struct choice *choices;
};

static const struct choice kModes[] = {{"threads", kModeThreads}, {"processes", kModeProcesses}, {NULL, 0}};
static const struct choice kPrecisions[] = {{"f32", ZERO_DTYPE_F32}, {"bf16", ZERO_DTYPE_BF16}, {NULL, 0}};
static const struct choice kWho[] = {{"blas", kProductsBlas}, {"plain", kProductsPlain}, {NULL, 0}};

static const struct choice kResiduals[] = {{"none", ZERO_RESIDUAL_NONE}, {"f32", ZERO_RESIDUAL_F32}, {NULL, 0}};
static const struct choice kNeighbours[] = {{"none", ZERO_NEIGHBOURS_NONE}, {"ring", ZERO_NEIGHBOURS_RING}, {NULL, 0}};
static const struct choice kOuter[] = {{"mean", 0}, {"nesterov", 1}, {NULL, 0}};

static const struct choice kCodes[] = {
    {"f32", ZERO_CODE_NONE}, {"f8", ZERO_CODE_F8}, {"i8", ZERO_CODE_I8}, {"i4", ZERO_CODE_I4}, {NULL, 0}};

#define AT(field) offsetof(struct options, field)
static const struct rule kRules[] = {
    {"model", kText, AT(model), 0, 0, NULL},
    {"untied-head", kFlag, AT(untied_head), 0, 0, NULL},
    {"ranks", kWhole, AT(ranks), 1, 1024, NULL},
    {"mode", kChoice, AT(mode), 0, 0, kModes},
    {"stage", kWhole, AT(stage), 0, 3, NULL},
    {"precision", kChoice, AT(dtype), 0, 0, kPrecisions},
    {"text", kText, AT(text), 0, 0, NULL},
    {"tokens", kText, AT(tokens), 0, 0, NULL},
    {"steps", kWhole, AT(steps), 1, 1e12, NULL},
    {"batch", kWhole, AT(batch), 1, 1e6, NULL},
    {"context", kWhole, AT(context), 1, 1e6, NULL},
    {"micro-steps", kWhole, AT(micro_steps), 1, 1e6, NULL},
    {"lr", kNumber, AT(lr), 0, 1e6, NULL},
    {"warm-up", kWhole, AT(warm_up), 0, 1e12, NULL},
    {"weight-decay", kNumber, AT(weight_decay), 0, 1e6, NULL},
    {"clip-norm", kNumber, AT(clip_norm), 0, 1e30, NULL},
    {"seed", kWhole, AT(seed), 0, 1e15, NULL},
    {"init", kText, AT(init), 0, 0, NULL},
    {"export", kText, AT(export_to), 0, 0, NULL},
    {"validate", kWhole, AT(validate), 0, 1e12, NULL},
    {"validation-batches", kWhole, AT(validation_batches), 1, 1e6, NULL},
    {"sample", kText, AT(sample), 0, 0, NULL},
    {"sample-length", kWhole, AT(sample_length), 1, 1e6, NULL},
    {"temperature", kNumber, AT(temperature), 0, 100, NULL},
    {"products", kChoice, AT(products), 0, 0, kWho},
    {"csv", kText, AT(csv), 0, 0, NULL},
    {"plot", kText, AT(plot), 0, 0, NULL},
    {"write-first", kText, AT(write_first), 0, 0, NULL},
    {"write-gradients", kText, AT(write_gradients), 0, 0, NULL},
    {"write-logits", kText, AT(write_logits), 0, 0, NULL},
    {"report", kFlag, AT(report), 0, 0, NULL},
    {"report-header", kFlag, AT(report_header), 0, 0, NULL},
    {"report-file", kText, AT(report_file), 0, 0, NULL},
    {"quiet", kFlag, AT(quiet), 0, 0, NULL},
    {"save", kText, AT(saves.folder), 0, 0, NULL},
    {"save-every", kWhole, AT(saves.every), 0, 1e12, NULL},
    {"keep", kWhole, AT(saves.keep), 0, 1e9, NULL},
    {"resume", kFlag, AT(saves.resume), 0, 0, NULL},
    {"stop-exit", kWhole, AT(saves.stop_exit), 0, 255, NULL},
    {"replica-ranks", kWhole, AT(replicas.ranks), -1, 1024, NULL},
    {"param-ranks", kWhole, AT(replicas.param_ranks), -1, 1024, NULL},
    {"sync-every", kWhole, AT(replicas.every), 1, 1e12, NULL},
    {"sync-after", kWhole, AT(replicas.after), 0, 1e12, NULL},
    {"sync-fragments", kWhole, AT(replicas.fragments), 1, 4096, NULL},
    {"sync-delay", kWhole, AT(replicas.delay), 0, 1e12, NULL},
    {"sync-mix", kNumber, AT(replicas.mix), 0, 1, NULL},
    {"grad-code", kChoice, AT(replicas.grad_code), 0, 0, kCodes},
    {"gather-code", kChoice, AT(replicas.gather_code), 0, 0, kCodes},
    {"sync-code", kChoice, AT(replicas.sync_code), 0, 0, kCodes},
    {"outer", kChoice, AT(replicas.nesterov), 0, 0, kOuter},
    {"neighbours", kChoice, AT(replicas.neighbours), 0, 0, kNeighbours},
    {"compress", kReplica, 0, 0, 0, NULL},
    {"code-after", kWhole, AT(replicas.code_after), 0, 1e12, NULL},
    {"residual", kChoice, AT(replicas.residual), 0, 0, kResiduals},
    {"flush-every", kWhole, AT(replicas.flush), 0, 1e12, NULL},
    {"delay", kWhole, AT(replicas.grad_delay), 0, 1, NULL},
    {"strategy", kText, AT(replicas.strategy), 0, 0, NULL},
    {"server", kWhole, AT(servers.count), 1, 1023, NULL},
    {"staleness", kWhole, AT(servers.staleness), 0, 1e12, NULL},
};
enum { kRuleCount = sizeof kRules / sizeof *kRules, kHelp = kRuleCount };

static int wrong(const struct rule *rule, const char *value, const char *expected) {
  fprintf(stderr, "train_gpt: --%s %s: expected %s\n", rule->name, value, expected);
  return -1;
}

static int read_whole(const struct rule *rule, const char *text, int64_t *out) {
  char expected[96];
  char *end = NULL;
  errno = 0;
  const long long value = strtoll(text, &end, 10);
  if (errno || end == text || *end || (double)value < rule->least || (double)value > rule->most) {
    snprintf(expected, sizeof expected, "a whole number from %.0f to %.0f", rule->least, rule->most);
    return wrong(rule, text, expected);
  }
  *out = value;
  return 0;
}

static int read_number(const struct rule *rule, const char *text, double *out) {
  char expected[96];
  char *end = NULL;
  const double value = strtod(text, &end);
  if (end == text || *end || !isfinite(value) || value < rule->least || value > rule->most) {
    snprintf(expected, sizeof expected, "a number from %g to %g", rule->least, rule->most);
    return wrong(rule, text, expected);
  }
  *out = value;
  return 0;
}

static int read_choice(const struct rule *rule, const char *text, int64_t *out) {
  char expected[96] = "";
  for (const struct choice *c = rule->choices; c->name; c++) {
    if (strcmp(text, c->name) == 0) {
      *out = c->value;
      return 0;
    }
    const size_t used = strlen(expected);
    snprintf(expected + used, sizeof expected - used, "%s%s", used ? " or " : "", c->name);
  }
  return wrong(rule, text, expected);
}

static int take(const struct rule *rule, const char *text, struct options *out) {
  void *to = (char *)out + rule->offset;
  switch (rule->kind) {
    case kWhole:
      return read_whole(rule, text, to);
    case kNumber:
      return read_number(rule, text, to);
    case kChoice:
      return read_choice(rule, text, to);
    case kText:
      *(const char **)to = text;
      return 0;
    case kReplica:
      return replica_option(&out->replicas, rule->name, text) == 1 ? 0 : -1;
    default:
      *(int *)to = 1;
      return 0;
  }
}

/// The ranks are those of the launcher, where there is one; otherwise those that the options ask for.
static int settle_ranks(struct options *out) {
  char variable[64];
  if (failed(zero_group_launcher(variable, sizeof variable, NULL), "zero_group_launcher")) return -1;
  if (*variable != '\0' && (out->ranks != 0 || out->mode >= 0)) {
    fprintf(stderr, "train_gpt: --%s is for ranks that this program starts, but a launcher has started them (%s is %s)\n",
            out->ranks != 0 ? "ranks" : "mode", variable, getenv(variable));
    return -1;
  }
  if (*variable != '\0') {
    out->mode = kModeLauncher;
    return 0;
  }
  if (out->mode < 0) out->mode = kModeThreads;
  if (out->ranks == 0) out->ranks = 4;
  return 0;
}

/// What follows from several options, or from the model.
static int settle(struct options *out) {
  struct shape shape;
  if (shape_of(out->model, !out->untied_head, &shape)) {
    fprintf(stderr, "train_gpt: --model %s: expected %s\n", out->model, shape_names);
    return -1;
  }
  if (out->context == 0) out->context = shape.context;
  if (out->context > shape.places) {
    fprintf(stderr, "train_gpt: --context %" PRId64 ": model %s has places for %" PRId64 " tokens at most\n", out->context, out->model,
            shape.places);
    return -1;
  }
  if (out->tokens && out->sample) {
    fprintf(stderr, "train_gpt: --sample is for a text: token files have no names of tokens\n");
    return -1;
  }
  if (out->plot && !out->csv) {
    fprintf(stderr, "train_gpt: --plot draws what --csv writes; give both\n");
    return -1;
  }
  if (out->clip_norm < 0) out->clip_norm = out->servers.count > 0 ? 0 : 1;
  return settle_ranks(out) || server_options_settle(&out->servers, out->ranks) || save_options_settle(&out->saves) ? -1 : 0;
}

/// getopt's table; an option's value is its number in kRules.
static void fill(struct option table[kRuleCount + 2]) {
  for (int i = 0; i < kRuleCount; i++) {
    table[i] = (struct option){kRules[i].name, kRules[i].kind == kFlag ? no_argument : required_argument, NULL, i};
  }
  table[kHelp] = (struct option){"help", no_argument, NULL, kHelp};
  table[kHelp + 1] = (struct option){NULL, 0, NULL, 0};
}

static enum outcome parse(int argc, char **argv, struct options *out) {
  struct option table[kRuleCount + 2];
  int at = 0;
  int option;
  fill(table);
  while ((option = getopt_long(argc, argv, "", table, &at)) != -1) {
    if (option == '?') return kOutcomeWrong; /* getopt_long has written its line */
    const char *shortened = shortened_option(argv, &table[at]);
    if (shortened) {
      fprintf(stderr, "train_gpt: unrecognized option '%s': --%s is written in full\n", shortened, table[at].name);
      return kOutcomeWrong;
    }
    if (option == kHelp) {
      fputs(kUsage, stdout);
      fputs(save_usage, stdout);
      fputs(replica_usage, stdout);
      fputs(server_usage, stdout);
      return kOutcomeDone;
    }
    server_options_see(&out->servers, table[at].name, optarg);
    if (take(&kRules[option], optarg, out)) return kOutcomeWrong;
  }
  if (optind < argc) {
    fprintf(stderr, "train_gpt: unexpected argument '%s' (--help lists the options)\n", argv[optind]);
    return kOutcomeWrong;
  }
  return kOutcomeRun;
}

enum outcome options_parse(int argc, char **argv, struct options *out) {
  *out = (struct options){.model = "tiny",
                          .mode = -1,
                          .stage = 3,
                          .dtype = ZERO_DTYPE_F32,
                          .text = "/usr/share/doc/anarchism/markdown",
                          .steps = 500,
                          .batch = 8,
                          .micro_steps = 1,
                          .lr = 0.001,
                          .warm_up = 40,
                          .weight_decay = 0.1,
                          .clip_norm = -1,
                          .seed = 1,
                          .validation_batches = 8,
                          .sample_length = 300,
                          .temperature = 0.8,
                          .saves = {.keep = -1},
                          .servers = {.staleness = -1}};
  const enum outcome outcome = parse(argc, argv, out);
  if (outcome != kOutcomeRun) return outcome;
  if (out->report_header) {
    report_header();
    return kOutcomeDone;
  }
  return settle(out) ? kOutcomeWrong : kOutcomeRun;
}
