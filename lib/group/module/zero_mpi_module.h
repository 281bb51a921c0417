/// @file The table of C functions through which libzero calls MPI. The module that fills it is
/// built with a site's own mpicc, and is the only file that includes <mpi.h>. Handles pass as
/// 64-bit words, because MPI libraries disagree on their types.
#ifndef ZERO_MPI_MODULE_H
#define ZERO_MPI_MODULE_H

#include <zero/zero.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Raised with every change of the table, so that a module of another build is refused instead of
   called with wrong arguments. */
#define ZERO_MPI_TABLE_VERSION 1

#define ZERO_MPI_TEXT_(x) #x
#define ZERO_MPI_TEXT(x) ZERO_MPI_TEXT_(x)
#define ZERO_MPI_BUILD                                                                                  \
  "libzero " ZERO_MPI_TEXT(ZERO_VERSION_MAJOR) "." ZERO_MPI_TEXT(ZERO_VERSION_MINOR) "." ZERO_MPI_TEXT( \
      ZERO_VERSION_PATCH) ", MPI table " ZERO_MPI_TEXT(ZERO_MPI_TABLE_VERSION)

/* The one symbol a module exports. */
#define ZERO_MPI_MODULE_SYMBOL "zero_mpi_module"

enum zero_mpi_thread_level {
  ZERO_MPI_THREAD_SINGLE = 0,
  ZERO_MPI_THREAD_FUNNELED = 1,
  ZERO_MPI_THREAD_SERIALIZED = 2,
  ZERO_MPI_THREAD_MULTIPLE = 3
};

/* The results of start. */
typedef struct zero_mpi_start {
  int64_t finalized;      /* 1: MPI has been finalised before; the other members are not set */
  int64_t initialized_us; /* 1: start initialised MPI */
  int64_t thread_level;   /* a zero_mpi_thread_level */
  int64_t main_thread;    /* 1: the caller is the thread that initialised MPI */
  int64_t tag_limit;      /* largest tag */
  int64_t world_size;
} zero_mpi_start;

/*
 * Functions return 0 or an MPI error code for error_text. A request or communicator is a word that
 * must keep its address until its operation has ended; the request is then set to MPI's null
 * request. Only start and stop block.
 */
typedef struct zero_mpi_table {
  uint64_t struct_size;
  const char *build; /* ZERO_MPI_BUILD of the module */

  /* Initialises MPI (for several threads) unless it is initialised. */
  int32_t (*start)(zero_mpi_start *out);
  /* Finalises MPI. */
  int32_t (*stop)(void);
  /* 1 while MPI may be called. */
  int32_t (*alive)(void);
  void (*library_text)(char *out, int64_t out_nbytes);
  void (*error_text)(int32_t error, char *out, int64_t out_nbytes);

  /* Begins to duplicate a communicator (a Fortran handle, or ZERO_MPI_WORLD); *out is ready when
   *request has ended. */
  int32_t (*comm_duplicate)(int64_t fortran, uint64_t *out, uint64_t *request);
  /* Rank and size of a ready communicator; errors on it are returned from now on. */
  int32_t (*comm_open)(const uint64_t *comm, int64_t *out_rank, int64_t *out_size);
  int32_t (*comm_free)(uint64_t *comm);

  /* nbytes < 2^31; peer -1 receives from any rank. */
  int32_t (*send)(const uint64_t *comm, const void *data, int64_t nbytes, int64_t peer, int64_t tag, uint64_t *request);
  int32_t (*recv)(const uint64_t *comm, void *data, int64_t nbytes, int64_t peer, int64_t tag, uint64_t *request);
  /* *out_peer and *out_nbytes describe the received message. */
  int32_t (*test)(uint64_t *request, int32_t *out_done, int64_t *out_peer, int64_t *out_nbytes);
  /* Asks to cancel a receive; test reports its end. */
  int32_t (*cancel)(uint64_t *request);
} zero_mpi_table;

typedef const zero_mpi_table *(*zero_mpi_module_fn)(void);

#ifdef __cplusplus
}
#endif

#endif
