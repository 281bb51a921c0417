/// @file servers: a run of which some ranks are servers, which hold and update all parameters, and
/// all others workers, which pull parameters and push gradients. Knows nothing of models and data.
#ifndef EXAMPLES_SERVERS_H
#define EXAMPLES_SERVERS_H

#include <stdint.h>
#include <zero/zero.h>

struct server_options {
  int64_t count;             /* the first so many ranks are servers; 0: ranks train together */
  int64_t staleness;         /* a worker is at most so many pushes ahead; -1: workers push in rounds */
  const char *refused;       /* the first option that does not go with servers, and its value; NULL: none */
  const char *refused_value; /* NULL: it has none */
  const char *reason;
};

extern const char server_usage[]; /* lines of a usage text */

/// Call it for every option, without its dashes; `text` is NULL for an option without a value.
void server_options_see(struct server_options *options, const char *name, const char *text);

/// Checks the options of `ranks` ranks, 0 for those of a launcher. Like all functions below that
/// return int it gives 0, or -1 after a line on standard error.
int server_options_settle(const struct server_options *options, int64_t ranks);

/// SIGTERM, SIGINT and SIGUSR1 now end this process and the ranks that it started: there is nothing
/// to save.
void servers_end_by_signals(void);

/// One rank. All is zero before servers_open().
struct servers {
  const struct server_options *options;
  zero_group *group;   /* of all ranks */
  zero_group *servers; /* of the servers; NULL on a worker */
  zero_server *server;
  int64_t rank;
  int64_t worker;    /* the number of this worker, from 0; negative on a server */
  int64_t workers;   /* their number */
  int64_t count;     /* elements of all parameters */
  float *parameters; /* [count], as pulled; on a server the first values, and in the end the final ones */
  float *gradients;  /* [count] of a worker, which it pushes; NULL on a server */
};

/// Takes `group`, also if it fails. `out_alone` receives a group of this rank alone, which the
/// caller releases. A collective.
int servers_open(struct servers *servers, const struct server_options *options, zero_group *group, int64_t count, zero_group **out_alone);

/// Adds the settings of servers to a config that has algorithm and rates, and connects all ranks.
/// On a server `parameters` are the first values. A collective.
int servers_connect(struct servers *servers, zero_config *config);

/// Makes the other ranks fail too, if this one fails before it is connected.
void servers_give_up(struct servers *servers);

/// Also after a failure.
void servers_release(struct servers *servers);

/// Serves until no worker is left. Then `parameters` are the final values on all servers, and rank
/// 0 prints the counts.
int servers_serve(struct servers *servers);

/// Makes `gradients` from `parameters`, on batch `step` of all.
typedef int (*server_batch)(void *context, int64_t step);

/// Takes its part of the batches 0 .. steps - 1: for each it pulls, calls `batch` and pushes. Then
/// it leaves.
int servers_work(struct servers *servers, int64_t steps, server_batch batch, void *context);

#endif
