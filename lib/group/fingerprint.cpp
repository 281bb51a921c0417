/// @file Fingerprints as text and their comparison.
#include "group/fingerprint.h"

namespace zero {
namespace {

/// What users see differ: everything but the detail.
bool same_call(const Fingerprint &a, const Fingerprint &b) {
  return a.sequence == b.sequence && a.kind == b.kind && a.dtype == b.dtype && a.count == b.count && a.op == b.op && a.root == b.root;
}

bool same_message(const Fingerprint &a, const Fingerprint &b) {
  return is_message(b.kind) && a.kind != b.kind && a.sequence == b.sequence && a.dtype == b.dtype && a.count == b.count;
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
  }
  return "unknown operation";
}

std::string to_text(const Fingerprint &fingerprint) {
  std::string text = "#" + std::to_string(fingerprint.sequence) + " " + operation_name(fingerprint.kind);
  if (fingerprint.kind == OperationKind::barrier) return text;
  text += "(";
  text += fingerprint.dtype != 0 ? dtype_name(static_cast<DType>(fingerprint.dtype)) : "bytes";
  text += ", count " + std::to_string(fingerprint.count);
  if (const char *op = reduce_name(static_cast<ReduceOp>(fingerprint.op))) text += std::string(", ") + op;
  if (fingerprint.root >= 0) {
    const char *role = ", root ";
    if (fingerprint.kind == OperationKind::send) role = ", to rank ";
    if (fingerprint.kind == OperationKind::recv) role = ", from rank ";
    text += role + std::to_string(fingerprint.root);
  }
  return text + ")";
}

Status compare(const Fingerprint &mine, int64_t my_rank, const Fingerprint &theirs, int64_t their_rank) {
  const bool same = is_message(mine.kind) ? same_message(mine, theirs) : same_call(mine, theirs);
  if (same && mine.detail == theirs.detail) return {};
  const std::string my_text = to_text(mine);
  const std::string their_text = to_text(theirs);
  const auto my_number = lld(my_rank);
  const auto their_number = lld(their_rank);
  ZERO_CHECK(!same, ZERO_E_MISMATCH,
             "rank %lld and rank %lld both called %s, but about different tensors, parts or settings (hash %016llx against %016llx); all "
             "ranks give the same",
             my_number, their_number, my_text.c_str(), static_cast<unsigned long long>(mine.detail),
             static_cast<unsigned long long>(theirs.detail));
  return Status::error(ZERO_E_MISMATCH, "rank %lld called %s but rank %lld called %s; all ranks must make the same calls in the same order",
                       my_number, my_text.c_str(), their_number, their_text.c_str());
}

}  // namespace zero
