/// @file libzero_mpi.so: MPI behind the table of zero_mpi_module.h. The only file that includes
/// <mpi.h>; no policy, no state.
#include "zero_mpi_module.h"

#include <mpi.h>
#include <stdio.h>
#include <string.h>

/* C99 has no static assertion; an array of negative size stands in. */
typedef char request_fits[sizeof(MPI_Request) <= sizeof(uint64_t) ? 1 : -1];
typedef char comm_fits[sizeof(MPI_Comm) <= sizeof(uint64_t) ? 1 : -1];

static MPI_Comm *comm_at(uint64_t *word) { return (MPI_Comm *)(void *)word; }
static MPI_Request *request_at(uint64_t *word) { return (MPI_Request *)(void *)word; }

static MPI_Comm comm_of(const uint64_t *word) {
  MPI_Comm comm;
  memcpy(&comm, word, sizeof comm);
  return comm;
}

static int64_t level_number(int level) {
  if (level == MPI_THREAD_MULTIPLE) return ZERO_MPI_THREAD_MULTIPLE;
  if (level == MPI_THREAD_SERIALIZED) return ZERO_MPI_THREAD_SERIALIZED;
  if (level == MPI_THREAD_FUNNELED) return ZERO_MPI_THREAD_FUNNELED;
  return ZERO_MPI_THREAD_SINGLE;
}

static int32_t module_alive(void) {
  int initialized = 0;
  int finalized = 0;
  if (MPI_Initialized(&initialized) != MPI_SUCCESS || MPI_Finalized(&finalized) != MPI_SUCCESS) return 0;
  return initialized && !finalized;
}

static int32_t describe_world(zero_mpi_start *out) {
  int level = MPI_THREAD_SINGLE;
  int main_thread = 0;
  int size = 0;
  int found = 0;
  int *limit = NULL;
  int error = MPI_Query_thread(&level);
  if (error == MPI_SUCCESS) error = MPI_Is_thread_main(&main_thread);
  if (error == MPI_SUCCESS) error = MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (error == MPI_SUCCESS) error = MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &limit, &found);
  if (error != MPI_SUCCESS) return error;
  out->thread_level = level_number(level);
  out->main_thread = main_thread;
  out->world_size = size;
  out->tag_limit = found ? *limit : 32767; /* minimum that the standard guarantees */
  return MPI_SUCCESS;
}

static int32_t module_start(zero_mpi_start *out) {
  int initialized = 0;
  int finalized = 0;
  int error = MPI_Initialized(&initialized);
  if (error == MPI_SUCCESS) error = MPI_Finalized(&finalized);
  if (error != MPI_SUCCESS) return error;
  memset(out, 0, sizeof *out);
  out->finalized = finalized;
  if (finalized) return MPI_SUCCESS;
  if (!initialized) {
    int granted = MPI_THREAD_SINGLE;
    error = MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &granted);
    if (error != MPI_SUCCESS) return error;
    out->initialized_us = 1;
  }
  return describe_world(out);
}

static int32_t module_stop(void) { return MPI_Finalize(); }

static void copy_text(const char *text, char *out, int64_t out_nbytes) {
  if (out_nbytes > 0) snprintf(out, (size_t)out_nbytes, "%s", text);
}

static void module_library_text(char *out, int64_t out_nbytes) {
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0;
  MPI_Get_library_version(text, &length);
  copy_text(text, out, out_nbytes);
}

static void module_error_text(int32_t error, char *out, int64_t out_nbytes) {
  char text[MPI_MAX_ERROR_STRING] = "unknown MPI error";
  int length = 0;
  MPI_Error_string(error, text, &length);
  copy_text(text, out, out_nbytes);
}

static int32_t begin_duplicate(MPI_Comm comm, uint64_t *out, uint64_t *request) {
  int inter = 0;
  const int error = MPI_Comm_test_inter(comm, &inter);
  if (error != MPI_SUCCESS) return error;
  if (inter) return MPI_ERR_COMM;
  return MPI_Comm_idup(comm, comm_at(out), request_at(request));
}

static int32_t module_comm_duplicate(int64_t fortran, uint64_t *out, uint64_t *request) {
  const MPI_Comm comm = fortran == ZERO_MPI_WORLD ? MPI_COMM_WORLD : MPI_Comm_f2c((MPI_Fint)fortran);
  MPI_Errhandler handler;
  int error;
  if (comm == MPI_COMM_NULL) return MPI_ERR_COMM;
  /* MPI reports an invalid handle through the error handler of MPI_COMM_WORLD, which by default
     ends the process. */
  error = MPI_Comm_get_errhandler(MPI_COMM_WORLD, &handler);
  if (error != MPI_SUCCESS) return error;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  error = begin_duplicate(comm, out, request);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
  MPI_Errhandler_free(&handler);
  return error;
}

static int32_t module_comm_open(const uint64_t *comm, int64_t *out_rank, int64_t *out_size) {
  int rank = 0;
  int size = 0;
  int error = MPI_Comm_set_errhandler(comm_of(comm), MPI_ERRORS_RETURN);
  if (error == MPI_SUCCESS) error = MPI_Comm_rank(comm_of(comm), &rank);
  if (error == MPI_SUCCESS) error = MPI_Comm_size(comm_of(comm), &size);
  if (error != MPI_SUCCESS) return error;
  *out_rank = rank;
  *out_size = size;
  return MPI_SUCCESS;
}

static int32_t module_comm_free(uint64_t *comm) { return MPI_Comm_free(comm_at(comm)); }

static int32_t module_send(const uint64_t *comm, const void *data, int64_t nbytes, int64_t peer, int64_t tag, uint64_t *request) {
  return MPI_Isend(data, (int)nbytes, MPI_BYTE, (int)peer, (int)tag, comm_of(comm), request_at(request));
}

static int32_t module_recv(const uint64_t *comm, void *data, int64_t nbytes, int64_t peer, int64_t tag, uint64_t *request) {
  const int source = peer < 0 ? MPI_ANY_SOURCE : (int)peer;
  return MPI_Irecv(data, (int)nbytes, MPI_BYTE, source, (int)tag, comm_of(comm), request_at(request));
}

static int32_t module_test(uint64_t *request, int32_t *out_done, int64_t *out_peer, int64_t *out_nbytes) {
  MPI_Status status;
  int done = 0;
  int count = 0;
  const int error = MPI_Test(request_at(request), &done, &status);
  *out_done = done;
  if (error != MPI_SUCCESS || !done) return error;
  *out_peer = status.MPI_SOURCE;
  MPI_Get_count(&status, MPI_BYTE, &count);
  *out_nbytes = count;
  return MPI_SUCCESS;
}

static int32_t module_cancel(uint64_t *request) { return MPI_Cancel(request_at(request)); }

static const zero_mpi_table kTable = {
    sizeof(zero_mpi_table), ZERO_MPI_BUILD,   module_start,     module_stop, module_alive, module_library_text, module_error_text,
    module_comm_duplicate,  module_comm_open, module_comm_free, module_send, module_recv,  module_test,         module_cancel,
};

/* Declared here, because only libzero's look-up by name uses it. */
__attribute__((visibility("default"))) const zero_mpi_table *zero_mpi_module(void);
const zero_mpi_table *zero_mpi_module(void) { return &kTable; }
