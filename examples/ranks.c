/// @file ranks: runs one body per rank, as threads of this process or as processes of their own.
/// Knows nothing of what a rank does.
#include "ranks.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct rank_thread {
  pthread_t thread;
  rank_body body;
  void *context;
  int64_t rank;
  int failed;
};

static void *thread_main(void *argument) {
  struct rank_thread *self = argument;
  self->failed = self->body(self->context, self->rank) != 0;
  return NULL;
}

int ranks_run_threads(int64_t count, rank_body body, void *context) {
  struct rank_thread *threads = calloc((size_t)count, sizeof *threads);
  int64_t started = 0;
  int failed = threads == NULL;
  for (; !failed && started < count; started++) {
    threads[started] = (struct rank_thread){.body = body, .context = context, .rank = started};
    const int error = pthread_create(&threads[started].thread, NULL, thread_main, &threads[started]);
    if (error) {
      fprintf(stderr, "%s: cannot start rank %lld: %s\n", program_invocation_short_name, (long long)started, strerror(error));
      failed = 1;
      break;
    }
  }
  for (int64_t i = 0; i < started; i++) {
    pthread_join(threads[i].thread, NULL);
    if (threads[i].failed) fprintf(stderr, "%s: rank %lld failed\n", program_invocation_short_name, (long long)i);
    failed |= threads[i].failed;
  }
  free(threads);
  return failed ? -1 : 0;
}

/// Waits for one process and tells how it ended.
static int wait_for(int64_t rank, pid_t pid) {
  int status = 0;
  while (waitpid(pid, &status, 0) < 0) {
    if (errno != EINTR) return -1;
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return 0;
  if (WIFSIGNALED(status)) {
    fprintf(stderr, "%s: rank %lld was ended by signal %d\n", program_invocation_short_name, (long long)rank, WTERMSIG(status));
  } else {
    fprintf(stderr, "%s: rank %lld failed\n", program_invocation_short_name, (long long)rank);
  }
  return -1;
}

/// Processes that run; 0: none. A handler reads it.
static pid_t *volatile children;
static volatile sig_atomic_t child_count;

void ranks_pass_on(int number) {
  for (sig_atomic_t i = 0; i < child_count; i++) {
    if (children[i] > 0) kill(children[i], number);
  }
}

int ranks_run_processes(int64_t count, rank_body body, void *context) {
  pid_t *pids = calloc((size_t)count, sizeof *pids);
  int64_t started = 0;
  int failed = pids == NULL;
  fflush(NULL);
  for (; !failed && started < count; started++) {
    pids[started] = fork();
    if (pids[started] == 0) child_count = 0; /* those before are not its own */
    if (pids[started] == 0) exit(body(context, started) == 0 ? EXIT_SUCCESS : EXIT_FAILURE);
    if (pids[started] < 0) {
      fprintf(stderr, "%s: cannot start rank %lld: %s\n", program_invocation_short_name, (long long)started, strerror(errno));
      failed = 1;
      break;
    }
    children = pids;
    child_count = (sig_atomic_t)started + 1;
  }
  for (int64_t i = 0; i < started; i++) {
    failed |= wait_for(i, pids[i]) != 0;
    pids[i] = 0;
  }
  child_count = 0;
  free(pids);
  return failed ? -1 : 0;
}
