/// @file libzero_nccl.so: NCCL behind the table of zero_nccl_module.h. The only file that includes
/// <nccl.h>; no policy, no state.
#include "zero_nccl_module.h"

#include <nccl.h>
#include <stdio.h>
#include <string.h>

#if NCCL_VERSION_CODE < ZERO_NCCL_OLDEST
#error "libzero_nccl.so needs NCCL 2.28 or newer; this nccl.h is older"
#endif

/* C99 has no static assertion; an array of negative size stands in. */
typedef char id_fits[sizeof(ncclUniqueId) == ZERO_NCCL_ID_NBYTES ? 1 : -1];

/* Non-blocking communicators return ncclInProgress; comm_state reports the result later. */
static int32_t settle(ncclResult_t result) { return result == ncclInProgress ? 0 : (int32_t)result; }

static int32_t module_version(int64_t *out) {
  int version = 0;
  const ncclResult_t result = ncclGetVersion(&version);
  *out = version;
  return settle(result);
}

static void module_error_text(int32_t error, char *out, int64_t out_nbytes) {
  const char *latest = ncclGetLastError(NULL);
  if (out_nbytes <= 0) return;
  if (latest == NULL || *latest == '\0') {
    snprintf(out, (size_t)out_nbytes, "%s", ncclGetErrorString((ncclResult_t)error));
  } else {
    snprintf(out, (size_t)out_nbytes, "%s; its latest error: %s", ncclGetErrorString((ncclResult_t)error), latest);
  }
}

static int32_t module_unique_id(void *out) {
  ncclUniqueId id;
  const ncclResult_t result = ncclGetUniqueId(&id);
  if (result == ncclSuccess) memcpy(out, &id, sizeof id);
  return settle(result);
}

static int32_t module_comm_begin(const void *id, int64_t rank, int64_t size, void **out) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  ncclUniqueId copy;
  config.blocking = 0;
  memcpy(&copy, id, sizeof copy);
  /* NCCL may write to the handle after this function has returned, so the handle is in memory of
     the caller. */
  *out = NULL;
  return settle(ncclCommInitRankConfig((ncclComm_t *)out, (int)size, copy, (int)rank, &config));
}

static int32_t module_comm_state(void *comm, int32_t *out_busy) {
  ncclResult_t state = ncclSuccess;
  const ncclResult_t result = ncclCommGetAsyncError((ncclComm_t)comm, &state);
  *out_busy = result == ncclSuccess && state == ncclInProgress;
  return settle(result != ncclSuccess ? result : state);
}

static ncclResult_t give(ncclComm_t comm, const zero_nccl_move *move, cudaStream_t stream) {
  const size_t count = (size_t)move->nbytes;
  const int peer = (int)move->peer;
  if (count == 0) return ncclSuccess;
  switch (move->kind) {
    case ZERO_NCCL_SEND:
      return ncclSend(move->data, count, ncclInt8, peer, comm, stream);
    case ZERO_NCCL_BROADCAST:
      return ncclBroadcast(move->data, move->data, count, ncclInt8, peer, comm, stream);
    case ZERO_NCCL_GATHER:
      return ncclAllGather((const char *)move->data + move->peer * move->nbytes, move->data, count, ncclInt8, comm, stream);
    default:
      return ncclRecv(move->data, count, ncclInt8, peer, comm, stream);
  }
}

static int32_t module_move(void *comm, const zero_nccl_move *moves, int64_t count, void *stream) {
  int64_t i;
  ncclResult_t ended;
  ncclResult_t result = ncclGroupStart();
  if (result != ncclSuccess) return settle(result);
  for (i = 0; i < count && settle(result) == 0; ++i) result = give((ncclComm_t)comm, &moves[i], (cudaStream_t)stream);
  /* Always ends the group. An open group would include all later NCCL calls of this thread. */
  ended = ncclGroupEnd();
  return settle(settle(result) != 0 ? result : ended);
}

static int32_t module_comm_abort(void *comm) { return settle(ncclCommAbort((ncclComm_t)comm)); }

static int32_t module_comm_finish(void *comm) { return settle(ncclCommFinalize((ncclComm_t)comm)); }

static int32_t module_comm_free(void *comm) { return settle(ncclCommDestroy((ncclComm_t)comm)); }

__attribute__((visibility("default"))) const zero_nccl_table *zero_nccl_module(void);
const zero_nccl_table *zero_nccl_module(void) {
  static const zero_nccl_table table = {
      .struct_size = sizeof(zero_nccl_table),
      .build = ZERO_NCCL_BUILD,
      .version = module_version,
      .error_text = module_error_text,
      .unique_id = module_unique_id,
      .comm_begin = module_comm_begin,
      .comm_state = module_comm_state,
      .move = module_move,
      .comm_abort = module_comm_abort,
      .comm_finish = module_comm_finish,
      .comm_free = module_comm_free,
  };
  return &table;
}
