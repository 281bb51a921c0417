/// @file servers: see the header.
#include "servers.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "ranks.h"

const char server_usage[] =
    "  --server N           asynchronous training: the first N ranks are servers, which hold and update all parameters; each\n"
    "                       other rank is a worker. Worker w of W takes the batches w, w + W, ...: it pulls the parameters,\n"
    "                       and pushes the mean gradient of a whole batch, which is an update of its own. The rate stays\n"
    "                       as --lr says; nothing is clipped; weight decay is of all parameters. Workers push in rounds,\n"
    "                       with the same result in every run. Losses are those of the first worker\n"
    "  --staleness S        with --server: no rounds; a worker is at most S pushes ahead of the slowest, and the others\n"
    "                       finish without a worker that ended; the exit code is then 1\n";

/// An option that does not go with servers.
struct refusal {
  const char *name;
  const char *harmless; /* the only value that goes with servers, or NULL */
  const char *value;    /* the only value that does not, or NULL: all */
  const char *reason;
};

static const char kTogether[] = "it is for ranks that make steps together";
static const char kSavesAre[] = "servers do not save";
static const char kReportIs[] = "it counts memory and traffic of ranks that make steps together";
static const char kOneBatch[] = "a push is the mean gradient of one batch";
static const char kWholeTensors[] = "it needs whole tensors, and servers hold parts of them";

static const struct refusal kRefusals[] = {
    {"stage", NULL, NULL, kTogether},
    {"bucket-bytes", NULL, NULL, kTogether},
    {"caller-memory", NULL, NULL, kTogether},
    {"replica-ranks", NULL, NULL, kTogether},
    {"param-ranks", NULL, NULL, kTogether},
    {"sync-every", NULL, NULL, kTogether},
    {"sync-after", NULL, NULL, kTogether},
    {"sync-fragments", NULL, NULL, kTogether},
    {"sync-delay", NULL, NULL, kTogether},
    {"sync-mix", NULL, NULL, kTogether},
    {"outer", NULL, NULL, kTogether},
    {"neighbours", NULL, NULL, kTogether},
    {"grad-code", NULL, NULL, kTogether},
    {"gather-code", NULL, NULL, kTogether},
    {"sync-code", NULL, NULL, kTogether},
    {"compress", NULL, NULL, kTogether},
    {"compress-momentum", NULL, NULL, kTogether},
    {"code-after", NULL, NULL, kTogether},
    {"residual", NULL, NULL, kTogether},
    {"flush-every", NULL, NULL, kTogether},
    {"delay", NULL, NULL, kTogether},
    {"strategy", NULL, NULL, kTogether},
    {"precision", "f32", NULL, "servers hold and send f32"},
    {"device", "cpu", NULL, "workers compute on the host"},
    {"tier", NULL, NULL, "workers compute on the host"},
    {"optimizer", NULL, "lamb", kWholeTensors},
    {"optimizer", NULL, "muon", kWholeTensors},
    {"accumulate", "1", NULL, kOneBatch},
    {"accumulate-manner", NULL, NULL, kOneBatch},
    {"micro-steps", "1", NULL, kOneBatch},
    {"divisor", NULL, NULL, kOneBatch},
    {"clip-norm", "0", NULL, "servers do not clip"},
    {"loss-scale", "1", NULL, "servers know no loss scale"},
    {"first-scale", NULL, NULL, "servers know no loss scale"},
    {"warm-up", "0", NULL, "servers keep one learning rate"},
    {"validate", "0", NULL, "only in the end does one rank have all parameters"},
    {"save", NULL, NULL, kSavesAre},
    {"save-every", NULL, NULL, kSavesAre},
    {"keep", NULL, NULL, kSavesAre},
    {"resume", NULL, NULL, kSavesAre},
    {"stop-exit", NULL, NULL, kSavesAre},
    {"export", NULL, NULL, kSavesAre},
    {"report", NULL, NULL, kReportIs},
    {"report-file", NULL, NULL, kReportIs},
    {"plot", NULL, NULL, kReportIs},
    {"write-first", NULL, NULL, kTogether},
    {"write-gradients", NULL, NULL, kTogether},
    {"write-logits", NULL, NULL, kTogether},
};

void server_options_see(struct server_options *o, const char *name, const char *text) {
  for (size_t i = 0; !o->refused && i < sizeof kRefusals / sizeof *kRefusals; i++) {
    const struct refusal *r = &kRefusals[i];
    if (strcmp(name, r->name) != 0 || (r->harmless && strcmp(text, r->harmless) == 0) || (r->value && strcmp(text, r->value) != 0))
      continue;
    o->refused = name;
    o->refused_value = text;
    o->reason = r->reason;
  }
}

int server_options_settle(const struct server_options *o, int64_t ranks) {
  const char *program = program_invocation_short_name;
  if (o->count == 0 && o->staleness >= 0) {
    fprintf(stderr, "%s: --staleness is for --server\n", program);
    return -1;
  }
  if (o->count > 0 && o->refused) {
    fprintf(stderr, "%s: --%s%s%s does not go with --server: %s\n", program, o->refused, o->refused_value ? " " : "",
            o->refused_value ? o->refused_value : "", o->reason);
    return -1;
  }
  if (ranks == 0 || o->count < ranks) return 0;
  fprintf(stderr, "%s: --server %" PRId64 ": there are %" PRId64 " ranks, and at least one must be a worker\n", program, o->count, ranks);
  return -1;
}

static void on_signal(int number) {
  ranks_pass_on(number);
  signal(number, SIG_DFL);
  raise(number);
}

