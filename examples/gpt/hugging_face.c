/// @file hugging_face: renames, the names that are passed over, and config.json.
/// Knows nothing of training.
#include "hugging_face.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../check.h"

enum { kMostPath = 4096, kMostConfig = 1 << 20 };

static int ends_with(const char *text, const char *end) {
  const size_t length = strlen(text);
  const size_t most = strlen(end);
  return length >= most && strcmp(text + length - most, end) == 0;
}

static int is_file(const char *path) { return ends_with(path, ".safetensors") || ends_with(path, ".json"); }

static int complain(const char *option, const char *path, const char *what) {
  fprintf(stderr, "train_gpt: --%s %s: %s\n", option, path, what);
  return -1;
}

/// The folder of a path, or of a file's path.
static void folder_of(const char *path, int of_file, char out[kMostPath]) {
  snprintf(out, kMostPath, "%s", path);
  char *slash = strrchr(out, '/');
  if (!of_file) return;
  if (slash == out) slash++;
  if (slash) *slash = '\0';
  if (!slash) snprintf(out, kMostPath, ".");
}

/// Reads config.json; *out is NULL if there is none.
static int read_config(const char *folder, char **out) {
  char path[kMostPath + 16];
  snprintf(path, sizeof path, "%s/config.json", folder);
  *out = NULL;
  FILE *file = fopen(path, "rb");
  if (!file) return errno == ENOENT || errno == ENOTDIR ? 0 : complain("init", path, strerror(errno));
  char *text = calloc(1, kMostConfig + 1);
  const size_t nbytes = text ? fread(text, 1, kMostConfig, file) : 0;
  fclose(file);
  if (nbytes == 0) {
    free(text);
    return complain("init", path, "cannot be read");
  }
  *out = text;
  return 0;
}

/// The value of a key; NULL if the key is missing.
static const char *value_of(const char *config, const char *key) {
  char quoted[64];
  snprintf(quoted, sizeof quoted, "\"%s\"", key);
  const char *at = strstr(config, quoted);
  if (!at) return NULL;
  at += strlen(quoted);
  at += strspn(at, " \t\r\n");
  if (*at != ':') return NULL;
  at++;
  return at + strspn(at, " \t\r\n");
}

static int check_sizes(const struct options *o, const struct shape *s, const char *config) {
  const struct {
    const char *key;
    int64_t here;
  } sizes[] = {{"n_layer", s->blocks}, {"n_head", s->heads}, {"n_embd", s->width}, {"n_positions", s->places}, {"vocab_size", s->vocabulary}};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    const char *value = value_of(config, sizes[i].key);
    const int64_t there = value ? strtoll(value, NULL, 10) : -1;
    if (there == sizes[i].here) continue;
    fprintf(stderr, "train_gpt: --init %s: config.json has %s %" PRId64 ", but model %s has %" PRId64 " (--model)\n", o->init, sizes[i].key, there,
            s->name, sizes[i].here);
    return -1;
  }
  const char *ties = value_of(config, "tie_word_embeddings");
  const int tied = !ties || strncmp(ties, "false", 5) != 0;
  if (tied != s->tied) return complain("init", o->init, tied ? "its head is tied; leave out --untied-head" : "its head is not tied; give --untied-head");
  const char *activation = value_of(config, "activation_function");
  if (!activation || strncmp(activation, "\"gelu_new\"", 10) == 0) return 0;
  return complain("init", o->init, "config.json has another activation_function than gelu_new");
}

/// An export that is refused after the training would have cost it.
static int check_export(const char *path) {
  char folder[kMostPath];
  struct stat found;
  char stem[kMostPath];
  snprintf(stem, sizeof stem, "%s", path);
  for (size_t n = strlen(stem); n > 1 && stem[n - 1] == '/'; n--) stem[n - 1] = '\0';
  const int exists = !is_file(stem) && stat(stem, &found) == 0;
  folder_of(stem, !exists, folder);
  if (access(folder, W_OK | X_OK) != 0) return complain("export", path, strerror(errno));
  DIR *entries = exists ? opendir(folder) : NULL;
  if (!entries) return exists ? complain("export", path, strerror(errno)) : 0;
  int taken = 0;
  for (const struct dirent *entry; (entry = readdir(entries)) != NULL;) {
    const int is_save = strncmp(entry->d_name, "save-", 5) == 0 && strlen(entry->d_name) == 58;
    taken = taken || is_save || ends_with(entry->d_name, ".safetensors");
  }
  closedir(entries);
  return taken ? complain("export", path, "holds a model or saves already; name a new folder") : 0;
}

int hugging_face_check(const struct options *o, const struct shape *s) {
  char folder[kMostPath];
  char *config = NULL;
  if (o->export_to && check_export(o->export_to)) return -1;
  if (!o->init) return 0;
  folder_of(o->init, is_file(o->init), folder);
  const int status = read_config(folder, &config) || (config && check_sizes(o, s, config)) ? -1 : 0;
  free(config);
  return status;
}

/// Masks, which some files hold, are no parameters, and a tied head is the table of tokens.
static int is_passed_over(const struct shape *s, const char *name) {
  return ends_with(name, ".attn.bias\"") || ends_with(name, ".attn.masked_bias\"") || (s->tied && strcmp(name, "\"lm_head.weight\"") == 0);
}

