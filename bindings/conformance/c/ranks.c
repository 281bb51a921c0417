/// @file ranks: threads, their group, and the line they make together.
#include "ranks.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"

enum { kMostRanks = 3 };

struct rank_thread {
  pthread_t thread;
  const char *group_name;
  rank_body body;
  struct rank rank;
};

static void *thread_main(void *argument) {
  struct rank_thread *self = argument;
  must(zero_group_create_local(self->group_name, self->rank.id, self->rank.size, NULL, &self->rank.group));
  self->body(&self->rank);
  return NULL;
}

static void start(struct rank_thread *self) {
  const int error = pthread_create(&self->thread, NULL, thread_main, self);
  if (error == 0) return;
  fprintf(stderr, "conformance: cannot start rank %lld: %s\n", (long long)self->rank.id, strerror(error));
  exit(EXIT_FAILURE);
}

/// A name that no other run, and no other scenario of this one, has.
static void name_group(char *name, size_t nbytes) {
  static int group_count;
  snprintf(name, nbytes, "conformance.c.%ld.%d", (long)getpid(), group_count++);
}

void ranks_add(struct text *line, int64_t size, rank_body body, const void *context) {
  struct rank_thread threads[kMostRanks] = {0};
  char group_name[64];
  name_group(group_name, sizeof group_name);
  for (int64_t i = 0; i < size; i++) {
    threads[i].group_name = group_name;
    threads[i].body = body;
    threads[i].rank.id = i;
    threads[i].rank.size = size;
    threads[i].rank.context = context;
    start(&threads[i]);
  }
  for (int64_t i = 0; i < size; i++) pthread_join(threads[i].thread, NULL);
  for (int64_t i = 0; i < size; i++) {
    if (threads[i].rank.text.length > 0) text_add(line, "%s", threads[i].rank.text.chars);
    zero_group_release(threads[i].rank.group);
  }
}

void ranks_run(const char *scenario, int64_t size, rank_body body, const void *context) {
  struct text line = {0};
  ranks_add(&line, size, body, context);
  text_print(scenario, &line);
}