void servers_end_by_signals(void) {
  signal(SIGTERM, on_signal);
  signal(SIGINT, on_signal);
  signal(SIGUSR1, on_signal);
}

static float *allocate(int64_t count) {
  float *values = calloc((size_t)count, sizeof *values);
  if (!values) fprintf(stderr, "%s: out of memory\n", program_invocation_short_name);
  return values;
}

int servers_open(struct servers *s, const struct server_options *options, zero_group *group, int64_t count, zero_group **out_alone) {
  int64_t size = 0;
  *s = (struct servers){.options = options, .group = group, .count = count};
  if (failed(zero_group_rank(group, &s->rank), "zero_group_rank") || failed(zero_group_size(group, &size), "zero_group_size")) return -1;
  s->workers = size - options->count;
  s->worker = s->rank - options->count;
  if (s->workers <= 0) return server_options_settle(options, size);
  s->parameters = allocate(count);
  if (s->worker >= 0) s->gradients = allocate(count);
  if (!s->parameters || (s->worker >= 0 && !s->gradients)) return -1;
  return failed(zero_group_split(group, s->rank, 0, out_alone), "zero_group_split") ||
                 failed(zero_group_split(group, s->worker < 0 ? 0 : -1, 0, &s->servers), "zero_group_split")
             ? -1
             : 0;
}

static int configure(const struct server_options *o, zero_config *config) {
  if (failed(zero_config_set_i64(config, ZERO_KEY_SERVER_RANKS, o->count), "set servers")) return -1;
  if (o->staleness < 0) return 0;
  return failed(zero_config_set_i64(config, ZERO_KEY_SERVER_ORDER, ZERO_SERVER_ORDER_ARRIVAL), "set order") ||
                 failed(zero_config_set_i64(config, ZERO_KEY_SERVER_STALENESS, o->staleness), "set staleness")
             ? -1
             : 0;
}

/// The part of the parameters on this server.
struct part {
  void *values;
  int64_t range[2]; /* the first, and their number */
};

static int find_part(const struct servers *s, struct part *out) {
  return failed(zero_server_shard(s->server, &out->values, &out->range[0], &out->range[1]), "zero_server_shard") ? -1 : 0;
}

static int write_first_values(struct servers *s) {
  struct part part;
  if (find_part(s, &part)) return -1;
  if (part.values) memcpy(part.values, s->parameters + part.range[0], (size_t)part.range[1] * sizeof(float));
  return 0;
}

int servers_connect(struct servers *s, zero_config *config) {
  if (configure(s->options, config) || failed(zero_server_create(s->group, config, s->count, &s->server), "zero_server_create") ||
      failed(zero_server_seal(s->server), "zero_server_seal")) {
    return -1;
  }
  return s->worker < 0 ? write_first_values(s) : 0;
}

void servers_give_up(struct servers *s) {
  if (s->group) zero_group_abort(s->group, "a rank gave up before it served or worked; see its own message");
}

void servers_release(struct servers *s) {
  zero_server_release(s->server);
  zero_group_release(s->servers);
  zero_group_release(s->group);
  free(s->parameters);
  free(s->gradients);
}

/// Every server broadcasts its part to the others. Workers may have ended: they take no part in it.
static int gather_parts(struct servers *s) {
  struct part own;
  if (find_part(s, &own)) return -1;
  if (own.values) memcpy(s->parameters + own.range[0], own.values, (size_t)own.range[1] * sizeof(float));
  for (int64_t root = 0; root < s->options->count; root++) {
    int64_t range[2] = {own.range[0], own.range[1]};
    if (failed(zero_group_broadcast(s->servers, range, 2, ZERO_DTYPE_I64, root, NULL), "zero_group_broadcast") ||
        failed(zero_group_broadcast(s->servers, s->parameters + range[0], range[1], ZERO_DTYPE_F32, root, NULL), "zero_group_broadcast")) {
      return -1;
    }
  }
  return 0;
}

static void print_counts(const zero_server_result *r) {
  printf("pushes=%" PRId64 " pulls=%" PRId64 " skipped=%" PRId64 " waited=%" PRId64 " left=%" PRId64 " lost=%" PRId64
         " greatest_age=%" PRId64 " ages=0:%" PRId64 ",1:%" PRId64 ",2-3:%" PRId64 ",4-7:%" PRId64 ",8-15:%" PRId64 ",16-:%" PRId64 "\n",
         r->push_count, r->pull_count, r->skipped_count, r->waited_count, r->left_count, r->lost_count, r->greatest_age, r->age_0_count,
         r->age_1_count, r->age_2_count, r->age_4_count, r->age_8_count, r->age_16_count);
}

int servers_serve(struct servers *s) {
  zero_server_result result;
  if (failed(zero_server_result_init(&result, sizeof result), "zero_server_result_init") ||
      failed(zero_server_run(s->server, &result), "zero_server_run")) {
    return -1;
  }
  if (result.left_count == 0) {
    fprintf(stderr, "%s: no worker has finished\n", program_invocation_short_name);
    return -1;
  }
  if (gather_parts(s)) return -1;
  if (s->rank == 0) print_counts(&result);
  return 0;
}

int servers_work(struct servers *s, int64_t steps, server_batch batch, void *context) {
  for (int64_t step = s->worker; step < steps; step += s->workers) {
    if (failed(zero_server_pull(s->server, s->parameters, s->count), "zero_server_pull") || batch(context, step) ||
        failed(zero_server_push(s->server, s->gradients, s->count), "zero_server_push")) {
      return -1;
    }
  }
  return failed(zero_server_leave(s->server), "zero_server_leave") ? -1 : 0;
}
