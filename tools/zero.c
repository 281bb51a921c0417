/// @file The `zero` command: tells what this installation of libzero is and which ranks it sees, and looks after saves.
/// Knows only the public API.
#include "zero_ckpt.h"

#include <zero/zero.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What each rank tells rank 0. Bytes, so that it travels as ZERO_DTYPE_U8. */
struct seat {
  int64_t local_rank;
  int64_t process;
  char host[112];
};

static const char usage[] =
    "usage: zero info       describes this libzero, and the ranks it sees here (start it under mpirun, srun or torchrun to see theirs)\n"
    "       zero ckpt ...   looks at saves, checks, compares, exports and removes them (zero ckpt --help)\n"
    "       zero --version\n"
    "       zero --help\n";

/* Prints the last error; returns the exit code. */
static int fail(const char *call) {
  char text[1024];
  const int32_t status = zero_last_error_copy(text, sizeof text);
  fprintf(stderr, "zero: %s: %s: %s\n", call, zero_status_name(status), text);
  return 1;
}

typedef int32_t (*describe_fn)(const void *object, char *out, int64_t out_nbytes, int64_t *out_needed);

static int32_t describe_library(const void *object, char *out, int64_t out_nbytes, int64_t *out_needed) {
  (void)object;
  return zero_describe_library(out, out_nbytes, out_needed);
}

static int32_t describe_group(const void *object, char *out, int64_t out_nbytes, int64_t *out_needed) {
  return zero_describe_group((const zero_group *)object, out, out_nbytes, out_needed);
}

/* Prints a description of whatever length. */
static int print_description(const char *call, describe_fn describe, const void *object) {
  int64_t needed = 0;
  if (describe(object, NULL, 0, &needed) != ZERO_OK) return fail(call);
  char *text = malloc((size_t)needed);
  if (text == NULL) {
    fprintf(stderr, "zero: no memory for a text of %" PRId64 " bytes\n", needed);
    return 1;
  }
  int code = 0;
  if (describe(object, text, needed, NULL) == ZERO_OK) {
    const size_t length = strlen(text);
    printf("%s%s", text, length > 0 && text[length - 1] == '\n' ? "" : "\n");
  } else {
    code = fail(call);
  }
  free(text);
  return code;
}

/* Gathers every rank's seat on every rank; seats has room for size. */
static int gather_seats(zero_group *group, int64_t size, struct seat *seats) {
  struct seat mine;
  memset(&mine, 0, sizeof mine);
  mine.process = (int64_t)getpid();
  if (gethostname(mine.host, sizeof mine.host - 1) != 0) mine.host[0] = '\0';
  if (zero_group_local_rank(group, &mine.local_rank) != ZERO_OK) return fail("zero_group_local_rank");
  const int64_t nbytes = (int64_t)sizeof mine;
  if (zero_group_all_gather(group, &mine, nbytes, seats, nbytes * size, ZERO_DTYPE_U8, NULL) == ZERO_OK) return 0;
  return fail("zero_group_all_gather");
}

static int print_ranks(zero_group *group, int64_t rank, int64_t size) {
  int64_t hosts = 0;
  if (zero_group_host_count(group, &hosts) != ZERO_OK) return fail("zero_group_host_count");
  struct seat *seats = calloc((size_t)size, sizeof *seats);
  if (seats == NULL) {
    fprintf(stderr, "zero: no memory for %" PRId64 " ranks\n", size);
    return 1;
  }
  int code = gather_seats(group, size, seats);
  if (code == 0 && rank == 0) {
    printf("ranks: %" PRId64 " on %" PRId64 " host%s\n", size, hosts, hosts == 1 ? "" : "s");
    for (int64_t other = 0; other < size; ++other) {
      printf("  rank %" PRId64 ": local rank %" PRId64 ", process %" PRId64 " on %s\n", other, seats[other].local_rank,
             seats[other].process, seats[other].host);
    }
    code = print_description("zero_describe_group", describe_group, group);
  }
  free(seats);
  return code;
}

/* Only rank 0 prints, so that the text stays readable under a launcher. */
static int info(void) {
  zero_group *group = NULL;
  int64_t rank = 0;
  int64_t size = 1;
  if (zero_group_create_env(NULL, &group) != ZERO_OK) {
    print_description("zero_describe_library", describe_library, NULL);
    return fail("zero_group_create_env");
  }
  int code = 0;
  if (zero_group_rank(group, &rank) != ZERO_OK || zero_group_size(group, &size) != ZERO_OK) code = fail("zero_group_rank");
  if (code == 0 && rank == 0) code = print_description("zero_describe_library", describe_library, NULL);
  if (code == 0) code = print_ranks(group, rank, size);
  zero_group_release(group);
  return code;
}

static int run(int argc, char **argv) {
  if (argc == 2 && strcmp(argv[1], "info") == 0) return info();
  if (argc >= 2 && strcmp(argv[1], "ckpt") == 0) return zero_ckpt(argc - 2, argv + 2);
  if (argc == 2 && strcmp(argv[1], "--version") == 0) {
    const int64_t abi = zero_abi_version();
    printf("libzero %s (ABI %" PRId64 ".%" PRId64 ")\n", zero_version(), abi / 65536, abi % 65536);
    return 0;
  }
  if (argc == 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
    fputs(usage, stdout);
    return 0;
  }
  if (argc < 2) {
    fputs("zero: no command given; zero --help lists them\n", stderr);
  } else if (argc > 2 && (strcmp(argv[1], "info") == 0 || strncmp(argv[1], "--", 2) == 0)) {
    fprintf(stderr, "zero: unexpected argument '%s' after '%s'; zero --help lists the commands\n", argv[2], argv[1]);
  } else {
    fprintf(stderr, "zero: unknown command '%s'; zero --help lists them\n", argv[1]);
  }
  return 2;
}

int main(int argc, char **argv) {
  const int code = run(argc, argv);
  if (fflush(stdout) == 0 && !ferror(stdout)) return code;
  fprintf(stderr, "zero: cannot write: %s\n", strerror(errno));
  return 1;
}
