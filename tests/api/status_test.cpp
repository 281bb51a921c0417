/// @file zero/status.h and zero/zero.h: codes, names, texts per thread, versions.
#include "api_world.h"

#include <sys/wait.h>
#include <unistd.h>
#include <atomic>
#include <string>
#include <thread>
#include <vector>

namespace zero::test::status_test {
namespace {

TEST(Status, AThreadThatNeverFailedHasNoError) {
  std::jthread([] {
    char text[8] = "before";
    EXPECT_EQ(ZERO_OK, zero_last_error_copy(text, sizeof text));
    EXPECT_STREQ("", text);
  }).join();
}

TEST(Status, TheTextIsCutToFitAndTerminated) {
  EXPECT_EQ(ZERO_E_INVALID_ARGUMENT, zero_config_create(nullptr));
  const std::string whole = last_text();
  ASSERT_GT(whole.size(), 8U);
  for (int64_t nbytes = 1; nbytes <= static_cast<int64_t>(whole.size()) + 1; ++nbytes) {
    std::string text(whole.size() + 2, '#');
    EXPECT_EQ(ZERO_E_INVALID_ARGUMENT, zero_last_error_copy(text.data(), nbytes));
    EXPECT_EQ(whole.substr(0, static_cast<size_t>(nbytes) - 1), text.c_str());
    EXPECT_EQ('#', text[static_cast<size_t>(nbytes)]);
  }
}

TEST(Status, NoCharacterOfATextIsCut) {
  zero_group *group = nullptr;
  ZERO_EXPECT_OK(zero_group_create_local(nullptr, 0, 1, nullptr, &group));
  std::string reason;
  while (reason.size() < 600) reason += "\u20ac";
  ZERO_EXPECT_OK(zero_group_abort(group, reason.c_str()));
  EXPECT_EQ(ZERO_E_ABORTED, zero_group_barrier(group));
  const std::string whole = last_text();
  EXPECT_EQ(whole, "rank 0 called zero_group_abort: " + reason.substr(0, 498));
  for (const int64_t cut : {1, 2, 3}) {
    std::string text(whole.size(), '#');
    EXPECT_EQ(ZERO_E_ABORTED, zero_last_error_copy(text.data(), static_cast<int64_t>(whole.size()) + 1 - cut));
    EXPECT_EQ(whole.substr(0, whole.size() - 3), text.c_str());
  }
  zero_group_release(group);
}

TEST(Status, CopyingBadlyKeepsTheStoredError) {
  EXPECT_EQ(ZERO_E_BAD_HANDLE, zero_group_barrier(nullptr));
  char text[4] = "abc";
  EXPECT_EQ(ZERO_E_INVALID_ARGUMENT, zero_last_error_copy(nullptr, 1));
  EXPECT_EQ(ZERO_E_INVALID_ARGUMENT, zero_last_error_copy(text, -1));
  EXPECT_STREQ("abc", text);
  EXPECT_EQ(ZERO_E_BAD_HANDLE, zero_last_error_copy(nullptr, 0));
}

TEST(Status, SuccessKeepsTheStoredError) {
  EXPECT_EQ(ZERO_E_BAD_HANDLE, zero_group_barrier(nullptr));
  int64_t nbytes = 0;
  EXPECT_EQ(ZERO_OK, zero_dtype_nbytes(ZERO_DTYPE_F32, &nbytes));
  EXPECT_EQ(ZERO_E_BAD_HANDLE, zero_last_error_copy(nullptr, 0));
}

TEST(Status, AStaleReleaseLeavesAnErrorAndNullDoesNot) {
  zero_config *config = nullptr;
  ZERO_ASSERT_OK(zero_config_create(&config));
  EXPECT_EQ(ZERO_E_INVALID_ARGUMENT, zero_config_create(nullptr));
  zero_config_release(nullptr);
  zero_config_release(config);
  EXPECT_EQ(ZERO_E_INVALID_ARGUMENT, zero_last_error_copy(nullptr, 0));
  zero_config_release(config);
  EXPECT_TRUE(failed_with(zero_last_error_copy(nullptr, 0), ZERO_E_BAD_HANDLE, "was released"));
}

TEST(Status, EveryCodeHasAName) {
  EXPECT_STREQ("ZERO_OK", zero_status_name(ZERO_OK));
  EXPECT_STREQ("ZERO_E_TIMEOUT", zero_status_name(ZERO_E_TIMEOUT));
  EXPECT_STREQ("ZERO_E_INTERNAL", zero_status_name(ZERO_E_INTERNAL));
  for (const int32_t unknown : {1, -1, -99, -113, -1000, INT32_MIN, INT32_MAX}) EXPECT_STREQ("ZERO_E_UNKNOWN", zero_status_name(unknown));
}

TEST(Status, EachTextBelongsToItsOwnCall) {
  constexpr int kThreads = 64;
  constexpr int kCalls = 100'000;
  std::atomic<int> next = 0;
  std::atomic<int> wrong = 0;
  std::vector<std::jthread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int call = next++; call < kCalls; call = next++) {
        const int32_t key = 100'000 + call;
        zero_key_bounds bounds;
        zero_key_bounds_init(&bounds, sizeof bounds);
        const int32_t status = zero_config_bounds(key, &bounds);
        if (status != ZERO_E_UNSUPPORTED || last_text().find("key " + std::to_string(key) + " ") == std::string::npos) ++wrong;
      }
    });
  }
  threads.clear();
  std::printf("failing calls = %d, threads = %d, texts of another call = %d\n", kCalls, kThreads, wrong.load());
  EXPECT_EQ(0, wrong.load());
}

