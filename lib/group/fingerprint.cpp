/// @file Converts fingerprints to text, and compares them.
#include "group/fingerprint.h"

namespace zero {
namespace {

/// True if all properties that users see are equal, the detail excluded. The caller may differ: an
/// operation may belong to another call on another rank.
bool same_call(const Fingerprint &a, const Fingerprint &b) {
  return a.sequence == b.sequence && a.kind == b.kind && a.dtype == b.dtype && a.count == b.count && a.op == b.op && a.root == b.root;
}

bool same_message(const Fingerprint &a, const Fingerprint &b) {
  return is_message(b.kind) && a.kind != b.kind && a.sequence == b.sequence && a.dtype == b.dtype && a.count == b.count;
}

/// The value comes from another rank and may be invalid.
const char *caller_name(Caller caller) {
  switch (caller) {
    case Caller::group:
      return nullptr;
    case Caller::seal:
      return "zero_optimizer_seal";
    case Caller::begin:
      return "zero_optimizer_begin";
    case Caller::param_acquire:
      return "zero_optimizer_param_acquire";
    case Caller::gather_ahead:
      return "parameters gathered ahead of zero_optimizer_param_acquire";
    case Caller::gradients:
      return "the gradients' reduction";
    case Caller::micro_sums:
      return "the reduction of a micro-step of kind ZERO_MICRO_STEP_REDUCE";
    case Caller::micro_step:
      return "zero_optimizer_micro_step";
    case Caller::step:
      return "zero_optimizer_step";
    case Caller::gather_behind:
      return "parameters gathered behind a step";
    case Caller::reduce:
      return "zero_optimizer_reduce";
    case Caller::apply:
      return "zero_optimizer_apply";
    case Caller::gather:
      return "zero_optimizer_gather";
    case Caller::verify:
      return "zero_optimizer_verify";
    case Caller::read:
      return "zero_optimizer_read";
    case Caller::write:
      return "zero_optimizer_write";
    case Caller::sync_module_buffers:
      return "zero_optimizer_sync_module_buffers";
    case Caller::sync:
      return "zero_optimizer_sync";
    case Caller::buffer_create:
      return "zero_buffer_create";
    case Caller::buffer_whole_acquire:
      return "zero_buffer_whole_acquire";
    case Caller::buffer_reduce_scatter:
      return "zero_buffer_reduce_scatter";
    case Caller::buffer_read:
      return "zero_buffer_read";
    case Caller::buffer_write:
      return "zero_buffer_write";
    case Caller::save:
      return "zero_checkpoint_save";
    case Caller::load:
      return "zero_checkpoint_load";
    case Caller::export_params:
      return "zero_checkpoint_export";
    case Caller::balance:
      return "zero_group_balance";
    case Caller::server_seal:
      return "zero_server_seal";
  }
  return nullptr;
}

/// The name of the configuration in the detail of a call.
const char *detail_name(Caller caller) {
  switch (caller) {
    case Caller::buffer_create:
      return "ZERO_KEY_SHARD_WEIGHTS";
    case Caller::buffer_whole_acquire:
    case Caller::buffer_reduce_scatter:
    case Caller::buffer_read:
    case Caller::buffer_write:
      return "buffers";
    case Caller::read:
    case Caller::write:
      return "ids or slots";
    case Caller::param_acquire:
    case Caller::gather_ahead:
      return "parameters";
    case Caller::balance:
      return "totals or units";
    case Caller::micro_sums:
    case Caller::step:
    case Caller::reduce:
      return "numbers of micro-steps of kind ZERO_MICRO_STEP_REDUCE";
    default:
      return "tensors, parts or settings";
  }
}

/// True for operations that users know only by their caller.
bool is_internal(OperationKind kind) {
  return kind == OperationKind::exchange || kind == OperationKind::split || kind == OperationKind::seal || kind == OperationKind::call;
}

std::string arguments_text(const Fingerprint &fingerprint) {
  if (fingerprint.kind == OperationKind::barrier || (is_internal(fingerprint.kind) && fingerprint.dtype == 0)) return "";
  std::string text = std::string("(") + (fingerprint.dtype != 0 ? dtype_name(static_cast<DType>(fingerprint.dtype)) : "bytes");
  if (fingerprint.kind != OperationKind::exchange) text += ", count " + std::to_string(fingerprint.count);
  if (const char *op = reduce_name(static_cast<ReduceOp>(fingerprint.op))) text += std::string(", ") + op;
  if (fingerprint.root >= 0) {
    const char *role = ", root ";
    if (fingerprint.kind == OperationKind::send) role = ", to rank ";
    if (fingerprint.kind == OperationKind::recv) role = ", from rank ";
    text += role + std::to_string(fingerprint.root);
  }
  return text + ")";
}

std::string call_text(uint64_t sequence, OperationKind kind, Caller caller, const std::string &arguments) {
  const std::string number = "#" + std::to_string(sequence) + " ";
  const char *call = caller_name(caller);
  if (call == nullptr) return number + operation_name(kind) + arguments;
  return is_internal(kind) ? number + call + arguments : number + operation_name(kind) + arguments + " of " + call;
}

}  // namespace

const char *operation_name(OperationKind kind) {
  switch (kind) {
    case OperationKind::barrier:
      return "barrier";
    case OperationKind::broadcast:
      return "broadcast";
    case OperationKind::all_reduce:
      return "all_reduce";
    case OperationKind::reduce_scatter:
      return "reduce_scatter";
    case OperationKind::all_gather:
      return "all_gather";
    case OperationKind::reduce:
      return "reduce";
    case OperationKind::gather:
      return "gather";
    case OperationKind::scatter:
      return "scatter";
    case OperationKind::all_to_all:
      return "all_to_all";
    case OperationKind::send:
      return "send";
    case OperationKind::recv:
      return "recv";
    case OperationKind::exchange:
      return "exchange";
    case OperationKind::split:
      return "split";
    case OperationKind::seal:
      return "seal";
    case OperationKind::call:
      return "call";
  }
  return "unknown operation";
}

std::string operation_text(uint64_t sequence, OperationKind kind, Caller caller) { return call_text(sequence, kind, caller, ""); }

std::string to_text(const Fingerprint &fingerprint) {
  return call_text(fingerprint.sequence, fingerprint.kind, fingerprint.caller, arguments_text(fingerprint));
}

Status compare(const Fingerprint &mine, int64_t my_rank, const Fingerprint &theirs, int64_t their_rank) {
  const bool same = is_message(mine.kind) ? same_message(mine, theirs) : same_call(mine, theirs);
  if (same && mine.detail == theirs.detail) return {};
  const std::string my_text = to_text(mine);
  const std::string their_text = to_text(theirs);
  const auto my_number = lld(my_rank);
  const auto their_number = lld(their_rank);
  ZERO_CHECK(!same || mine.caller != theirs.caller, ZERO_E_MISMATCH,
             "rank %lld and rank %lld both called %s, but with different %s; all ranks give the same", my_number, their_number,
             my_text.c_str(), detail_name(mine.caller));
  return Status::error(ZERO_E_MISMATCH, "rank %lld called %s but rank %lld called %s; all ranks must make the same calls in the same order",
                       my_number, my_text.c_str(), their_number, their_text.c_str());
}

}  // namespace zero
