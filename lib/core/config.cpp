/// @file The key table, and setting and reading values.
#include "core/config.h"

#include "core/number_text.h"

#include <zero/dtype.h>

#include <cmath>
#include <cstring>

namespace zero {
namespace {

constexpr int64_t kTwo40 = int64_t{1} << 40;
constexpr int64_t kTwo62 = int64_t{1} << 62;
constexpr int64_t kLeastBucket = 1024;
// The largest double below 1: the upper bound of values that must stay below it.
constexpr double kBelowOne = 0x1.fffffffffffffp-1;

constexpr Choice kDivisors[] = {
    {ZERO_DIVISOR_RANKS, "ZERO_DIVISOR_RANKS"}, {ZERO_DIVISOR_ONE, "ZERO_DIVISOR_ONE"}, {ZERO_DIVISOR_WEIGHTS, "ZERO_DIVISOR_WEIGHTS"}};
constexpr Choice kNonfinite[] = {{ZERO_NONFINITE_SKIP, "ZERO_NONFINITE_SKIP"}, {ZERO_NONFINITE_PROPAGATE, "ZERO_NONFINITE_PROPAGATE"}};
constexpr Choice kSnapshots[] = {{ZERO_SNAPSHOT_COPY, "ZERO_SNAPSHOT_COPY"}, {ZERO_SNAPSHOT_LAZY, "ZERO_SNAPSHOT_LAZY"}};
constexpr Choice kRoundings[] = {{ZERO_ROUNDING_NEAREST, "ZERO_ROUNDING_NEAREST"}, {ZERO_ROUNDING_STOCHASTIC, "ZERO_ROUNDING_STOCHASTIC"}};
constexpr Choice kUnfilled[] = {{ZERO_UNFILLED_ZERO, "ZERO_UNFILLED_ZERO"}, {ZERO_UNFILLED_UNTOUCHED, "ZERO_UNFILLED_UNTOUCHED"}};
constexpr Choice kMasters[] = {
    {ZERO_MASTER_F32, "ZERO_MASTER_F32"}, {ZERO_MASTER_NONE, "ZERO_MASTER_NONE"}, {ZERO_MASTER_REMAINDER, "ZERO_MASTER_REMAINDER"}};
constexpr Choice kCodes[] = {{ZERO_CODE_NONE, "ZERO_CODE_NONE"}, {ZERO_CODE_F8, "ZERO_CODE_F8"},
                             {ZERO_CODE_I8, "ZERO_CODE_I8"},     {ZERO_CODE_I4, "ZERO_CODE_I4"},
                             {ZERO_CODE_TOP, "ZERO_CODE_TOP"},   {ZERO_CODE_LOW_RANK, "ZERO_CODE_LOW_RANK"},
                             {ZERO_CODE_SIGN, "ZERO_CODE_SIGN"}};
constexpr Choice kResiduals[] = {{ZERO_RESIDUAL_NONE, "ZERO_RESIDUAL_NONE"}, {ZERO_RESIDUAL_F32, "ZERO_RESIDUAL_F32"}};
constexpr Choice kNeighbours[] = {{ZERO_NEIGHBOURS_NONE, "ZERO_NEIGHBOURS_NONE"}, {ZERO_NEIGHBOURS_RING, "ZERO_NEIGHBOURS_RING"}};
constexpr Choice kServerOrders[] = {{ZERO_SERVER_ORDER_ROUND_ROBIN, "ZERO_SERVER_ORDER_ROUND_ROBIN"},
                                    {ZERO_SERVER_ORDER_ARRIVAL, "ZERO_SERVER_ORDER_ARRIVAL"}};
constexpr Choice kServerRules[] = {{ZERO_SERVER_RULE_UPDATE, "ZERO_SERVER_RULE_UPDATE"},
                                   {ZERO_SERVER_RULE_AVERAGE, "ZERO_SERVER_RULE_AVERAGE"},
                                   {ZERO_SERVER_RULE_MEAN, "ZERO_SERVER_RULE_MEAN"}};
constexpr Choice kTiers[] = {{ZERO_TIER_HOST, "ZERO_TIER_HOST"}, {ZERO_TIER_DEVICE, "ZERO_TIER_DEVICE"}};

constexpr Choice kOfGradient = {0, "the gradient's dtype"};
constexpr Choice kOfParameter = {0, "the parameter's dtype"};
constexpr Choice kF32 = {ZERO_DTYPE_F32, "ZERO_DTYPE_F32"};
constexpr Choice kF16 = {ZERO_DTYPE_F16, "ZERO_DTYPE_F16"};
constexpr Choice kBf16 = {ZERO_DTYPE_BF16, "ZERO_DTYPE_BF16"};
constexpr Choice kE4m3 = {ZERO_DTYPE_F8_E4M3, "ZERO_DTYPE_F8_E4M3"};
constexpr Choice kUe5m3 = {ZERO_DTYPE_F8_UE5M3, "ZERO_DTYPE_F8_UE5M3"};
constexpr Choice kAccumulateDtypes[] = {kOfGradient, kF32};
constexpr Choice kGradDtypes[] = {kOfParameter, kF32, kF16, kBf16};
constexpr Choice kParamDtypes[] = {kOfParameter, kE4m3};
constexpr Choice kFirstMomentDtypes[] = {kF32, kBf16, kE4m3};
constexpr Choice kSecondMomentDtypes[] = {kF32, kBf16, kUe5m3};

constexpr KeyInfo i64_key(int32_t key, const char *name, int64_t min, int64_t max, int64_t value) {
  return {key, KeyType::i64, name, min, max, value, 0, 0, 0, {}};
}
constexpr KeyInfo choice_key(int32_t key, const char *name, std::span<const Choice> choices, int64_t value) {
  return {key, KeyType::i64, name, choices.front().value, choices.back().value, value, 0, 0, 0, choices};
}
constexpr KeyInfo f64_key(int32_t key, const char *name, double min, double max, double value) {
  return {key, KeyType::f64, name, 0, 0, 0, min, max, value, {}};
}
constexpr KeyInfo str_key(int32_t key, const char *name) { return {key, KeyType::str, name, 0, 0, 0, 0, 0, 0, {}}; }

constexpr KeyInfo kKeys[] = {
    i64_key(ZERO_KEY_DEADLINE_MS, "ZERO_KEY_DEADLINE_MS", 1, kTwo40, 600'000),
    i64_key(ZERO_KEY_RENDEZVOUS_MS, "ZERO_KEY_RENDEZVOUS_MS", 1, kTwo40, 60'000),
    i64_key(ZERO_KEY_THREADS, "ZERO_KEY_THREADS", 0, 4096, 0),
    i64_key(ZERO_KEY_STAGING_BYTES, "ZERO_KEY_STAGING_BYTES", 4096, int64_t{1} << 30, 1 << 20),
    str_key(ZERO_KEY_MPI_MODULE, "ZERO_KEY_MPI_MODULE"),
    i64_key(ZERO_KEY_MPI_SHARED, "ZERO_KEY_MPI_SHARED", 0, 1, 1),
    i64_key(ZERO_KEY_NCCL, "ZERO_KEY_NCCL", 0, 1, 0),
    str_key(ZERO_KEY_NCCL_MODULE, "ZERO_KEY_NCCL_MODULE"),
    i64_key(ZERO_KEY_RENDEZVOUS_PORT, "ZERO_KEY_RENDEZVOUS_PORT", 0, 65535, 0),
    str_key(ZERO_KEY_RENDEZVOUS_HOST, "ZERO_KEY_RENDEZVOUS_HOST"),
    str_key(ZERO_KEY_SHARD_WEIGHTS, "ZERO_KEY_SHARD_WEIGHTS"),
    i64_key(ZERO_KEY_STAGE, "ZERO_KEY_STAGE", 0, 3, 1),
    str_key(ZERO_KEY_ALGORITHM, "ZERO_KEY_ALGORITHM"),
    i64_key(ZERO_KEY_BUCKET_BYTES, "ZERO_KEY_BUCKET_BYTES", 0, kTwo40, 0),
    choice_key(ZERO_KEY_DIVISOR, "ZERO_KEY_DIVISOR", kDivisors, ZERO_DIVISOR_RANKS),
    choice_key(ZERO_KEY_NONFINITE, "ZERO_KEY_NONFINITE", kNonfinite, ZERO_NONFINITE_SKIP),
    i64_key(ZERO_KEY_GRAD_NORM, "ZERO_KEY_GRAD_NORM", 0, 1, 0),
    i64_key(ZERO_KEY_OVERLAP, "ZERO_KEY_OVERLAP", 0, 1, 1),
    i64_key(ZERO_KEY_POOL_LIMIT, "ZERO_KEY_POOL_LIMIT", 0, kTwo62, 0),
    i64_key(ZERO_KEY_CUSTOM_SLOTS, "ZERO_KEY_CUSTOM_SLOTS", 0, 4, 0),
    f64_key(ZERO_KEY_CLIP_NORM, "ZERO_KEY_CLIP_NORM", 0, 1e30, 0),
    f64_key(ZERO_KEY_CLIP_VALUE, "ZERO_KEY_CLIP_VALUE", 0, 1e30, 0),
    f64_key(ZERO_KEY_LOSS_SCALE, "ZERO_KEY_LOSS_SCALE", 0x1p-100, 0x1p100, 1),
    i64_key(ZERO_KEY_LOSS_SCALE_DYNAMIC, "ZERO_KEY_LOSS_SCALE_DYNAMIC", 0, 1, 0),
    i64_key(ZERO_KEY_LOSS_SCALE_WINDOW, "ZERO_KEY_LOSS_SCALE_WINDOW", 1, kTwo62, 2000),
    i64_key(ZERO_KEY_LOSS_SCALE_HYSTERESIS, "ZERO_KEY_LOSS_SCALE_HYSTERESIS", 1, kTwo62, 1),
    f64_key(ZERO_KEY_LOSS_SCALE_BACKOFF, "ZERO_KEY_LOSS_SCALE_BACKOFF", 0x1p-30, kBelowOne, 0.5),
    f64_key(ZERO_KEY_LOSS_SCALE_GROWTH, "ZERO_KEY_LOSS_SCALE_GROWTH", 1, 0x1p30, 2),
    f64_key(ZERO_KEY_LOSS_SCALE_MIN, "ZERO_KEY_LOSS_SCALE_MIN", 0x1p-100, 0x1p100, 1),
    f64_key(ZERO_KEY_LOSS_SCALE_MAX, "ZERO_KEY_LOSS_SCALE_MAX", 0x1p-100, 0x1p100, 0x1p32),
    choice_key(ZERO_KEY_ROUNDING, "ZERO_KEY_ROUNDING", kRoundings, ZERO_ROUNDING_NEAREST),
    i64_key(ZERO_KEY_SEED, "ZERO_KEY_SEED", 0, kTwo62, 0),
    choice_key(ZERO_KEY_UNFILLED, "ZERO_KEY_UNFILLED", kUnfilled, ZERO_UNFILLED_ZERO),
    choice_key(ZERO_KEY_ACCUMULATE_DTYPE, "ZERO_KEY_ACCUMULATE_DTYPE", kAccumulateDtypes, 0),
    i64_key(ZERO_KEY_AVERAGE, "ZERO_KEY_AVERAGE", 0, 1, 0),
    i64_key(ZERO_KEY_GATHER_BELOW, "ZERO_KEY_GATHER_BELOW", 0, kTwo62, 0),
    i64_key(ZERO_KEY_PREFETCH_BYTES, "ZERO_KEY_PREFETCH_BYTES", 0, kTwo62, int64_t{1} << 24),
    i64_key(ZERO_KEY_VERIFY_EVERY, "ZERO_KEY_VERIFY_EVERY", 0, kTwo62, 0),
    i64_key(ZERO_KEY_MEMORY_LIMIT, "ZERO_KEY_MEMORY_LIMIT", 0, kTwo62, 0),
    i64_key(ZERO_KEY_TRACE_EVENTS, "ZERO_KEY_TRACE_EVENTS", 0, int64_t{1} << 24, 0),
    i64_key(ZERO_KEY_ONE_COPY, "ZERO_KEY_ONE_COPY", 0, 1, 0),
    i64_key(ZERO_KEY_DEVICE, "ZERO_KEY_DEVICE", -1, 4095, -1),
    str_key(ZERO_KEY_CUDA_MODULE, "ZERO_KEY_CUDA_MODULE"),
    choice_key(ZERO_KEY_TIER, "ZERO_KEY_TIER", kTiers, ZERO_TIER_HOST),
    i64_key(ZERO_KEY_REPLICA_RANKS, "ZERO_KEY_REPLICA_RANKS", -1, int64_t{1} << 20, 0),
    i64_key(ZERO_KEY_SYNC_PERIOD, "ZERO_KEY_SYNC_PERIOD", 1, kTwo40, 1),
    i64_key(ZERO_KEY_SYNC_AFTER, "ZERO_KEY_SYNC_AFTER", 0, kTwo62, 0),
    i64_key(ZERO_KEY_SYNC_FRAGMENTS, "ZERO_KEY_SYNC_FRAGMENTS", 1, 4096, 1),
    i64_key(ZERO_KEY_SYNC_DELAY, "ZERO_KEY_SYNC_DELAY", 0, kTwo40, 0),
    i64_key(ZERO_KEY_CODE_RANK, "ZERO_KEY_CODE_RANK", 1, 64, 4),
    choice_key(ZERO_KEY_GRAD_CODE, "ZERO_KEY_GRAD_CODE", kCodes, ZERO_CODE_NONE),
    choice_key(ZERO_KEY_GATHER_CODE, "ZERO_KEY_GATHER_CODE", kCodes, ZERO_CODE_NONE),
    choice_key(ZERO_KEY_SYNC_CODE, "ZERO_KEY_SYNC_CODE", kCodes, ZERO_CODE_NONE),
    i64_key(ZERO_KEY_CODE_TOP, "ZERO_KEY_CODE_TOP", 1, 64, 8),
    i64_key(ZERO_KEY_CODE_AFTER, "ZERO_KEY_CODE_AFTER", 0, kTwo62, 0),
    choice_key(ZERO_KEY_RESIDUAL, "ZERO_KEY_RESIDUAL", kResiduals, ZERO_RESIDUAL_NONE),
    i64_key(ZERO_KEY_FLUSH_PERIOD, "ZERO_KEY_FLUSH_PERIOD", 0, kTwo62, 0),
    i64_key(ZERO_KEY_PARAM_RANKS, "ZERO_KEY_PARAM_RANKS", -1, int64_t{1} << 20, 0),
    choice_key(ZERO_KEY_NEIGHBOURS, "ZERO_KEY_NEIGHBOURS", kNeighbours, ZERO_NEIGHBOURS_NONE),
    i64_key(ZERO_KEY_GRAD_DELAY, "ZERO_KEY_GRAD_DELAY", 0, 1, 0),
    str_key(ZERO_KEY_STRATEGY, "ZERO_KEY_STRATEGY"),
    i64_key(ZERO_KEY_SET, "ZERO_KEY_SET", 0, 4095, 0),
    i64_key(ZERO_KEY_FROZEN, "ZERO_KEY_FROZEN", 0, 1, 0),
    choice_key(ZERO_KEY_GRAD_DTYPE, "ZERO_KEY_GRAD_DTYPE", kGradDtypes, 0),
    choice_key(ZERO_KEY_MASTER, "ZERO_KEY_MASTER", kMasters, ZERO_MASTER_F32),
    choice_key(ZERO_KEY_PARAM_DTYPE, "ZERO_KEY_PARAM_DTYPE", kParamDtypes, 0),
    choice_key(ZERO_KEY_FIRST_MOMENT_DTYPE, "ZERO_KEY_FIRST_MOMENT_DTYPE", kFirstMomentDtypes, ZERO_DTYPE_F32),
    choice_key(ZERO_KEY_SECOND_MOMENT_DTYPE, "ZERO_KEY_SECOND_MOMENT_DTYPE", kSecondMomentDtypes, ZERO_DTYPE_F32),
    i64_key(ZERO_KEY_REPLICATED, "ZERO_KEY_REPLICATED", 0, 1, 0),
    i64_key(ZERO_KEY_TIED_TO, "ZERO_KEY_TIED_TO", 0, kTwo62, 0),
    i64_key(ZERO_KEY_ROWS, "ZERO_KEY_ROWS", 0, 1, 0),
    f64_key(ZERO_KEY_LR, "ZERO_KEY_LR", 0, 1e30, 1e-3),
    f64_key(ZERO_KEY_MOMENTUM, "ZERO_KEY_MOMENTUM", 0, 1, 0),
    f64_key(ZERO_KEY_DAMPENING, "ZERO_KEY_DAMPENING", 0, 1, 0),
    f64_key(ZERO_KEY_NESTEROV, "ZERO_KEY_NESTEROV", 0, 1, 0),
    f64_key(ZERO_KEY_BETA1, "ZERO_KEY_BETA1", 0, kBelowOne, 0.9),
    f64_key(ZERO_KEY_BETA2, "ZERO_KEY_BETA2", 0, kBelowOne, 0.999),
    f64_key(ZERO_KEY_EPSILON, "ZERO_KEY_EPSILON", 0, 1e30, 1e-8),
    f64_key(ZERO_KEY_WEIGHT_DECAY, "ZERO_KEY_WEIGHT_DECAY", 0, 1e30, 0),
    f64_key(ZERO_KEY_LR_DECAY, "ZERO_KEY_LR_DECAY", 0, 1e30, 0),
    f64_key(ZERO_KEY_INITIAL_ACCUMULATOR, "ZERO_KEY_INITIAL_ACCUMULATOR", 0, 1e30, 0),
    f64_key(ZERO_KEY_NEWTON_SCHULZ_STEPS, "ZERO_KEY_NEWTON_SCHULZ_STEPS", 1, 99, 5),
    f64_key(ZERO_KEY_AVERAGE_DECAY, "ZERO_KEY_AVERAGE_DECAY", 0, 1, 0.999),
    f64_key(ZERO_KEY_OUTER_LR, "ZERO_KEY_OUTER_LR", 0, 1e30, 1),
    f64_key(ZERO_KEY_OUTER_MOMENTUM, "ZERO_KEY_OUTER_MOMENTUM", 0, kBelowOne, 0),
    f64_key(ZERO_KEY_SYNC_MIX, "ZERO_KEY_SYNC_MIX", 0, 1, 0),
    f64_key(ZERO_KEY_CODE_MOMENTUM, "ZERO_KEY_CODE_MOMENTUM", 0, kBelowOne, 0),
    i64_key(ZERO_KEY_CODE_FREEZE, "ZERO_KEY_CODE_FREEZE", 0, 1, 0),
    i64_key(ZERO_KEY_STEP_COUNT, "ZERO_KEY_STEP_COUNT", 0, kTwo62, 0),
    i64_key(ZERO_KEY_SKIPPED_COUNT, "ZERO_KEY_SKIPPED_COUNT", 0, kTwo62, 0),
    i64_key(ZERO_KEY_GROWTH_COUNT, "ZERO_KEY_GROWTH_COUNT", 0, kTwo62, 0),
    i64_key(ZERO_KEY_OVERFLOW_COUNT, "ZERO_KEY_OVERFLOW_COUNT", 0, kTwo62, 0),
    i64_key(ZERO_KEY_CHECKPOINT_STAGING_BYTES, "ZERO_KEY_CHECKPOINT_STAGING_BYTES", 65'536, int64_t{1} << 34, int64_t{1} << 25),
    i64_key(ZERO_KEY_CHECKPOINT_KEEP, "ZERO_KEY_CHECKPOINT_KEEP", 0, int64_t{1} << 31, 0),
    i64_key(ZERO_KEY_CHECKPOINT_DIRECT, "ZERO_KEY_CHECKPOINT_DIRECT", 0, 1, 1),
    i64_key(ZERO_KEY_CHECKPOINT_SYNC, "ZERO_KEY_CHECKPOINT_SYNC", 0, 1, 1),
    choice_key(ZERO_KEY_CHECKPOINT_SNAPSHOT, "ZERO_KEY_CHECKPOINT_SNAPSHOT", kSnapshots, ZERO_SNAPSHOT_COPY),
    i64_key(ZERO_KEY_CHECKPOINT_FILE_BYTES, "ZERO_KEY_CHECKPOINT_FILE_BYTES", 4096, kTwo62, int64_t{1} << 32),
    i64_key(ZERO_KEY_CHECKPOINT_PROGRESS_MS, "ZERO_KEY_CHECKPOINT_PROGRESS_MS", 1, kTwo40, 600'000),
    i64_key(ZERO_KEY_CHECKPOINT_CONVERT, "ZERO_KEY_CHECKPOINT_CONVERT", 0, 1, 0),
    i64_key(ZERO_KEY_CHECKPOINT_MISSING, "ZERO_KEY_CHECKPOINT_MISSING", 0, 1, 0),
    i64_key(ZERO_KEY_CHECKPOINT_EXTRA, "ZERO_KEY_CHECKPOINT_EXTRA", 0, 1, 0),
    i64_key(ZERO_KEY_CHECKPOINT_MODEL_FILES, "ZERO_KEY_CHECKPOINT_MODEL_FILES", 0, 1, 1),
    i64_key(ZERO_KEY_SERVER_RANKS, "ZERO_KEY_SERVER_RANKS", 1, int64_t{1} << 20, 1),
    choice_key(ZERO_KEY_SERVER_ORDER, "ZERO_KEY_SERVER_ORDER", kServerOrders, ZERO_SERVER_ORDER_ROUND_ROBIN),
    i64_key(ZERO_KEY_SERVER_STALENESS, "ZERO_KEY_SERVER_STALENESS", 0, kTwo40, 0),
    choice_key(ZERO_KEY_SERVER_RULE, "ZERO_KEY_SERVER_RULE", kServerRules, ZERO_SERVER_RULE_UPDATE),
    f64_key(ZERO_KEY_SERVER_RATE, "ZERO_KEY_SERVER_RATE", 0, 1, 0.5),
    i64_key(ZERO_KEY_SERVER_PERIOD, "ZERO_KEY_SERVER_PERIOD", 0, kTwo40, 0),
};

constexpr const char *type_name(KeyType type) {
  switch (type) {
    case KeyType::i64:
      return "i64";
    case KeyType::f64:
      return "f64";
    case KeyType::str:
      return "str";
  }
  return "?";
}

Status check_type(int32_t key, KeyType type, const KeyInfo **out) {
  const KeyInfo *info = find_key(key);
  ZERO_CHECK(info != nullptr, ZERO_E_UNSUPPORTED, "key %d is unknown to this version; keys are listed in zero/config.h", key);
  ZERO_CHECK(info->type == type, ZERO_E_INVALID_ARGUMENT, "%s is a key of type %s, but was given a value of type %s", info->name,
             type_name(info->type), type_name(type));
  *out = info;
  return {};
}

}  // namespace

std::span<const KeyInfo> all_keys() { return kKeys; }

const KeyInfo *find_key(int32_t key) {
  for (const KeyInfo &info : kKeys) {
    if (info.key == key) return &info;
  }
  return nullptr;
}

Status check_i64(int32_t key, int64_t value) {
  const KeyInfo *info = nullptr;
  ZERO_TRY(check_type(key, KeyType::i64, &info));
  if (!info->choices.empty()) ZERO_TRY(check_choice(info->choices, value, info->name));
  ZERO_CHECK(value >= info->min_i64 && value <= info->max_i64, ZERO_E_INVALID_ARGUMENT, "%s is %lld, but must be in %s .. %s", info->name,
             lld(value), bound_text(info->min_i64).c_str(), bound_text(info->max_i64).c_str());
  ZERO_CHECK(key != ZERO_KEY_BUCKET_BYTES || value == 0 || value >= kLeastBucket, ZERO_E_INVALID_ARGUMENT,
             "%s is %lld, but must be 0 or at least %lld", info->name, lld(value), lld(kLeastBucket));
  return {};
}

std::string setting_text(int32_t key, const std::string &value) { return std::string(find_key(key)->name) + " = " + value; }

const char *choice_name(int32_t key, int64_t value) { return find_choice(find_key(key)->choices, value)->name; }

Status check_f64(int32_t key, double value) {
  const KeyInfo *info = nullptr;
  ZERO_TRY(check_type(key, KeyType::f64, &info));
  ZERO_CHECK(value >= info->min_f64 && value <= info->max_f64, ZERO_E_INVALID_ARGUMENT, "%s is %s, but must be in %s .. %s", info->name,
             number_text(value).c_str(), bound_text(info->min_f64).c_str(),
             info->max_f64 == kBelowOne ? "below 1" : bound_text(info->max_f64).c_str());
  ZERO_CHECK(key != ZERO_KEY_NEWTON_SCHULZ_STEPS || value == std::floor(value), ZERO_E_INVALID_ARGUMENT,
             "%s is %s, but must be a whole number", info->name, number_text(value).c_str());
  ZERO_CHECK(key != ZERO_KEY_NESTEROV || value == 0 || value == 1, ZERO_E_INVALID_ARGUMENT, "%s is %s, but must be 0 or 1", info->name,
             number_text(value).c_str());
  return {};
}

Status Config::set_i64(int32_t key, int64_t value) {
  ZERO_TRY(check_i64(key, value));
  ZERO_CHECK(key < ZERO_KEY_STEP_COUNT || key > ZERO_KEY_OVERFLOW_COUNT, ZERO_E_UNSUPPORTED,
             "%s is a scalar of a running optimizer, which no config takes; zero_optimizer_set_i64 sets it", find_key(key)->name);
  i64_[key] = value;
  return {};
}

Status Config::set_f64(int32_t key, double value) {
  ZERO_TRY(check_f64(key, value));
  f64_[key] = value;
  return {};
}

Status Config::set_str(int32_t key, const char *value) {
  constexpr size_t kLongest = 4095;
  const KeyInfo *info = nullptr;
  ZERO_TRY(check_type(key, KeyType::str, &info));
  ZERO_CHECK(value != nullptr, ZERO_E_INVALID_ARGUMENT, "%s was given NULL, but must be a string", info->name);
  ZERO_CHECK(::strnlen(value, kLongest + 1) <= kLongest, ZERO_E_INVALID_ARGUMENT, "%s was given a string of more than %zu bytes",
             info->name, kLongest);
  str_[key] = value;
  return {};
}

int64_t Config::i64(int32_t key) const {
  const auto found = i64_.find(key);
  return found != i64_.end() ? found->second : find_key(key)->default_i64;
}

double Config::f64(int32_t key) const {
  const auto found = f64_.find(key);
  return found != f64_.end() ? found->second : find_key(key)->default_f64;
}

const std::string &Config::str(int32_t key) const {
  // Never destroyed: the library leaves nothing to run at exit.
  static const auto *unset = new std::string;
  const auto found = str_.find(key);
  return found != str_.end() ? found->second : *unset;
}

bool Config::is_set(int32_t key) const { return i64_.count(key) + f64_.count(key) + str_.count(key) != 0; }

}  // namespace zero
