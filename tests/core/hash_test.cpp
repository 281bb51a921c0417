/// @file Hashes: parts hash as the whole does, and what differs hashes differently.
#include "core/hash.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

namespace zero::hash_test {
namespace {

TEST(Hash, PartsHashAsTheWhole) {
  std::vector<unsigned char> bytes(3000);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<unsigned char>(i * 131 + i / 256);
  for (const size_t nbytes : {0, 1, 7, 240, 241, 1024, 3000}) {
    for (const size_t cut : {size_t{0}, nbytes / 3, nbytes}) {
      Hash hash;
      hash.add(bytes.data(), cut);
      hash.add(bytes.data() + cut, nbytes - cut);
      EXPECT_EQ(hash.value(), hash_of(bytes.data(), nbytes)) << nbytes << " bytes, cut at " << cut;
    }
  }
}

TEST(Hash, ValuesHashAsTheirBytes) {
  const double value = 0.25;
  Hash hash;
  hash.add(value);
  EXPECT_EQ(hash.value(), hash_of(&value, sizeof value));
}

TEST(Hash, EveryBitAndTheSeedMatter) {
  std::string text(300, 'a');
  std::set<uint64_t> seen{hash_of_text(text), hash_of_text(text, 1), hash_of_text(text.substr(1))};
  for (size_t bit = 0; bit < 8 * text.size(); ++bit) {
    std::string other = text;
    other[bit / 8] = static_cast<char>(other[bit / 8] ^ (1 << bit % 8));
    seen.insert(hash_of_text(other));
  }
  EXPECT_EQ(seen.size(), 3 + 8 * text.size());
}

/// Ranks of different builds compare them: XXH3 with its own vectors of nothing and of one byte.
TEST(Hash, IsXxh3) {
  EXPECT_EQ(hash_of("", 0), 0x2d06800538d394c2U);
  EXPECT_EQ(hash_of_text("a"), 0xe6c632b61e964e1fU);
}

}  // namespace
}  // namespace zero::hash_test