TEST(Status, AForkedChildIsTurnedAway) {
  zero_config *config = nullptr;
  ZERO_ASSERT_OK(zero_config_create(&config));
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    zero_config *other = nullptr;
    const bool turned_away = zero_config_create(&other) == ZERO_E_FORKED && other == nullptr &&
                             zero_config_set_i64(config, ZERO_KEY_STAGE, 1) == ZERO_E_FORKED &&
                             zero_last_error_copy(nullptr, 0) == ZERO_E_FORKED;
    zero_config_release(config);
    ::_exit(turned_away ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(child, ::waitpid(child, &status, 0));
  EXPECT_EQ(0, status);
  ZERO_EXPECT_OK(zero_config_set_i64(config, ZERO_KEY_STAGE, 1));
  zero_config_release(config);
}

TEST(Version, AgreesWithTheHeader) {
  EXPECT_EQ(ZERO_ABI_MAJOR * 65536 + ZERO_ABI_MINOR, zero_abi_version());
  EXPECT_STREQ("0.1.0", zero_version());
}

TEST(Version, UnknownFeaturesAreAbsent) {
  EXPECT_EQ(1, zero_has_feature(ZERO_FEATURE_LOCAL));
  for (const int32_t unknown : {0, -1, 99}) EXPECT_EQ(0, zero_has_feature(unknown));
  const int64_t mpi = zero_has_feature(ZERO_FEATURE_MPI);
  EXPECT_TRUE(mpi == 0 || mpi == 1);
  const int64_t cuda = zero_has_feature(ZERO_FEATURE_CUDA);
  EXPECT_TRUE(cuda == 0 || cuda == 1);
}

TEST(Dtype, SizesInBytes) {
  const std::pair<int32_t, int64_t> sizes[] = {{ZERO_DTYPE_F32, 4}, {ZERO_DTYPE_F64, 8}, {ZERO_DTYPE_F16, 2}, {ZERO_DTYPE_BF16, 2},
                                               {ZERO_DTYPE_I32, 4}, {ZERO_DTYPE_I64, 8}, {ZERO_DTYPE_U8, 1}};
  for (const auto &[dtype, expected] : sizes) {
    int64_t nbytes = 0;
    ZERO_EXPECT_OK(zero_dtype_nbytes(dtype, &nbytes));
    EXPECT_EQ(expected, nbytes);
  }
}

}  // namespace
}  // namespace zero::test::status_test
