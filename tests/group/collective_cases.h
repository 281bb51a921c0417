/// @file Every collective with every dtype, reduce operation, size and root, checked bit for bit against an own implementation of the
/// summation tree and against float64. Knows a Group, not its transport: the same cases run over threads, processes and MPI.
#pragma once

#include "core/dtype.h"
#include "core/partition.h"
#include "group/group.h"
#include "tests/sizes.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace zero::test {

/// What happened on one rank.
struct Report {
  int64_t cases = 0;
  int64_t failures = 0;
  std::string text;  ///< the first few failures

  void expect(bool holds, const std::string &what);
};

struct CollectiveCase {
  OperationKind kind;
  DType dtype;
  ReduceOp op;
  int64_t count;  ///< elements of the whole
  int64_t root;
};

using Bytes = std::vector<unsigned char>;

/// Elements [begin, end) of what a rank gives in a case.
Bytes data_of(const CollectiveCase &collective, int64_t rank, int64_t begin, int64_t end);
/// Elements of the reduction over all ranks, by an own implementation of the tree; also compares it with float64.
Bytes reduced(const CollectiveCase &collective, int64_t size, Range range, Report *report);

/// Every n-th case runs.
inline const size_t kCaseStride = few_tests() ? 13 : 1;

/// All cases for a group of this size.
std::vector<CollectiveCase> collective_cases(int64_t size);

std::string to_text(const CollectiveCase &collective);

/// Where the memory lies that cases give to collectives. Any thread.
class CaseMemory {
 public:
  virtual ~CaseMemory() = default;
  virtual void *alloc(int64_t nbytes) = 0;
  virtual void free(void *data, int64_t nbytes) = 0;
  /// From and to memory of the host.
  virtual void write(void *to, const void *from, int64_t nbytes) = 0;
  virtual void read(void *to, const void *from, int64_t nbytes) = 0;
};
CaseMemory &host_memory();

/// Runs one case on this rank and checks everything that it wrote or should not have written.
void run_collective_case(Group &group, const CollectiveCase &collective, Report *report, CaseMemory &memory = host_memory());

/// Splits the group into two colors (odd ranks, even ranks in reversed order) and runs cases in both children and the parent at once.
void run_split_cases(Group &group, Report *report);
void run_split_cases_in(Group &group, Report *report, CaseMemory &memory);

/// Rank 0 begins a sum of several rounds and waits for a message that the last rank sends only once it has the sum.
void run_message_behind_sum(Group &group, Report *report);

/// A reducer over the kernels, as the library gives to its groups.
std::shared_ptr<const Reducer> test_reducer();

}  // namespace zero::test
