/// @file Reading an optimizer's config.
#include "engine/config/settings.h"

#include "core/number_text.h"
#include "engine/config/code_freeze.h"
#include "engine/config/grad_delay.h"
#include "engine/config/shard_weights.h"
#include "group/group.h"
#include "kernels/update.h"

#include <tuple>
#include <utility>

namespace zero {
namespace {

std::string algorithm_names() {
  std::string names;
  for (const kernels::Algorithm &algorithm : kernels::algorithms()) names += std::string("\"") + algorithm.name + "\", ";
  return names + "\"custom\" or \"none\"";
}

Status read_clipping(const Config &config, Settings *out) {
  out->clipping = {config.f64(ZERO_KEY_CLIP_NORM), config.f64(ZERO_KEY_CLIP_VALUE)};
  ZERO_CHECK(out->clipping.norm == 0 || out->clipping.value == 0, ZERO_E_INVALID_ARGUMENT,
             "ZERO_KEY_CLIP_NORM is %s and ZERO_KEY_CLIP_VALUE %s, but only one way to clip gradients can be used; set one of the two",
             number_text(out->clipping.norm).c_str(), number_text(out->clipping.value).c_str());
  return {};
}

Status read_one_copy(const Config &config, Settings *out) {
  out->gathers.one_copy = config.i64(ZERO_KEY_ONE_COPY) != 0;
  ZERO_CHECK(!out->gathers.one_copy || out->stage == 1 || out->stage == 2, ZERO_E_UNSUPPORTED,
             "ZERO_KEY_ONE_COPY is 1 and ZERO_KEY_STAGE %lld, but only in stages 1 and 2 parameters are whole and each has one rank that "
             "updates it",
             lld(out->stage));
  return {};
}

/// Fails if the settings need a computation that device kernels lack, or memory that only the host
/// can read.
Status read_tier(const Config &config, int64_t size, Settings *out) {
  out->device = config.i64(ZERO_KEY_DEVICE);
  out->on_device = config.i64(ZERO_KEY_TIER) == ZERO_TIER_DEVICE;
  if (!out->on_device) return {};
  ZERO_CHECK(out->device >= 0, ZERO_E_INVALID_ARGUMENT, "ZERO_KEY_TIER is ZERO_TIER_DEVICE, but ZERO_KEY_DEVICE names no device");
  ZERO_CHECK(!out->gathers.one_copy, ZERO_E_UNSUPPORTED,
             "ZERO_KEY_ONE_COPY works on memory of the host only, but ZERO_KEY_TIER is ZERO_TIER_DEVICE");
  constexpr auto kMostRanks = static_cast<int64_t>(kernels::kMostSources);
  ZERO_CHECK(size <= kMostRanks, ZERO_E_UNSUPPORTED,
             "the group has %lld ranks, but with ZERO_KEY_TIER = ZERO_TIER_DEVICE kernels add the contributions of %lld at most", lld(size),
             lld(kMostRanks));
  return {};
}

Status read_replica_ranks(const Config &config, const RankPlace &place, int64_t *out) {
  const int64_t ranks = config.i64(ZERO_KEY_REPLICA_RANKS);
  *out = ranks > 0 ? ranks : ranks == 0 ? place.size : place.local_size;
  ZERO_CHECK(
      ranks >= 0 || (place.size % *out == 0 && place.rank % *out == place.local_rank), ZERO_E_UNSUPPORTED,
      "ZERO_KEY_REPLICA_RANKS is -1, but rank %lld is number %lld of %lld on its host; each host must have equally many ranks, which "
      "follow one another",
      lld(place.rank), lld(place.local_rank), lld(place.local_size));
  ZERO_CHECK(place.size % *out == 0, ZERO_E_INVALID_ARGUMENT, "ZERO_KEY_REPLICA_RANKS is %lld, but must divide the %lld ranks of the group",
             lld(*out), lld(place.size));
  const bool power_of_two = (*out & (*out - 1)) == 0;
  ZERO_CHECK(power_of_two || *out == place.size, ZERO_E_UNSUPPORTED,
             "ZERO_KEY_REPLICA_RANKS is %lld, but must be a power of two or all %lld ranks, so that sums over replicas keep their order",
             lld(*out), lld(place.size));
  return {};
}

/// Fails if a rank lacks the whole matrices of low rank, or the key of its factors has no effect.
Status read_low_rank(const Config &config, ReplicaSettings *out) {
  const bool used = config.i64(ZERO_KEY_GRAD_CODE) == ZERO_CODE_LOW_RANK;
  out->low_rank = used ? config.i64(ZERO_KEY_CODE_RANK) : 0;
  ZERO_CHECK(!used || out->ranks == 1, ZERO_E_UNSUPPORTED,
             "ZERO_KEY_GRAD_CODE is ZERO_CODE_LOW_RANK and ZERO_KEY_REPLICA_RANKS makes replicas of %lld ranks, but a shard has no whole "
             "matrices; set ZERO_KEY_REPLICA_RANKS to 1, or use another code",
             lld(out->ranks));
  ZERO_CHECK(used || !config.is_set(ZERO_KEY_CODE_RANK), ZERO_E_INVALID_ARGUMENT,
             "ZERO_KEY_CODE_RANK is %lld, but has no effect while ZERO_KEY_GRAD_CODE is %s; set that to ZERO_CODE_LOW_RANK, or leave out "
             "ZERO_KEY_CODE_RANK",
             lld(config.i64(ZERO_KEY_CODE_RANK)), choice_name(ZERO_KEY_GRAD_CODE, config.i64(ZERO_KEY_GRAD_CODE)));
  ZERO_CHECK(config.i64(ZERO_KEY_SYNC_CODE) != ZERO_CODE_LOW_RANK, ZERO_E_UNSUPPORTED,
             "ZERO_KEY_SYNC_CODE is ZERO_CODE_LOW_RANK, but changes of parameters keep no residual, so that most of each would be lost; "
             "use another code, or ZERO_KEY_GRAD_CODE");
  return {};
}

/// The codes of replicas, and the number of values that one of them keeps.
Status read_codes(const Config &config, ReplicaSettings *out) {
  const char *grad = choice_name(ZERO_KEY_GRAD_CODE, config.i64(ZERO_KEY_GRAD_CODE));
  const char *sync = choice_name(ZERO_KEY_SYNC_CODE, config.i64(ZERO_KEY_SYNC_CODE));
  out->code_top = config.i64(ZERO_KEY_CODE_TOP);
  out->grad_code = kernels::find_coder(config.i64(ZERO_KEY_GRAD_CODE), out->code_top);
  out->sync_code = kernels::find_coder(config.i64(ZERO_KEY_SYNC_CODE), out->code_top);
  ZERO_TRY(read_low_rank(config, out));
  ZERO_CHECK(!out->codes_grads() || out->sum_gradients(), ZERO_E_INVALID_ARGUMENT,
             "ZERO_KEY_GRAD_CODE is %s, but no gradients travel between replicas: there is one (ZERO_KEY_REPLICA_RANKS), or each makes all "
             "steps by itself (ZERO_KEY_SYNC_PERIOD); change these, or leave out ZERO_KEY_GRAD_CODE",
             grad);
  ZERO_CHECK(out->sync_code == nullptr || out->part(), ZERO_E_INVALID_ARGUMENT,
             "ZERO_KEY_SYNC_CODE is %s, but has no effect while ZERO_KEY_SYNC_PERIOD is 1: replicas then make every step together; set a "
             "longer period, or leave out ZERO_KEY_SYNC_CODE",
             sync);
  const auto keeps = [](const kernels::Coder *code) { return code != nullptr && code->kept > 0; };
  ZERO_CHECK(!config.is_set(ZERO_KEY_CODE_TOP) || keeps(out->grad_code) || keeps(out->sync_code), ZERO_E_INVALID_ARGUMENT,
             "ZERO_KEY_CODE_TOP is %lld, but has no effect while ZERO_KEY_GRAD_CODE is %s and ZERO_KEY_SYNC_CODE %s; set one of the two to "
             "ZERO_CODE_TOP, or leave out ZERO_KEY_CODE_TOP",
             lld(out->code_top), grad, sync);
  out->code_momentum = config.f64(ZERO_KEY_CODE_MOMENTUM);
  ZERO_CHECK(
      out->code_momentum == 0 || keeps(out->grad_code), ZERO_E_INVALID_ARGUMENT,
      "ZERO_KEY_CODE_MOMENTUM is %s, but has no effect while ZERO_KEY_GRAD_CODE is %s: only ZERO_CODE_TOP delays values so long that "
      "momentum must come before the code; use it, or leave out ZERO_KEY_CODE_MOMENTUM",
      number_text(out->code_momentum).c_str(), grad);
  return {};
}

/// Fails if codes would never begin.
Status read_code_after(const Config &config, Settings *out) {
  ReplicaSettings &replicas = out->replicas;
  replicas.code_after = config.i64(ZERO_KEY_CODE_AFTER);
  if (replicas.code_after == 0) return {};
  ZERO_CHECK(replicas.codes_grads() || replicas.sync_code != nullptr || out->gathers.code != nullptr, ZERO_E_INVALID_ARGUMENT,
             "ZERO_KEY_CODE_AFTER is %lld, but has no effect while ZERO_KEY_GRAD_CODE, ZERO_KEY_SYNC_CODE and ZERO_KEY_GATHER_CODE are "
             "ZERO_CODE_NONE: all travels in full; set one of them, or leave out ZERO_KEY_CODE_AFTER",
             lld(replicas.code_after));
  ZERO_CHECK(
      !replicas.codes_grads() || !replicas.part() || replicas.code_after + 1 < replicas.after, ZERO_E_INVALID_ARGUMENT,
      "ZERO_KEY_CODE_AFTER is %lld and ZERO_KEY_SYNC_AFTER %lld, but then ZERO_KEY_GRAD_CODE has no effect: gradients travel between "
      "replicas only before the second, and in full in the last such step; begin to code earlier, raise "
      "ZERO_KEY_SYNC_AFTER, or leave out ZERO_KEY_GRAD_CODE",
      lld(replicas.code_after), lld(replicas.after));
  return {};
}

Status read_residual(const Config &config, Settings *out) {
  ReplicaSettings &replicas = out->replicas;
  replicas.residual = config.i64(ZERO_KEY_RESIDUAL) != ZERO_RESIDUAL_NONE;
  replicas.flush_period = config.i64(ZERO_KEY_FLUSH_PERIOD);
  const bool codes_grads = replicas.codes_grads();
  const bool drops = replicas.low_rank > 0 || (replicas.grad_code != nullptr && replicas.grad_code->sparse());
  ZERO_CHECK(!replicas.residual || codes_grads, ZERO_E_INVALID_ARGUMENT,
             "ZERO_KEY_RESIDUAL is set, but has no effect while ZERO_KEY_GRAD_CODE is ZERO_CODE_NONE: gradients are then sent in full");
  ZERO_CHECK(replicas.residual || !drops, ZERO_E_UNSUPPORTED,
             "ZERO_KEY_GRAD_CODE is %s and ZERO_KEY_RESIDUAL ZERO_RESIDUAL_NONE, but the code drops most of each gradient, which would be "
             "lost; use ZERO_RESIDUAL_F32",
             choice_name(ZERO_KEY_GRAD_CODE, config.i64(ZERO_KEY_GRAD_CODE)));
  ZERO_CHECK(replicas.flush_period == 0 || codes_grads || out->gathers.code != nullptr, ZERO_E_INVALID_ARGUMENT,
             "ZERO_KEY_FLUSH_PERIOD is set, but has no effect while ZERO_KEY_GRAD_CODE and ZERO_KEY_GATHER_CODE are ZERO_CODE_NONE: "
             "gradients and parameters are then sent in full");
  ZERO_CHECK(
      !replicas.residual || !out->leaves_unfilled, ZERO_E_UNSUPPORTED,
      "ZERO_KEY_RESIDUAL is ZERO_RESIDUAL_F32 and ZERO_KEY_UNFILLED is ZERO_UNFILLED_UNTOUCHED, but the residual of a parameter that "
      "stays untouched would be sent and not applied");
  return {};
}

/// Every fragment has its own place in a period, and its exchange ends before the next one begins.
Status read_fragments(const Config &config, ReplicaSettings *out) {
  out->fragments = config.i64(ZERO_KEY_SYNC_FRAGMENTS);
  out->delay = config.i64(ZERO_KEY_SYNC_DELAY);
  out->mix = config.f64(ZERO_KEY_SYNC_MIX);
  for (const int32_t key : {ZERO_KEY_SYNC_FRAGMENTS, ZERO_KEY_SYNC_DELAY, ZERO_KEY_SYNC_MIX}) {
    ZERO_CHECK(!config.is_set(key) || out->part(), ZERO_E_INVALID_ARGUMENT,
               "%s is set, but has no effect while ZERO_KEY_SYNC_PERIOD is 1: replicas then make every step together; set a longer period, "
               "or leave it out",
               find_key(key)->name);
  }
  ZERO_CHECK(
      out->period % out->fragments == 0, ZERO_E_INVALID_ARGUMENT,
      "ZERO_KEY_SYNC_FRAGMENTS is %lld, but must divide ZERO_KEY_SYNC_PERIOD, which is %lld, so that every fragment has a step of its "
      "own in each period; change one of the two",
      lld(out->fragments), lld(out->period));
  ZERO_CHECK(
      out->delay < out->period / out->fragments, ZERO_E_INVALID_ARGUMENT,
      "ZERO_KEY_SYNC_DELAY is %lld, but must be below ZERO_KEY_SYNC_PERIOD / ZERO_KEY_SYNC_FRAGMENTS, which is %lld / %lld: a result "
      "is used before the next exchange begins; lower the delay or the number of fragments, or make the period longer",
      lld(out->delay), lld(out->period), lld(out->fragments));
  return {};
}

/// Fails if means over neighbours are combined with settings that need the mean change of all
/// replicas.
Status read_neighbours(const Config &config, ReplicaSettings *out) {
  out->ring = config.i64(ZERO_KEY_NEIGHBOURS) == ZERO_NEIGHBOURS_RING;
  if (!out->ring) return {};
  ZERO_CHECK(
      out->part(), ZERO_E_INVALID_ARGUMENT,
      "ZERO_KEY_NEIGHBOURS is ZERO_NEIGHBOURS_RING, but has no effect while ZERO_KEY_SYNC_PERIOD is 1: replicas then make every step "
      "together");
  for (const auto &[key, value, plain] : {std::tuple{ZERO_KEY_OUTER_LR, out->outer_lr, 1.0},
                                          {ZERO_KEY_OUTER_MOMENTUM, out->outer_momentum, 0.0},
                                          {ZERO_KEY_SYNC_MIX, out->mix, 0.0}}) {
    ZERO_CHECK(
        value == plain, ZERO_E_UNSUPPORTED,
        "ZERO_KEY_NEIGHBOURS is ZERO_NEIGHBOURS_RING and %s %s, but an outer step needs the mean change of all replicas; leave it at "
        "%s, or use ZERO_NEIGHBOURS_NONE",
        find_key(key)->name, number_text(value).c_str(), number_text(plain).c_str());
  }
  for (const auto &[key, value, plain] :
       {std::tuple{ZERO_KEY_SYNC_FRAGMENTS, out->fragments, int64_t{1}}, {ZERO_KEY_SYNC_DELAY, out->delay, int64_t{0}}}) {
    ZERO_CHECK(
        value == plain, ZERO_E_UNSUPPORTED,
        "ZERO_KEY_NEIGHBOURS is ZERO_NEIGHBOURS_RING and %s %lld, but a round averages all parameters in the step that it ends; leave it "
        "at %lld, or use ZERO_NEIGHBOURS_NONE",
        find_key(key)->name, lld(value), lld(plain));
  }
  ZERO_CHECK(
      out->sync_code == nullptr, ZERO_E_UNSUPPORTED,
      "ZERO_KEY_NEIGHBOURS is ZERO_NEIGHBOURS_RING and ZERO_KEY_SYNC_CODE %s, but codes shorten the mean change of all replicas, and "
      "neighbours send their values; use ZERO_CODE_NONE, or ZERO_NEIGHBOURS_NONE",
      choice_name(ZERO_KEY_SYNC_CODE, config.i64(ZERO_KEY_SYNC_CODE)));
  return {};
}

/// Fails if nothing could follow by differences: no whole parameters are gathered from other ranks,
/// or they are not updated from masters.
Status read_gather_code(const Config &config, int64_t ranks, Settings *out) {
  ZERO_CHECK(config.i64(ZERO_KEY_GATHER_CODE) != ZERO_CODE_LOW_RANK, ZERO_E_UNSUPPORTED,
             "ZERO_KEY_GATHER_CODE is ZERO_CODE_LOW_RANK, but the owners of parameters have shards of matrices only, and their "
             "differences no low rank; use ZERO_CODE_I4, ZERO_CODE_I8 or ZERO_CODE_F8");
  out->gathers.code = kernels::find_coder(config.i64(ZERO_KEY_GATHER_CODE), out->replicas.code_top);
  if (out->gathers.code == nullptr) return {};
  const char *code = choice_name(ZERO_KEY_GATHER_CODE, config.i64(ZERO_KEY_GATHER_CODE));
  ZERO_CHECK(!out->gathers.code->sparse(), ZERO_E_UNSUPPORTED,
             "ZERO_KEY_GATHER_CODE is %s, but with it parameters would need many steps to follow their masters; use ZERO_CODE_I4, "
             "ZERO_CODE_I8 or ZERO_CODE_F8",
             code);
  ZERO_CHECK(out->trains, ZERO_E_INVALID_ARGUMENT,
             "ZERO_KEY_GATHER_CODE is %s, but has no effect with ZERO_KEY_ALGORITHM \"none\", which updates no parameters", code);
  ZERO_CHECK(out->stage == 1 || out->stage == 2, ZERO_E_UNSUPPORTED,
             "ZERO_KEY_GATHER_CODE is %s and ZERO_KEY_STAGE %lld, but %s; use stage 1 or 2", code, lld(out->stage),
             out->stage == 0 ? "in stage 0 every rank has the masters of all parameters, and gathers none"
                             : "in stage 3 no rank keeps whole parameters that a difference could be added to");
  ZERO_CHECK(ranks > 1, ZERO_E_INVALID_ARGUMENT,
             "ZERO_KEY_GATHER_CODE is %s, but has no effect where one rank holds a replica (ZERO_KEY_REPLICA_RANKS): it updates all "
             "parameters and gathers none",
             code);
  ZERO_CHECK(!out->gathers.one_copy, ZERO_E_UNSUPPORTED,
             "ZERO_KEY_GATHER_CODE is %s and ZERO_KEY_ONE_COPY 1, but updates of the one copy are not gathered; set one of the two", code);
  ZERO_CHECK(!out->on_device, ZERO_E_UNSUPPORTED,
             "ZERO_KEY_GATHER_CODE is %s and ZERO_KEY_TIER ZERO_TIER_DEVICE, but differences are coded by the host; use ZERO_TIER_HOST",
             code);
  ZERO_CHECK(
      !out->leaves_unfilled, ZERO_E_UNSUPPORTED,
      "ZERO_KEY_GATHER_CODE is %s and ZERO_KEY_UNFILLED is ZERO_UNFILLED_UNTOUCHED, but a parameter that stays untouched would still "
      "come nearer to its master; use ZERO_UNFILLED_ZERO",
      code);
  ZERO_CHECK(
      !out->rounding.stochastic, ZERO_E_UNSUPPORTED,
      "ZERO_KEY_GATHER_CODE is %s and ZERO_KEY_ROUNDING is ZERO_ROUNDING_STOCHASTIC, but all ranks round sums with differences to the "
      "nearest; use ZERO_ROUNDING_NEAREST",
      code);
  return {};
}

/// Fails if parameters could not be sharded over these ranks while states are sharded over all of a
/// replica.
Status read_param_ranks(const Config &config, const RankPlace &place, Settings *out) {
  const int64_t given = config.i64(ZERO_KEY_PARAM_RANKS);
  if (given == 0) return {};
  ZERO_CHECK(
      out->stage == 3, ZERO_E_UNSUPPORTED,
      "ZERO_KEY_PARAM_RANKS is %lld and ZERO_KEY_STAGE %lld, but in stages 0 to 2 every rank keeps whole parameters; use stage 3, or "
      "leave ZERO_KEY_PARAM_RANKS at 0",
      lld(given), lld(out->stage));
  ZERO_CHECK(!out->on_device, ZERO_E_UNSUPPORTED,
             "ZERO_KEY_PARAM_RANKS is %lld and ZERO_KEY_TIER ZERO_TIER_DEVICE, but copies of parameters are kept in memory of the host "
             "only; use ZERO_TIER_HOST, or leave ZERO_KEY_PARAM_RANKS at 0",
             lld(given));
  ZERO_CHECK(given > 0 || (place.size % place.local_size == 0 && place.rank % place.local_size == place.local_rank), ZERO_E_UNSUPPORTED,
             "ZERO_KEY_PARAM_RANKS is -1, but rank %lld is number %lld of %lld on its host; each host must have equally many ranks, which "
             "follow one another; start ranks like that, or give a number of ranks",
             lld(place.rank), lld(place.local_rank), lld(place.local_size));
  const int64_t ranks = given > 0 ? given : place.local_size;
  ZERO_CHECK(out->replicas.ranks % ranks == 0, ZERO_E_INVALID_ARGUMENT,
             "ZERO_KEY_PARAM_RANKS makes parameters sharded over %lld ranks, but must divide the %lld ranks of a replica "
             "(ZERO_KEY_REPLICA_RANKS); change one of the two",
             lld(ranks), lld(out->replicas.ranks));
  if (ranks < out->replicas.ranks) out->gathers.param_ranks = ranks;
  return {};
}

/// A key that could have no effect is an error.
Status read_replicas(const Config &config, const RankPlace &place, Settings *out) {
  ReplicaSettings &replicas = out->replicas;
  ZERO_TRY(read_replica_ranks(config, place, &replicas.ranks));
  replicas.count = place.size / replicas.ranks;
  replicas.period = config.i64(ZERO_KEY_SYNC_PERIOD);
  replicas.after = config.i64(ZERO_KEY_SYNC_AFTER);
  replicas.outer_lr = config.f64(ZERO_KEY_OUTER_LR);
  replicas.outer_momentum = config.f64(ZERO_KEY_OUTER_MOMENTUM);
  ZERO_CHECK(
      replicas.any() || !replicas.part(), ZERO_E_INVALID_ARGUMENT,
      "ZERO_KEY_SYNC_PERIOD is %lld, but all %lld ranks hold one replica (ZERO_KEY_REPLICA_RANKS), so there is nothing to synchronise",
      lld(replicas.period), lld(place.size));
  for (const int32_t key : {ZERO_KEY_SYNC_AFTER, ZERO_KEY_OUTER_LR, ZERO_KEY_OUTER_MOMENTUM}) {
    ZERO_CHECK(!config.is_set(key) || replicas.part(), ZERO_E_INVALID_ARGUMENT,
               "%s is set, but has no effect while ZERO_KEY_SYNC_PERIOD is 1: replicas then make every step together", find_key(key)->name);
  }
  ZERO_TRY(read_codes(config, &replicas));
  ZERO_TRY(read_fragments(config, &replicas));
  ZERO_TRY(read_neighbours(config, &replicas));
  ZERO_TRY(read_gather_code(config, replicas.ranks, out));
  ZERO_TRY(read_residual(config, out));
  ZERO_TRY(read_code_after(config, out));
  ZERO_TRY(read_code_freeze(config, out));
  if (!replicas.any()) return {};
  ZERO_CHECK(!out->on_device, ZERO_E_UNSUPPORTED,
             "ZERO_KEY_REPLICA_RANKS makes %lld replicas, but with ZERO_KEY_TIER = ZERO_TIER_DEVICE all ranks hold one",
             lld(replicas.count));
  return {};
}

}  // namespace

Status read_algorithm(const Config &config, const kernels::Algorithm **out) {
  const std::string &name = config.str(ZERO_KEY_ALGORITHM);
  *out = nullptr;
  if (name == "custom" || name == "none") return {};
  *out = kernels::find_algorithm(name.empty() ? "adamw" : name.c_str());
  ZERO_CHECK(*out != nullptr, ZERO_E_UNSUPPORTED, "ZERO_KEY_ALGORITHM is \"%s\", but must be %s", name.c_str(), algorithm_names().c_str());
  return {};
}

Status read_settings(const Config &config, const RankPlace &place, Settings *out) {
  Settings settings{};
  settings.stage = config.i64(ZERO_KEY_STAGE);
  settings.trains = config.str(ZERO_KEY_ALGORITHM) != "none";
  ZERO_TRY(read_algorithm(config, &settings.algorithm));
  settings.custom_slots = config.i64(ZERO_KEY_CUSTOM_SLOTS);
  ZERO_CHECK(settings.custom_slots == 0 || config.str(ZERO_KEY_ALGORITHM) == "custom", ZERO_E_INVALID_ARGUMENT,
             "ZERO_KEY_CUSTOM_SLOTS is %lld, but only algorithm \"custom\" has such slots", lld(settings.custom_slots));
  read_precision(config, &settings.precision);
  settings.buckets.nbytes = config.i64(ZERO_KEY_BUCKET_BYTES);
  settings.divisor = config.i64(ZERO_KEY_DIVISOR);
  settings.skips_nonfinite = config.i64(ZERO_KEY_NONFINITE) == ZERO_NONFINITE_SKIP;
  ZERO_TRY(read_clipping(config, &settings));
  settings.grad_norm = config.i64(ZERO_KEY_GRAD_NORM) != 0 || settings.clipping.norm > 0;
  settings.rounding.stochastic = config.i64(ZERO_KEY_ROUNDING) == ZERO_ROUNDING_STOCHASTIC;
  settings.rounding.seed = static_cast<uint64_t>(config.i64(ZERO_KEY_SEED));
  settings.leaves_unfilled = config.i64(ZERO_KEY_UNFILLED) == ZERO_UNFILLED_UNTOUCHED;
  settings.accumulates_in_f32 = config.i64(ZERO_KEY_ACCUMULATE_DTYPE) == ZERO_DTYPE_F32;
  settings.average = config.i64(ZERO_KEY_AVERAGE) != 0;
  settings.gathers.below = config.i64(ZERO_KEY_GATHER_BELOW);
  ZERO_TRY(read_one_copy(config, &settings));
  settings.gathers.ahead_nbytes = config.i64(ZERO_KEY_PREFETCH_BYTES);
  settings.gathers.ahead_follows = settings.buckets.nbytes == 0 && !config.is_set(ZERO_KEY_PREFETCH_BYTES);
  settings.overlap = config.i64(ZERO_KEY_OVERLAP) != 0;
  settings.memory.limit = config.i64(ZERO_KEY_MEMORY_LIMIT);
  settings.buckets.pool_limit = config.i64(ZERO_KEY_POOL_LIMIT);
  settings.monitoring.trace_events = config.i64(ZERO_KEY_TRACE_EVENTS);
  settings.monitoring.verify_every = config.i64(ZERO_KEY_VERIFY_EVERY);
  ZERO_TRY(read_tier(config, place.size, &settings));
  ZERO_TRY(read_replicas(config, place, &settings));
  ZERO_TRY(read_param_ranks(config, place, &settings));
  ZERO_TRY(read_grad_delay(config, &settings));
  ZERO_TRY(parse_shard_weights(config.str(ZERO_KEY_SHARD_WEIGHTS), settings.replicas.ranks, &settings.shard_weights,
                               settings.replicas.any() ? "a replica" : "the group"));
  settings.memory.hook = config.hook;
  *out = std::move(settings);
  return {};
}

bool Settings::overlaps_in(const Group &group) const {
  return overlap && group.size() > 1 && !group.transport().capabilities().single_thread;
}

std::string Settings::text() const {
  std::string text;
  const auto add = [&text](int32_t key, const std::string &value) { text += setting_text(key, value) + "\n"; };
  const auto add_choice = [&add](int32_t key, int64_t value) { add(key, choice_name(key, value)); };
  const auto add_code = [&](int32_t key, const kernels::Coder *coder) {
    add_choice(key, coder != nullptr ? coder->number : int64_t{ZERO_CODE_NONE});
  };
  add(ZERO_KEY_STAGE, std::to_string(stage));
  add(ZERO_KEY_ALGORITHM, algorithm_name());
  add(ZERO_KEY_CUSTOM_SLOTS, std::to_string(custom_slots));
  add(ZERO_KEY_BUCKET_BYTES, std::to_string(buckets.nbytes));
  add_choice(ZERO_KEY_DIVISOR, divisor);
  text += model_text();
  add_choice(ZERO_KEY_ROUNDING, rounding.stochastic ? ZERO_ROUNDING_STOCHASTIC : ZERO_ROUNDING_NEAREST);
  add(ZERO_KEY_SEED, std::to_string(rounding.seed));
  add_choice(ZERO_KEY_UNFILLED, leaves_unfilled ? ZERO_UNFILLED_UNTOUCHED : ZERO_UNFILLED_ZERO);
  add_choice(ZERO_KEY_ACCUMULATE_DTYPE, accumulates_in_f32 ? ZERO_DTYPE_F32 : 0);
  add(ZERO_KEY_AVERAGE, std::to_string(average ? 1 : 0));
  add(ZERO_KEY_GATHER_BELOW, std::to_string(gathers.below));
  add(ZERO_KEY_ONE_COPY, std::to_string(gathers.one_copy ? 1 : 0));
  add_choice(ZERO_KEY_TIER, on_device ? ZERO_TIER_DEVICE : ZERO_TIER_HOST);
  add(ZERO_KEY_OVERLAP, std::to_string(overlap ? 1 : 0));
  if (overlap) add(ZERO_KEY_PREFETCH_BYTES, std::to_string(gathers.ahead_nbytes) + (gathers.ahead_follows ? " at most" : ""));
  add(ZERO_KEY_VERIFY_EVERY, std::to_string(monitoring.verify_every));
  add(ZERO_KEY_REPLICA_RANKS, std::to_string(replicas.ranks));
  add(ZERO_KEY_SYNC_PERIOD, std::to_string(replicas.period));
  add(ZERO_KEY_SYNC_AFTER, std::to_string(replicas.after));
  add(ZERO_KEY_SYNC_FRAGMENTS, std::to_string(replicas.fragments));
  add(ZERO_KEY_SYNC_DELAY, std::to_string(replicas.delay));
  if (replicas.low_rank > 0) {
    add_choice(ZERO_KEY_GRAD_CODE, ZERO_CODE_LOW_RANK);
    add(ZERO_KEY_CODE_RANK, std::to_string(replicas.low_rank));
  } else {
    add_code(ZERO_KEY_GRAD_CODE, replicas.grad_code);
  }
  add_code(ZERO_KEY_GATHER_CODE, gathers.code);
  add_code(ZERO_KEY_SYNC_CODE, replicas.sync_code);
  add(ZERO_KEY_CODE_TOP, std::to_string(replicas.code_top));
  add(ZERO_KEY_CODE_AFTER, std::to_string(replicas.code_after));
  add(ZERO_KEY_CODE_MOMENTUM, number_text(replicas.code_momentum));
  add(ZERO_KEY_CODE_FREEZE, std::to_string(replicas.code_freeze ? 1 : 0));
  add(ZERO_KEY_PARAM_RANKS, std::to_string(gathers.param_ranks));
  add_choice(ZERO_KEY_NEIGHBOURS, replicas.ring ? ZERO_NEIGHBOURS_RING : ZERO_NEIGHBOURS_NONE);
  add_choice(ZERO_KEY_RESIDUAL, replicas.residual ? ZERO_RESIDUAL_F32 : ZERO_RESIDUAL_NONE);
  add(ZERO_KEY_FLUSH_PERIOD, std::to_string(replicas.flush_period));
  std::string weights;
  for (const int64_t weight : shard_weights) weights += (weights.empty() ? "" : ",") + std::to_string(weight);
  add(ZERO_KEY_SHARD_WEIGHTS, weights);
  return text;
}

std::string Settings::model_text() const {
  std::string text =
      setting_text(ZERO_KEY_NONFINITE, choice_name(ZERO_KEY_NONFINITE, skips_nonfinite ? ZERO_NONFINITE_SKIP : ZERO_NONFINITE_PROPAGATE));
  text += "\n" + setting_text(ZERO_KEY_CLIP_NORM, number_text(clipping.norm));
  text += "\n" + setting_text(ZERO_KEY_CLIP_VALUE, number_text(clipping.value));
  text += "\n" + setting_text(ZERO_KEY_GRAD_DELAY, std::to_string(delays_grads ? 1 : 0));
  return text + "\n" + setting_text(ZERO_KEY_GRAD_NORM, std::to_string(grad_norm ? 1 : 0)) + "\n";
}

}  // namespace zero
