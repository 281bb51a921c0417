/// @file Fingerprints: their text, and that every differing field is found and named.
#include "group/fingerprint.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace zero::fingerprint_test {
namespace {

Fingerprint all_reduce() {
  Fingerprint fingerprint;
  fingerprint.sequence = 17;
  fingerprint.kind = OperationKind::all_reduce;
  fingerprint.dtype = ZERO_DTYPE_F32;
  fingerprint.count = 1024;
  fingerprint.op = ZERO_REDUCE_SUM;
  return fingerprint;
}

Fingerprint message(OperationKind kind) {
  Fingerprint fingerprint;
  fingerprint.sequence = 3;
  fingerprint.kind = kind;
  fingerprint.dtype = ZERO_DTYPE_I64;
  fingerprint.count = 5;
  fingerprint.root = kind == OperationKind::send ? 1 : 0;
  return fingerprint;
}

TEST(Fingerprint, TextNamesTheCall) {
  EXPECT_EQ(to_text(all_reduce()), "#17 all_reduce(f32, count 1024, sum)");
  Fingerprint broadcast = all_reduce();
  broadcast.kind = OperationKind::broadcast;
  broadcast.op = 0;
  broadcast.dtype = 0;
  broadcast.root = 2;
  EXPECT_EQ(to_text(broadcast), "#17 broadcast(bytes, count 1024, root 2)");
  EXPECT_EQ(to_text(message(OperationKind::send)), "#3 send(i64, count 5, to rank 1)");
  EXPECT_EQ(to_text(message(OperationKind::recv)), "#3 recv(i64, count 5, from rank 0)");
  EXPECT_EQ(to_text(Fingerprint()), "#0 barrier");
}

TEST(Fingerprint, TextNamesWhoseCallItIs) {
  Fingerprint mine = all_reduce();
  mine.caller = Caller::step;
  EXPECT_EQ(to_text(mine), "#17 all_reduce(f32, count 1024, sum) of zero_optimizer_step");
  EXPECT_EQ(operation_text(17, OperationKind::all_reduce, Caller::step), "#17 all_reduce of zero_optimizer_step");
  EXPECT_EQ(operation_text(17, OperationKind::all_reduce, Caller::group), "#17 all_reduce");
  Fingerprint barrier;
  barrier.caller = Caller::buffer_read;
  EXPECT_EQ(to_text(barrier), "#0 barrier of zero_buffer_read");
  // A bucket's reduction may come within another call on each rank.
  Fingerprint theirs = mine;
  theirs.caller = Caller::micro_step;
  EXPECT_TRUE(compare(mine, 0, theirs, 1).ok());
  theirs.detail = 1;
  EXPECT_STREQ(
      compare(mine, 0, theirs, 1).text(),
      "rank 0 called #17 all_reduce(f32, count 1024, sum) of zero_optimizer_step but rank 1 called #17 all_reduce(f32, count 1024, "
      "sum) of zero_optimizer_micro_step; all ranks must make the same calls in the same order");
  // What another rank sent may be anything.
  mine.caller = static_cast<Caller>(200);
  EXPECT_EQ(to_text(mine), to_text(all_reduce()));
}

TEST(Fingerprint, InternalOperationsAreTheCallThatTheyAreMadeIn) {
  Fingerprint words;
  words.sequence = 4;
  words.kind = OperationKind::seal;
  words.caller = Caller::seal;
  EXPECT_EQ(to_text(words), "#4 zero_optimizer_seal");
  words.caller = Caller::buffer_create;
  words.dtype = ZERO_DTYPE_F32;
  EXPECT_EQ(to_text(words), "#4 zero_buffer_create(f32, count 0)");
  words.kind = OperationKind::exchange;
  words.caller = Caller::read;
  EXPECT_EQ(to_text(words), "#4 zero_optimizer_read(f32)");
  EXPECT_EQ(operation_text(4, OperationKind::exchange, Caller::read), "#4 zero_optimizer_read");
  EXPECT_EQ(operation_text(4, OperationKind::split, Caller::seal), "#4 zero_optimizer_seal");
  EXPECT_EQ(operation_text(4, OperationKind::split, Caller::group), "#4 split");
}

TEST(Fingerprint, EveryDtypeAndReductionIsNamed) {
  const std::pair<int32_t, const char *> dtypes[] = {{0, "bytes"},
                                                     {ZERO_DTYPE_F32, "f32"},
                                                     {ZERO_DTYPE_F64, "f64"},
                                                     {ZERO_DTYPE_F16, "f16"},
                                                     {ZERO_DTYPE_BF16, "bf16"},
                                                     {ZERO_DTYPE_I32, "i32"},
                                                     {ZERO_DTYPE_I64, "i64"},
                                                     {ZERO_DTYPE_U8, "u8"}};
  const char *ops[] = {"", ", sum", ", avg", ", min", ", max", ", prod"};
  Fingerprint fingerprint = all_reduce();
  for (const auto &[dtype, name] : dtypes) {
    for (int32_t op = 0; op < 6; ++op) {
      fingerprint.dtype = dtype;
      fingerprint.op = op;
      EXPECT_EQ(to_text(fingerprint), std::string("#17 all_reduce(") + name + ", count 1024" + ops[op] + ")");
    }
  }
  // What another rank sent may be anything.
  fingerprint.dtype = 99;
  EXPECT_NE(to_text(fingerprint).find("?"), std::string::npos) << to_text(fingerprint);
}

TEST(Fingerprint, EveryOperationHasAName) {
  for (int32_t kind = 1; kind <= 11; ++kind) EXPECT_STRNE(operation_name(static_cast<OperationKind>(kind)), "unknown operation");
  for (const auto kind : {OperationKind::exchange, OperationKind::split, OperationKind::seal}) {
    EXPECT_STRNE(operation_name(kind), "unknown operation");
  }
  EXPECT_STREQ(operation_name(static_cast<OperationKind>(77)), "unknown operation");
}

TEST(Fingerprint, EqualCallsAgree) {
  EXPECT_TRUE(compare(all_reduce(), 0, all_reduce(), 1).ok());
  EXPECT_TRUE(compare(message(OperationKind::send), 0, message(OperationKind::recv), 1).ok());
  EXPECT_TRUE(compare(message(OperationKind::recv), 1, message(OperationKind::send), 0).ok());
}

TEST(Fingerprint, EveryDifferingFieldIsAMismatchThatNamesBothCalls) {
  const std::vector<std::function<void(Fingerprint &)>> changes = {
      [](Fingerprint &f) { f.sequence = 18; },          [](Fingerprint &f) { f.kind = OperationKind::reduce_scatter; },
      [](Fingerprint &f) { f.dtype = ZERO_DTYPE_F64; }, [](Fingerprint &f) { f.count = 1025; },
      [](Fingerprint &f) { f.op = ZERO_REDUCE_MAX; },   [](Fingerprint &f) { f.root = 3; },
  };
  for (const auto &change : changes) {
    Fingerprint theirs = all_reduce();
    change(theirs);
    const Status status = compare(all_reduce(), 0, theirs, 2);
    EXPECT_EQ(status.code(), ZERO_E_MISMATCH);
    const std::string text = status.text();
    EXPECT_NE(text.find("rank 0 called #17 all_reduce(f32, count 1024, sum)"), std::string::npos) << text;
    EXPECT_NE(text.find("rank 2 called " + to_text(theirs)), std::string::npos) << text;
  }
}

TEST(Fingerprint, DifferingDetailIsAMismatchThatSaysWhatDiffers) {
  const std::pair<Caller, const char *> whats[] = {{Caller::buffer_create, "ZERO_KEY_SHARD_WEIGHTS"},
                                                   {Caller::buffer_whole_acquire, "buffers"},
                                                   {Caller::read, "ids or slots"},
                                                   {Caller::param_acquire, "parameters"},
                                                   {Caller::group, "tensors, parts or settings"}};
  for (const auto &[caller, what] : whats) {
    Fingerprint mine = all_reduce();
    mine.caller = caller;
    Fingerprint theirs = mine;
    theirs.detail = 0xabc;
    const Status status = compare(mine, 0, theirs, 2);
    EXPECT_EQ(status.code(), ZERO_E_MISMATCH);
    EXPECT_EQ(status.text(),
              "rank 0 and rank 2 both called " + to_text(mine) + ", but with different " + what + "; all ranks give the same");
  }
}

TEST(Fingerprint, MessagesDifferByCountDtypeSequenceOrDirection) {
  Fingerprint recv = message(OperationKind::recv);
  recv.count = 6;
  EXPECT_EQ(compare(message(OperationKind::send), 0, recv, 1).code(), ZERO_E_MISMATCH);
  recv = message(OperationKind::recv);
  recv.dtype = ZERO_DTYPE_F64;
  EXPECT_EQ(compare(recv, 1, message(OperationKind::send), 0).code(), ZERO_E_MISMATCH);
  recv = message(OperationKind::recv);
  recv.sequence = 4;
  EXPECT_EQ(compare(recv, 1, message(OperationKind::send), 0).code(), ZERO_E_MISMATCH);
  EXPECT_EQ(compare(message(OperationKind::send), 0, message(OperationKind::send), 1).code(), ZERO_E_MISMATCH);
  EXPECT_EQ(compare(message(OperationKind::send), 0, all_reduce(), 1).code(), ZERO_E_MISMATCH);
}

}  // namespace
}  // namespace zero::fingerprint_test
