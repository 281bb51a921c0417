/// @file The variants of every collective, and what each rank must see when two of them meet.
#include "tests/group/mismatch_cases.h"

#include "group/collectives.h"

#include <algorithm>

namespace zero::test {
namespace {

constexpr int64_t kCapacity = 64;
constexpr unsigned char kSendByte = 0x11;
constexpr unsigned char kRecvByte = 0x77;

bool reduces(OperationKind kind) {
  return kind == OperationKind::all_reduce || kind == OperationKind::reduce_scatter || kind == OperationKind::reduce;
}

bool has_root(OperationKind kind) {
  return kind == OperationKind::broadcast || kind == OperationKind::reduce || kind == OperationKind::gather ||
         kind == OperationKind::scatter;
}

/// Every collective with two counts, and where it has them two dtypes, reduce operations and roots.
std::vector<CollectiveCase> variants(int64_t size) {
  std::vector<CollectiveCase> all;
  all.push_back({OperationKind::barrier, DType::f32, ReduceOp::sum, 0, 0});
  for (const OperationKind kind :
       {OperationKind::broadcast, OperationKind::all_reduce, OperationKind::reduce_scatter, OperationKind::all_gather,
        OperationKind::reduce, OperationKind::gather, OperationKind::scatter, OperationKind::all_to_all}) {
    for (const int64_t count : {2 * size, 3 * size}) {
      for (const DType dtype : {DType::f32, DType::i32}) {
        for (const ReduceOp op : {ReduceOp::sum, ReduceOp::max}) {
          for (const int64_t root : {0, 1}) {
            if (!reduces(kind) && op != ReduceOp::sum) continue;
            if (!has_root(kind) && root != 0) continue;
            all.push_back({kind, dtype, op, count, root});
          }
        }
      }
    }
  }
  return all;
}

Task call(Group &group, const CollectiveCase &c, const Cuts &cuts, const void *send, void *recv) {
  switch (c.kind) {
    case OperationKind::barrier:
      return barrier(group);
    case OperationKind::broadcast:
      return broadcast(group, recv, c.count, c.dtype, c.root);
    case OperationKind::all_reduce:
      return all_reduce(group, send, recv, c.count, c.dtype, c.op);
    case OperationKind::reduce_scatter:
      return reduce_scatter(group, {send, recv, &cuts, c.dtype, c.op});
    case OperationKind::all_gather:
      return all_gather(group, send, recv, cuts, c.dtype);
    case OperationKind::reduce:
      return reduce(group, send, recv, c.count, c.dtype, c.op, c.root);
    case OperationKind::gather:
      return gather(group, send, recv, c.count, c.dtype, c.root);
    case OperationKind::scatter:
      return scatter(group, send, recv, c.count, c.dtype, c.root);
    default:
      return all_to_all(group, send, recv, c.count, c.dtype);
  }
}

bool names(const std::string &text, const CollectiveCase &c) {
  if (text.find(operation_name(c.kind)) == std::string::npos) return false;
  return c.kind == OperationKind::barrier || text.find("count " + std::to_string(c.count)) != std::string::npos;
}

bool all_bytes(const std::vector<unsigned char> &bytes, unsigned char value) {
  return std::all_of(bytes.begin(), bytes.end(), [value](unsigned char byte) { return byte == value; });
}

void run_pair(Group &root, const CollectiveCase &odd, const CollectiveCase &rest, int64_t odd_rank, Report *report) {
  ++report->cases;
  const std::string pair = to_text(odd) + " against " + to_text(rest);
  std::shared_ptr<Group> group;
  const Status made = root.queue()->run(split(root, 0, root.rank(), &group));
  report->expect(made.ok(), pair + ": split: " + made.text());
  if (group == nullptr) return;
  const CollectiveCase &mine = group->rank() == odd_rank ? odd : rest;
  std::vector<unsigned char> send(static_cast<size_t>(kCapacity * group->size()), kSendByte);
  std::vector<unsigned char> recv(static_cast<size_t>(kCapacity * group->size()), kRecvByte);
  const Cuts cuts = even_cuts(mine.count, group->size());
  const Status status = group->queue()->run(call(*group, mine, cuts, send.data(), recv.data()));
  const std::string text = status.text();
  report->expect(status.code() == ZERO_E_MISMATCH, pair + ": got " + status_name(status.code()) + ": " + text);
  report->expect(names(text, odd) && names(text, rest), pair + ": text does not name both: " + text);
  report->expect(all_bytes(send, kSendByte) && all_bytes(recv, kRecvByte), pair + ": user memory changed");
  report->expect(group->queue()->run(barrier(*group)).code() == ZERO_E_MISMATCH, pair + ": the group still works");
}

}  // namespace

void run_mismatch_cases(Group &root, int64_t every, Report *report) {
  const std::vector<CollectiveCase> all = variants(root.size());
  int64_t index = 0;
  for (size_t a = 0; a < all.size(); ++a) {
    for (size_t b = 0; b < a; ++b, ++index) {
      if (index % every == 0) run_pair(root, all[a], all[b], index / every % root.size(), report);
    }
  }
}

}  // namespace zero::test
