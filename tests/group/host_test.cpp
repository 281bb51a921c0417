/// @file Hosts: which ranks share one.
#include "group/host.h"

#include <gtest/gtest.h>

#include <vector>

namespace zero::host_test {
namespace {

using Numbers = std::vector<int64_t>;

TEST(Host, RanksWithOneIdHaveOneNumber) {
  EXPECT_EQ(number_hosts(std::vector<uint64_t>{7, 9, 7, 8, 9}), (Numbers{0, 1, 0, 2, 1}));
  EXPECT_TRUE(number_hosts({}).empty());
}

/// Whatever the numbers are.
TEST(Host, APlaceCountsRanksAndHosts) {
  for (const Numbers &hosts : {Numbers{0, 1, 0, 1, 1}, {40, -3, 40, -3, -3}}) {
    const Place place = place_of(hosts, 3);
    EXPECT_EQ(place.local_rank, 1);
    EXPECT_EQ(place.local_size, 3);
    EXPECT_EQ(place.host_count, 2);
    EXPECT_EQ(place.core_sharers, 3);
    EXPECT_EQ(place_of(hosts, 2).local_rank, 1);
    EXPECT_EQ(place_of(hosts, 2).local_size, 2);
  }
}

TEST(Host, ABlockIsThePowerOfTwoThatEveryHostHoldsWhole) {
  EXPECT_EQ(host_block_of(Numbers{5}), 1);
  EXPECT_EQ(host_block_of(Numbers{0, 0, 1, 1}), 2);
  EXPECT_EQ(host_block_of(Numbers{0, 1, 0, 1}), 1);
  EXPECT_EQ(host_block_of(Numbers{0, 0, 0, 0, 1, 1, 1, 1}), 4);
  EXPECT_EQ(host_block_of(Numbers{0, 0, 0, 0, 1, 1}), 2);
  EXPECT_EQ(host_block_of(Numbers{0, 0, 0, 1, 1, 1}), 1);
  EXPECT_EQ(host_block_of(Numbers{0, 0, 1}), 1);
}

}  // namespace
}  // namespace zero::host_test
