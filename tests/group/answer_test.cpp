/// @file What ranks say of themselves when another asks where they stand.
#include "group/answer.h"
#include "core/clock.h"

#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <vector>

namespace zero::answer_test {
namespace {

TEST(Answer, TextSaysWhereTheRankStands) {
  Answer answer;
  EXPECT_EQ(answer_text("rank 3", &answer), "rank 3 is in no collective of this group");
  answer.standing = Answer::inside;
  answer.where.sequence = 17;
  answer.where.kind = OperationKind::barrier;
  EXPECT_EQ(answer_text("rank 3", &answer), "rank 3 is in " + to_text(answer.where));
  answer.standing = Answer::failed;
  EXPECT_EQ(answer_text("rank 3", &answer), "rank 3 has met an error");
  answer.standing = Answer::gone;
  EXPECT_EQ(answer_text("rank 3", &answer), "rank 3 has left the group");
  EXPECT_EQ(answer_text("rank 3", nullptr), "rank 3 did not answer (stopped, ended, unreachable, or busy outside libzero)");
}

TEST(Answer, TextOfManyRanksNamesTheFirst) {
  const auto name = [](int64_t rank) { return "r" + std::to_string(rank); };
  std::vector<int64_t> ranks(8);
  std::iota(ranks.begin(), ranks.end(), 1);
  EXPECT_EQ(standings_text({}, name), "");
  EXPECT_EQ(standings_text({4}, name), "r4");
  EXPECT_EQ(standings_text(ranks, name), "r1; r2; r3; r4; r5; r6; r7; r8");
  ranks.push_back(20);
  ranks.push_back(21);
  EXPECT_EQ(standings_text(ranks, name), "r1; r2; r3; r4; r5; r6; r7; r8; and 2 more");
}

TEST(Answer, WaitEndsWhenAllHaveAnswered) {
  int64_t asked = 0;
  await_answers([&] { return ++asked == 3; });
  EXPECT_EQ(asked, 3);
}

TEST(Answer, WaitEndsWithoutAnswers) {
  const int64_t begin = now_ns();
  int64_t asked = 0;
  await_answers([&] { return ++asked < 0; });
  EXPECT_GT(asked, 0);
  EXPECT_GE(now_ns() - begin, 100'000'000);
}

}  // namespace
}  // namespace zero::answer_test
