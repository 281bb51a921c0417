/// @file The table of C functions through which libzero calls NCCL. The module that fills it is the
/// only file that includes <nccl.h>. Streams are CUDA streams, and memory belongs to the device on
/// which a communicator was created.
#ifndef ZERO_NCCL_MODULE_H
#define ZERO_NCCL_MODULE_H

#include <zero/zero.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Raised with every change of the table, so that a module of another build is refused instead of
   called with wrong arguments. */
#define ZERO_NCCL_TABLE_VERSION 2

#define ZERO_NCCL_TEXT_(x) #x
#define ZERO_NCCL_TEXT(x) ZERO_NCCL_TEXT_(x)
#define ZERO_NCCL_BUILD                                                                                    \
  "libzero " ZERO_NCCL_TEXT(ZERO_VERSION_MAJOR) "." ZERO_NCCL_TEXT(ZERO_VERSION_MINOR) "." ZERO_NCCL_TEXT( \
      ZERO_VERSION_PATCH) ", NCCL table " ZERO_NCCL_TEXT(ZERO_NCCL_TABLE_VERSION)

/* The one symbol a module exports. */
#define ZERO_NCCL_MODULE_SYMBOL "zero_nccl_module"

/* The oldest supported NCCL, in its own notation: 2.28.0. */
#define ZERO_NCCL_OLDEST 22800

/* Bytes of the id of a new communicator. */
#define ZERO_NCCL_ID_NBYTES 128

/* The use of `data` and `nbytes` in a move. */
enum {
  ZERO_NCCL_RECV = 0, /* received from the peer */
  ZERO_NCCL_SEND = 1, /* sent to the peer */
  /* Sent from `data` to all ranks if this rank is the peer, otherwise received from the peer. */
  ZERO_NCCL_BROADCAST = 2,
  /* Receives the pieces of all ranks in order; this rank's piece, number `peer`, is already in its
     place. The only move of its round. */
  ZERO_NCCL_GATHER = 3
};

typedef struct zero_nccl_move {
  void *data;
  int64_t nbytes;
  int64_t peer;
  int64_t kind;
} zero_nccl_move;

/*
 * Functions return 0 or an NCCL result code for error_text. Communicators do not block: an
 * operation may still be in progress when its function has returned, and comm_state reports its
 * end. Until then only comm_state and comm_abort may be called for the communicator. One thread at
 * a time per communicator.
 */
typedef struct zero_nccl_table {
  uint64_t struct_size;
  const char *build; /* ZERO_NCCL_BUILD of the module */

  /* 22809 stands for 2.28.9. */
  int32_t (*version)(int64_t *out);
  /* Describes a result code, with NCCL's own text for the latest error if there is one. */
  void (*error_text)(int32_t error, char *out, int64_t out_nbytes);

  /* Makes the id of a new communicator, which its ranks must share. `out` has ZERO_NCCL_ID_NBYTES
     bytes. */
  int32_t (*unique_id)(void *out);
  /* Begins to create this rank's communicator on the calling thread's current device. *out is set
     if there is a communicator to abort, even on an error. NCCL may write the same value there
     again until comm_abort or comm_free has returned. */
  int32_t (*comm_begin)(const void *id, int64_t rank, int64_t size, void **out);
  /* *out_busy: 1 while an operation is in progress. Network errors are returned here, too. */
  int32_t (*comm_state)(void *comm, int32_t *out_busy);

  /* Enqueues all moves of one round on a stream; they run together. Moves between two ranks are
     matched in the order in which both ranks list them. Broadcasts have the same order on all
     ranks. */
  int32_t (*move)(void *comm, const zero_nccl_move *moves, int64_t count, void *stream);

  /* Aborts operations in progress and frees the communicator. May never return. */
  int32_t (*comm_abort)(void *comm);
  /* Begins to end a communicator that has no operation in progress. */
  int32_t (*comm_finish)(void *comm);
  /* Frees a communicator that has ended. May never return. */
  int32_t (*comm_free)(void *comm);
} zero_nccl_table;

typedef const zero_nccl_table *(*zero_nccl_module_fn)(void);

#ifdef __cplusplus
}
#endif

#endif