/// The load ignored names; an unexpected one is an error.
static int check_ignored(const struct options *o, const struct shape *s, zero_checkpoint *checkpoint, int64_t rank) {
  int64_t nbytes = 0;
  if (failed(zero_checkpoint_skipped(checkpoint, NULL, 0, &nbytes), "zero_checkpoint_skipped")) return -1;
  char *lines = malloc((size_t)nbytes);
  int status = !lines || failed(zero_checkpoint_skipped(checkpoint, lines, nbytes, NULL), "zero_checkpoint_skipped") ? -1 : 0;
  for (char *line = status ? NULL : strtok(lines, "\n"); line && !status; line = strtok(NULL, "\n")) {
    const size_t extra = strlen("extra ");
    if (strncmp(line, "extra ", extra) != 0 || is_passed_over(s, line + extra)) continue;
    if (rank == 0) fprintf(stderr, "train_gpt: --init %s: has %s, which model %s has not\n", o->init, line + extra, s->name);
    status = -1;
  }
  free(lines);
  return status;
}

static int create_checkpoint(zero_group *group, zero_optimizer *optimizer, zero_checkpoint **out) {
  zero_config *config = NULL;
  const int status = failed(zero_config_create(&config), "zero_config_create") ||
                     failed(zero_config_set_i64(config, ZERO_KEY_CHECKPOINT_EXTRA, 1), "set extra names") ||
                     failed(zero_checkpoint_create(group, config, out), "zero_checkpoint_create") ||
                     failed(zero_checkpoint_add_optimizer(*out, "", optimizer), "zero_checkpoint_add_optimizer");
  zero_config_release(config);
  return status ? -1 : 0;
}

/// Files of the model without its head leave out "transformer.".
static int rename_all(zero_checkpoint *checkpoint) {
  static const char *const kNames[][2] = {
      {"h.*", "transformer.h.*"}, {"wte.*", "transformer.wte.*"}, {"wpe.*", "transformer.wpe.*"}, {"ln_f.*", "transformer.ln_f.*"}};
  for (size_t i = 0; i < sizeof kNames / sizeof *kNames; i++) {
    if (failed(zero_checkpoint_rename(checkpoint, kNames[i][0], kNames[i][1]), "zero_checkpoint_rename")) return -1;
  }
  return 0;
}

int hugging_face_load(const struct options *o, const struct shape *s, zero_group *group, zero_optimizer *optimizer) {
  zero_checkpoint *checkpoint = NULL;
  int64_t rank = 0;
  const int status = failed(zero_group_rank(group, &rank), "zero_group_rank") || create_checkpoint(group, optimizer, &checkpoint) ||
                     rename_all(checkpoint) ||
                     failed(zero_checkpoint_load(checkpoint, o->init, ZERO_PART_PARAMS, NULL, NULL), "zero_checkpoint_load") ||
                     check_ignored(o, s, checkpoint, rank);
  zero_checkpoint_release(checkpoint);
  return status ? -1 : 0;
}

/// As transformers reads it. Texts of bytes have no token that begins or ends them.
static int write_config(const struct options *o, const struct shape *s) {
  char path[kMostPath + 16];
  snprintf(path, sizeof path, "%s/config.json", o->export_to);
  const char *edge = s->vocabulary == kByteCount ? "null" : "50256";
  FILE *file = fopen(path, "wb");
  if (!file) return complain("export", path, strerror(errno));
  fprintf(file,
          "{\n  \"architectures\": [\"GPT2LMHeadModel\"],\n  \"model_type\": \"gpt2\",\n  \"vocab_size\": %" PRId64
          ",\n  \"n_positions\": %" PRId64 ",\n  \"n_embd\": %" PRId64 ",\n  \"n_layer\": %" PRId64 ",\n  \"n_head\": %" PRId64
          ",\n  \"activation_function\": \"gelu_new\",\n  \"layer_norm_epsilon\": 1e-05,\n  \"embd_pdrop\": 0.0,\n  \"attn_pdrop\": 0.0"
          ",\n  \"resid_pdrop\": 0.0,\n  \"bos_token_id\": %s,\n  \"eos_token_id\": %s,\n  \"tie_word_embeddings\": %s"
          ",\n  \"torch_dtype\": \"%s\"\n}\n",
          s->vocabulary, s->places, s->width, s->blocks, s->heads, edge, edge, s->tied ? "true" : "false",
          o->dtype == ZERO_DTYPE_BF16 ? "bfloat16" : "float32");
  const int wrong = ferror(file);
  return fclose(file) != 0 || wrong ? complain("export", path, strerror(errno)) : 0;
}

int hugging_face_export(const struct options *o, const struct shape *s, zero_group *group, zero_optimizer *optimizer) {
  zero_checkpoint *checkpoint = NULL;
  int64_t rank = 0;
  int status = failed(zero_group_rank(group, &rank), "zero_group_rank") || create_checkpoint(group, optimizer, &checkpoint) ||
               failed(zero_checkpoint_export(checkpoint, o->export_to, ZERO_EXPORT_AS_KEPT, NULL, NULL), "zero_checkpoint_export");
  zero_checkpoint_release(checkpoint);
  if (!status && rank == 0 && !is_file(o->export_to)) status = write_config(o, s);
  return status ? -1 : 0;
}
