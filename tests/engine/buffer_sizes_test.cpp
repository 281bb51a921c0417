/// @file The sizes that a layout chooses where none is given: pools, what is gathered ahead and staging
/// of GPT-2's shapes, without training.
#include "core/config.h"
#include "engine/gradients/bucket_pool.h"
#include "engine/layout/layout.h"
#include "group/local/local_segment.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

namespace zero::test::buffer_sizes_test {
namespace {

struct Gpt {
  const char *name;
  int64_t blocks, width, vocabulary, places;
};
constexpr Gpt kModels[] = {{"tiny", 4, 256, 256, 128}, {"small", 6, 384, 256, 256}, {"gpt2", 12, 768, 50257, 1024}};
constexpr int64_t kTen = 10'000'000;

/// A layout of a model in fp32 with AdamW, and all that it was made from.
class Made {
 public:
  Made(const Gpt &gpt, int64_t stage, int64_t ranks, int64_t bucket_nbytes = 0) {
    EXPECT_TRUE(config_.set_i64(ZERO_KEY_STAGE, stage).ok());
    EXPECT_TRUE(config_.set_i64(ZERO_KEY_BUCKET_BYTES, bucket_nbytes).ok());
    EXPECT_TRUE(read_settings(config_, {.size = ranks}, &settings_).ok());
    EXPECT_TRUE(sets_[0].read(settings_.algorithm, config_, nullptr).ok());
    add({gpt.vocabulary, gpt.width});
    add({gpt.places, gpt.width});
    for (int64_t block = 0; block < gpt.blocks; ++block) {
      for (const int64_t outputs : {0, 3, 1, 0, 4}) add_layer(gpt.width, outputs * gpt.width);
      add_layer(4 * gpt.width, gpt.width);
    }
    add_layer(gpt.width, 0);
    EXPECT_TRUE(layout_.make(0).ok());
  }
  const Layout &layout() const { return layout_; }
  int64_t elements() const { return layout_.plan().element_count(); }
  int64_t pool_nbytes() const {
    if (settings_.stage < 2) return 0;
    std::vector<int64_t> buckets;
    for (const PlannedBucket &bucket : layout_.plan().buckets()) buckets.push_back(bucket.flat.count() * 4);
    return BucketPool::nbytes(buckets, layout_.plan().held_bucket_count(), 0);
  }
  /// The largest tensor, which the caller has acquired.
  int64_t acquired_nbytes() const {
    int64_t largest = 0;
    for (const PlannedParam &param : layout_.plan().params()) largest = std::max(largest, param.flat.count() * 4);
    return settings_.stage == 3 ? largest : 0;
  }
  int64_t ahead_nbytes() const { return settings_.stage == 3 ? std::min(layout_.prefetch_nbytes(), elements() * 4) : 0; }

 private:
  /// A weight and a bias; without outputs those of a norm.
  void add_layer(int64_t inputs, int64_t outputs) {
    if (outputs > 0) {
      add({inputs, outputs});
      add({outputs});
    } else {
      add({inputs});
      add({inputs});
    }
  }
  void add(const std::vector<int64_t> &shape) {
    int64_t id = -1;
    ParamOptions options;
    options.precision = settings_.precision;
    const std::string name = "p" + std::to_string(params_.size());
    EXPECT_TRUE(params_.add(name.c_str(), ZERO_DTYPE_F32, shape.data(), std::ssize(shape), options, &id).ok());
  }

  Config config_;
  Params params_;
  Settings settings_{};
  std::vector<HyperSet> sets_{1};
  Layout layout_{params_, settings_, sets_};
};

/// Bytes per rank: in each stage another part of 4 bytes of parameters, 4 of gradients and 8 of states
/// per element is sharded.
int64_t formula(int64_t elements, int64_t stage, int64_t ranks) {
  const int64_t sharded[] = {0, 8, 12, 16};
  return elements * (16 - sharded[stage]) + elements * sharded[stage] / ranks;
}

/// What a backward pass holds whatever the size of buckets: the token table at its end, and two
/// matrices of a block, of which one is filled while another is reduced.
int64_t held_nbytes(const Gpt &gpt, int64_t stage) {
  return stage < 2 ? 0 : 4 * (gpt.vocabulary * gpt.width + 2 * 4 * gpt.width * gpt.width);
}

/// The optimizer's two groups, as threads or processes of one host.
int64_t staging_nbytes(const Layout &layout, int64_t ranks) {
  constexpr int64_t kDefaultRound = (1 << 20) / 2;
  return 2 * Segment::staging_nbytes(ranks, std::min(layout.most_round_nbytes(), kDefaultRound));
}

TEST(BufferSizes, AreATenthOfTheFormulaFromTenMillionParametersOn) {
  std::printf("%-6s %5s %5s | %9s | %9s %9s %9s %9s | %6s | %9s\n", "model", "stage", "ranks", "formula", "pool", "beyond", "ahead",
              "staging", "share", "constant");
  for (const Gpt &gpt : kModels) {
    for (int64_t stage = 0; stage < 4; ++stage) {
      for (const int64_t ranks : {2, 4, 8}) {
        const Made made(gpt, stage, ranks);
        const int64_t whole = formula(made.elements(), stage, ranks);
        const int64_t beyond = std::max(made.pool_nbytes() - held_nbytes(gpt, stage), int64_t{0});
        const int64_t staging = staging_nbytes(made.layout(), ranks);
        const int64_t sum = beyond + made.ahead_nbytes() + staging;
        const auto mb = [](int64_t nbytes) { return static_cast<double>(nbytes) / 1e6; };
        const int64_t constant = made.pool_nbytes() + made.ahead_nbytes() + made.acquired_nbytes() + staging;
        std::printf("%-6s %5d %5d | %9.2f | %9.2f %9.2f %9.2f %9.2f | %5.1f%% | %9.2f\n", gpt.name, static_cast<int>(stage),
                    static_cast<int>(ranks), mb(whole), mb(made.pool_nbytes()), mb(beyond), mb(made.ahead_nbytes()), mb(staging),
                    100 * mb(sum) / mb(whole), mb(constant));
        if (made.elements() >= kTen) {
          EXPECT_LE(sum * 10, whole) << gpt.name << " stage " << stage << " ranks " << ranks;
        }
      }
    }
  }
}

TEST(BufferSizes, SmallModelsHaveSmallBuckets) {
  for (const int64_t ranks : {2, 8}) {
    for (int64_t stage = 0; stage < 4; ++stage) {
      const Made made(kModels[0], stage, ranks);
      EXPECT_LE(made.layout().bucket_nbytes(), formula(made.elements(), stage, ranks) / 80 + 1);
      EXPECT_GE(made.layout().bucket_nbytes(), 64 << 10);
    }
  }
  const Made large({"xl", 48, 1600, 50257, 1024}, 0, 2);
  EXPECT_EQ(large.layout().bucket_nbytes(), 25 << 20);
}

TEST(BufferSizes, ThatWereGivenAreKept) {
  const Made given(kModels[0], 3, 8, 26'214'400);
  EXPECT_EQ(given.layout().bucket_nbytes(), 26'214'400);
  EXPECT_EQ(given.layout().prefetch_nbytes(), 16'777'216);
  EXPECT_EQ(given.layout().most_round_nbytes(), INT64_MAX);
  EXPECT_EQ(given.layout().plan().bucket_count(), 1);
}

}  // namespace
}  // namespace zero::test::buffer_sizes_test
