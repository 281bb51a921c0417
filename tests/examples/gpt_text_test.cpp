/// @file What train_gpt reads and in which order it sees it, and the exponential that it computes with.
/// Knows nothing of models.
#include <gtest/gtest.h>

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include <cstdio>
#include <deque>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

extern "C" {
#include "examples/gpt/real.h"
#include "examples/gpt/text.h"
}

namespace {

class GptText : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("gpt_text_test." + std::to_string(getpid()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override {
    text_release(&text_);
    std::filesystem::remove_all(folder_);
  }
  /// Both give a path that is there until the test ends: texts keep its address.
  const char *write(const std::string &name, const std::string &bytes) {
    const std::string &path = paths_.emplace_back(folder_ / name);
    std::ofstream(path, std::ios::binary) << bytes;
    return path.c_str();
  }
  const char *zip(const std::string &name, const std::string &bytes) {
    const std::string &path = paths_.emplace_back(folder_ / name);
    const gzFile file = gzopen(path.c_str(), "wb");
    gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size()));
    gzclose(file);
    return path.c_str();
  }
  std::string bytes() const { return {reinterpret_cast<const char *>(text_.bytes), static_cast<size_t>(text_.count)}; }

  std::filesystem::path folder_;
  std::deque<std::string> paths_;
  struct text text_ {};
};

TEST_F(GptText, AFolderIsItsTextsInTheOrderOfTheirNames) {
  write("b.txt", "second");
  zip("a.md.gz", "first ");
  zip("c.txt.gz", " third");
  write("d.html", "not this");
  ASSERT_EQ(text_read(folder_.c_str(), &text_), 0);
  EXPECT_EQ(bytes(), "first second third");
  EXPECT_EQ(text_.training, 17);
}

TEST_F(GptText, AFileOfAnyNameIsAText) {
  const std::string large(3'000'001, 'x');
  ASSERT_EQ(text_read(zip("any", large), &text_), 0);
  EXPECT_EQ(bytes(), large);
}

TEST_F(GptText, TokenFilesAreThoseOfLlmC) {
  std::vector<int32_t> head(256, 0);
  head[0] = 20240520;
  head[1] = 1;
  head[2] = 30;
  std::vector<uint16_t> tokens;
  for (uint16_t i = 0; i < 30; ++i) tokens.push_back(static_cast<uint16_t>(50227 + i));
  std::string bytes(reinterpret_cast<const char *>(head.data()), 1024);
  bytes.append(reinterpret_cast<const char *>(tokens.data()), 60);
  ASSERT_EQ(text_read_tokens(write("tokens.bin", bytes), &text_), 0);
  int32_t ids[3], targets[3];
  text_copy(&text_, 5, 3, ids, targets);
  EXPECT_EQ(ids[0], 50232);
  EXPECT_EQ(targets[2], 50235);
  EXPECT_EQ(text_check(&text_, 1, 2, 50257), 0);
  testing::internal::CaptureStderr();
  EXPECT_EQ(text_check(&text_, 1, 2, 256), -1);
  EXPECT_NE(testing::internal::GetCapturedStderr().find("has token 50256, but the model's vocabulary ends at 255"), std::string::npos);
  text_release(&text_);
  testing::internal::CaptureStderr();
  EXPECT_EQ(text_read_tokens(write("cut.bin", bytes.substr(0, 1080)), &text_), -1);
  EXPECT_NE(testing::internal::GetCapturedStderr().find("truncated: its head says 30 tokens"), std::string::npos);
}

/// Places depend on seed, step and row alone: another number of ranks, or of micro-steps, sees the same batch, and a run that was carried
/// on sees what it would have seen.
TEST_F(GptText, PlacesAreAFunctionOfSeedStepAndRow) {
  ASSERT_EQ(text_read(write("text", std::string(100'000, 'a')), &text_), 0);
  std::set<int64_t> places;
  std::vector<int64_t> batch;
  for (int64_t step = 0; step < 100; ++step) {
    for (int64_t row = 0; row < 8; ++row) {
      batch.push_back(text_training_place(&text_, 3, step, 8, row, 128));
      ASSERT_GE(batch.back(), 0);
      ASSERT_LE(batch.back() + 128, text_.training - 1) << "a target lies in the validation part";
      places.insert(batch.back());
    }
  }
  EXPECT_GT(places.size(), 780u) << "places repeat";
  EXPECT_LT(*places.begin(), 1'000);
  EXPECT_GT(*places.rbegin(), 88'000);
  for (int64_t row = 7; row >= 0; --row) EXPECT_EQ(text_training_place(&text_, 3, 42, 8, row, 128), batch[static_cast<size_t>(42 * 8 + row)]);
  EXPECT_NE(text_training_place(&text_, 4, 42, 8, 0, 128), batch[42 * 8]);
}

TEST_F(GptText, ValidationPlacesAreSpreadOverTheLastTenth) {
  ASSERT_EQ(text_read(write("text", std::string(100'000, 'a')), &text_), 0);
  EXPECT_EQ(text_validation_place(&text_, 10, 0, 128), 90'000);
  for (int64_t row = 1; row < 10; ++row) {
    const int64_t place = text_validation_place(&text_, 10, row, 128);
    EXPECT_NEAR(static_cast<double>(place), 90'000 + 987.2 * static_cast<double>(row), 1);
    EXPECT_LE(place + 128, text_.count - 1);
  }
}

TEST(GptReal, ExponentialIsWithinTwoUnits) {
  for (double x = -87; x <= 88; x += 0.0037) {
    const auto given = static_cast<float>(x);
    const double expected = std::exp(static_cast<double>(given));
    ASSERT_NEAR(static_cast<double>(real_exp(given)) / expected, 1, 2.0 / (1 << 23)) << given;
  }
  EXPECT_EQ(real_exp(0.0f), 1.0f);
  EXPECT_GT(real_exp(-1e30f), 0.0f);
  EXPECT_LT(real_exp(1e30f), INFINITY);
  EXPECT_TRUE(std::isnan(real_exp(NAN)));
}

}  // namespace
