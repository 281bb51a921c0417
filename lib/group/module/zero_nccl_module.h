/// @file The table of C functions through which libzero reaches NCCL. The module that fills it is the only file that knows <nccl.h>.
/// Streams are those of CUDA, and memory is of the device a communicator was made on.
#ifndef ZERO_NCCL_MODULE_H
#define ZERO_NCCL_MODULE_H

#include <zero/zero.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Raised with every change of the table, so that a module from another build is refused instead of called wrongly. */
#define ZERO_NCCL_TABLE_VERSION 2

#define ZERO_NCCL_TEXT_(x) #x
#define ZERO_NCCL_TEXT(x) ZERO_NCCL_TEXT_(x)
#define ZERO_NCCL_BUILD                                                                                    \
  "libzero " ZERO_NCCL_TEXT(ZERO_VERSION_MAJOR) "." ZERO_NCCL_TEXT(ZERO_VERSION_MINOR) "." ZERO_NCCL_TEXT( \
      ZERO_VERSION_PATCH) ", NCCL table " ZERO_NCCL_TEXT(ZERO_NCCL_TABLE_VERSION)

/* The one symbol a module exports. */
#define ZERO_NCCL_MODULE_SYMBOL "zero_nccl_module"

/* The oldest NCCL that is used, as NCCL counts: 2.28.0. */
#define ZERO_NCCL_OLDEST 22800

/* Of what names a communicator to be. */
#define ZERO_NCCL_ID_NBYTES 128

/* What becomes of `data` and `nbytes` of a move. */
enum {
  ZERO_NCCL_RECV = 0,      /* comes from the peer */
  ZERO_NCCL_SEND = 1,      /* goes to the peer */
  ZERO_NCCL_BROADCAST = 2, /* goes from there to all ranks where this one is the peer; otherwise comes there from the peer */
  ZERO_NCCL_GATHER = 3     /* all ranks' pieces come there, end to end; this rank's lies in its place, number `peer`. The only move */
};

typedef struct zero_nccl_move {
  void *data;
  int64_t nbytes;
  int64_t peer;
  int64_t kind;
} zero_nccl_move;

/*
 * Functions return 0 or an NCCL result code for error_text. Communicators do not block: what a function began may be under way when it has
 * returned, and comm_state tells. Meanwhile nothing else is done with the communicator but comm_state and comm_abort. One thread at a time
 * per communicator.
 */
typedef struct zero_nccl_table {
  uint64_t struct_size;
  const char *build; /* ZERO_NCCL_BUILD of the module */

  /* 22809: 2.28.9. */
  int32_t (*version)(int64_t *out);
  /* What a result code means and, where NCCL tells, what it says about the latest error. */
  void (*error_text)(int32_t error, char *out, int64_t out_nbytes);

  /* Names a communicator to be; its ranks give the same. `out` has ZERO_NCCL_ID_NBYTES bytes. */
  int32_t (*unique_id)(void *out);
  /* Begins to make this rank's communicator on the calling thread's current device. *out is set when something is left to abort, also where
     an error is returned, and may be set to the same again until comm_abort or comm_free has returned. */
  int32_t (*comm_begin)(const void *id, int64_t rank, int64_t size, void **out);
  /* *out_busy: whether something is under way. Errors that the network brings come here too. */
  int32_t (*comm_state)(void *comm, int32_t *out_busy);

  /* Gives a stream all moves of one round: they go on together. Moves between two ranks meet in the order in which both give them;
     broadcasts come on all ranks in the same order. */
  int32_t (*move)(void *comm, const zero_nccl_move *moves, int64_t count, void *stream);

  /* Ends what is under way and frees the communicator. May never return. */
  int32_t (*comm_abort)(void *comm);
  /* Begins to end a communicator with nothing under way. */
  int32_t (*comm_finish)(void *comm);
  /* Frees a communicator that has been ended. May never return. */
  int32_t (*comm_free)(void *comm);
} zero_nccl_table;

typedef const zero_nccl_table *(*zero_nccl_module_fn)(void);

#ifdef __cplusplus
}
#endif

#endif
