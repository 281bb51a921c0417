/// @file plot: runs python3 with plot.py.
/// Knows nothing of what is in the file.
#include "plot.h"

#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

extern char **environ;

/// Of its messages those that matter are plot.py's own, on standard error.
static int run(char *const arguments[]) {
  pid_t pid = 0;
  int status = 0;
  const int error = posix_spawnp(&pid, arguments[0], NULL, NULL, arguments, environ);
  if (error) {
    fprintf(stderr, "train_gpt: --plot needs python3: %s\n", strerror(error));
    return -1;
  }
  while (waitpid(pid, &status, 0) < 0) {
    if (errno != EINTR) return -1;
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -1;
}

int plot_check(const char *picture) {
  char *const arguments[] = {"python3", GPT_PLOT, "--check", (char *)picture, NULL};
  return run(arguments);
}

int plot_draw(const char *csv, const char *picture) {
  char *const arguments[] = {"python3", GPT_PLOT, (char *)picture, (char *)csv, NULL};
  return run(arguments);
}
