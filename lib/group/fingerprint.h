/// @file Fingerprint: the properties of a call on which ranks must agree before a collective writes
/// memory.
#pragma once

#include "core/dtype.h"
#include "core/status.h"

#include <cstdint>
#include <string>

namespace zero {

/// The operations of fingerprints: those of zero_operation, and internal ones.
enum class OperationKind : int32_t {
  barrier = ZERO_OPERATION_BARRIER,
  broadcast = ZERO_OPERATION_BROADCAST,
  all_reduce = ZERO_OPERATION_ALL_REDUCE,
  reduce_scatter = ZERO_OPERATION_REDUCE_SCATTER,
  all_gather = ZERO_OPERATION_ALL_GATHER,
  reduce = ZERO_OPERATION_REDUCE,
  gather = ZERO_OPERATION_GATHER,
  scatter = ZERO_OPERATION_SCATTER,
  all_to_all = ZERO_OPERATION_ALL_TO_ALL,
  send = ZERO_OPERATION_SEND,
  recv = ZERO_OPERATION_RECV,
  exchange = 100,  ///< pieces of any size between all ranks: buffer and optimizer read and write
  split = 101,
  seal = 102,
  call = 103,  ///< call of an optimizer, which waits for its ranks in other groups
};
/// Kinds 1 .. 11 are counted by number, internal ones as 0.
inline constexpr int kOperationKinds = 12;

const char *operation_name(OperationKind kind);

/// The call of an optimizer or a buffer to which an operation belongs. Used only in error texts.
enum class Caller : uint8_t {
  group,  ///< none: the operation is the call
  seal,
  begin,
  param_acquire,
  gather_ahead,
  gradients,
  micro_sums,
  micro_step,
  step,
  gather_behind,
  reduce,
  apply,
  gather,
  verify,
  read,
  write,
  sync_module_buffers,
  sync,
  buffer_create,
  buffer_whole_acquire,
  buffer_reduce_scatter,
  buffer_read,
  buffer_write,
  save,
  load,
  export_params,
  balance,
  server_seal,
};

/// "#17 all_reduce"; with a caller "#17 all_reduce of zero_optimizer_step", or of an internal
/// operation "#17 zero_optimizer_read".
std::string operation_text(uint64_t sequence, OperationKind kind, Caller caller);
/// True for a send or a recv.
constexpr bool is_message(OperationKind kind) { return kind == OperationKind::send || kind == OperationKind::recv; }

/// 64 bytes, sent unchanged.
struct Fingerprint {
  /// Number of collectives of this group so far, or of messages to or from this peer.
  uint64_t sequence = 0;
  OperationKind kind = OperationKind::barrier;
  int32_t dtype = 0;  ///< 0 = bytes
  int64_t count = 0;
  int32_t op = 0;  ///< a ReduceOp or 0
  Caller caller = Caller::group;
  uint8_t reserved[3] = {0, 0, 0};
  int64_t root = -1;  ///< -1: no root
  /// Hash of all other properties that must agree (ranges, divisor, configuration).
  uint64_t detail = 0;
  uint64_t padding[2] = {0, 0};
};
static_assert(sizeof(Fingerprint) == 64);

/// "#17 all_reduce(f32, count 1024, sum)"; with a caller "#17 all_reduce(f32, count 1024, sum) of
/// zero_optimizer_step", or of an internal operation "#17 zero_optimizer_read(f32)".
std::string to_text(const Fingerprint &fingerprint);

/// Returns ZERO_OK if both describe the same collective, otherwise ZERO_E_MISMATCH with both ranks
/// and calls. A send matches a recv.
Status compare(const Fingerprint &mine, int64_t my_rank, const Fingerprint &theirs, int64_t their_rank);

}  // namespace zero
