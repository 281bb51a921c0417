/// @file What ranks say of themselves when another asks where they stand.
#include "group/peer_status.h"
#include "core/clock.h"

#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <vector>

namespace zero::peer_status_test {
namespace {

TEST(PeerStatus, TextSaysWhereTheRankStands) {
  PeerStatus answer;
  EXPECT_EQ(peer_status_text("rank 3", &answer), "rank 3 is in no collective of this group");
  answer.state = PeerStatus::inside;
  answer.where.sequence = 17;
  answer.where.kind = OperationKind::barrier;
  EXPECT_EQ(peer_status_text("rank 3", &answer), "rank 3 is in " + to_text(answer.where));
  answer.state = PeerStatus::failed;
  EXPECT_EQ(peer_status_text("rank 3", &answer), "rank 3 has met an error");
  answer.state = PeerStatus::gone;
  EXPECT_EQ(peer_status_text("rank 3", &answer), "rank 3 has left the group");
  EXPECT_EQ(peer_status_text("rank 3", nullptr), "rank 3 did not answer (stopped, ended, unreachable, or busy outside libzero)");
}

TEST(PeerStatus, TextOfManyRanksNamesTheFirst) {
  const auto name = [](int64_t rank) { return "r" + std::to_string(rank); };
  std::vector<int64_t> ranks(8);
  std::iota(ranks.begin(), ranks.end(), 1);
  EXPECT_EQ(progress_text({}, name), "");
  EXPECT_EQ(progress_text({4}, name), "r4");
  EXPECT_EQ(progress_text(ranks, name), "r1; r2; r3; r4; r5; r6; r7; r8");
  ranks.push_back(20);
  ranks.push_back(21);
  EXPECT_EQ(progress_text(ranks, name), "r1; r2; r3; r4; r5; r6; r7; r8; and 2 more");
}

TEST(PeerStatus, WaitEndsWhenAllHaveAnswered) {
  int64_t asked = 0;
  await_answers([&] { return ++asked == 3; });
  EXPECT_EQ(asked, 3);
}

TEST(PeerStatus, WaitEndsWithoutAnswers) {
  const int64_t begin = now_ns();
  int64_t asked = 0;
  await_answers([&] { return ++asked < 0; });
  EXPECT_GT(asked, 0);
  EXPECT_GE(now_ns() - begin, 100'000'000);
}

}  // namespace
}  // namespace zero::peer_status_test
