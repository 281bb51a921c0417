/// @file Registers parameters, sets and module buffers.
#include "engine/optimizer/registry.h"

#include <algorithm>
#include <array>
#include <utility>

namespace zero {
namespace {

constexpr int64_t kMostSets = 4096;
constexpr bool is_hyper_key(int32_t key) { return key >= 400 && key < 500 && !is_outer_key(key) && !is_code_key(key); }
constexpr std::array<int32_t, 10> kParamKeys = {ZERO_KEY_SET,         ZERO_KEY_FROZEN,
                                                ZERO_KEY_GRAD_DTYPE,  ZERO_KEY_MASTER,
                                                ZERO_KEY_REPLICATED,  ZERO_KEY_FIRST_MOMENT_DTYPE,
                                                ZERO_KEY_TIED_TO,     ZERO_KEY_SECOND_MOMENT_DTYPE,
                                                ZERO_KEY_PARAM_DTYPE, ZERO_KEY_ROWS};

/// Keys of single parameters that an optimizer's config must not set.
constexpr std::array<int32_t, 5> kOneParamKeys = {ZERO_KEY_SET, ZERO_KEY_FROZEN, ZERO_KEY_REPLICATED, ZERO_KEY_TIED_TO, ZERO_KEY_ROWS};

/// Returns ZERO_E_UNSUPPORTED if a key is set for which `allowed` returns false.
template <class Allowed>
Status check_keys(const Config &config, const char *what, Allowed &&allowed) {
  for (const KeyInfo &info : all_keys()) {
    ZERO_CHECK(!config.is_set(info.key) || allowed(info.key), ZERO_E_UNSUPPORTED, "%s is no key of %s", info.name, what);
  }
  return {};
}

/// Refuses features that do not support gradients by rows.
Status check_rows(const Settings &settings, const char *name) {
  ZERO_CHECK(
      !settings.on_device, ZERO_E_UNSUPPORTED,
      "%s: ZERO_KEY_ROWS is 1, but ZERO_KEY_TIER is ZERO_TIER_DEVICE, where gradients are reduced whole; set it to ZERO_TIER_HOST, or "
      "give whole gradients",
      name);
  ZERO_CHECK(!settings.delays_grads, ZERO_E_UNSUPPORTED,
             "%s: ZERO_KEY_ROWS is 1, but ZERO_KEY_GRAD_DELAY is 1 too, and gradients that wait are whole; set one of the two", name);
  ZERO_CHECK(!settings.replicas.any(), ZERO_E_UNSUPPORTED,
             "%s: ZERO_KEY_ROWS is 1, but ZERO_KEY_REPLICA_RANKS is set, and sums over replicas are of whole gradients; set one of the two",
             name);
  return {};
}

/// Refuses updates that change elements of several rows together, if rows may stay untouched.
Status check_rows_apart(const kernels::Algorithm *algorithm, const Precision &precision, const char *name) {
  ZERO_CHECK(algorithm == nullptr || (!algorithm->layerwise && !algorithm->matrix), ZERO_E_UNSUPPORTED,
             "%s: ZERO_KEY_ROWS is 1 and ZERO_KEY_UNFILLED is ZERO_UNFILLED_UNTOUCHED, but ZERO_KEY_ALGORITHM of its set is \"%s\", which "
             "updates a tensor as a whole; use an algorithm that updates each element by itself, ZERO_UNFILLED_ZERO, or whole gradients",
             name, algorithm->name);
  const std::pair<int32_t, DType> kept[] = {{ZERO_KEY_PARAM_DTYPE, static_cast<DType>(precision.param)},
                                            {ZERO_KEY_FIRST_MOMENT_DTYPE, precision.first_moment},
                                            {ZERO_KEY_SECOND_MOMENT_DTYPE, precision.second_moment}};
  for (const auto &[key, dtype] : kept) {
    ZERO_CHECK(
        dtype_nbytes(dtype) != 1, ZERO_E_UNSUPPORTED,
        "%s: ZERO_KEY_ROWS is 1 and ZERO_KEY_UNFILLED is ZERO_UNFILLED_UNTOUCHED, but %s is %s, of which 256 elements have a scale in "
        "common, touched or not; use 16 or 32 bits, ZERO_UNFILLED_ZERO, or whole gradients",
        name, find_key(key)->name, dtype_name(dtype));
  }
  return {};
}

}  // namespace

Status Registry::check_keys_of_all(const Config &config) {
  for (const int32_t key : kOneParamKeys) {
    ZERO_CHECK(!config.is_set(key), ZERO_E_UNSUPPORTED, "%s is set for the whole optimizer, but is a key of single parameters",
               find_key(key)->name);
  }
  return {};
}

Status Registry::read_options(const Config &config, const char *name, ParamOptions *out) const {
  const auto is_param_key = [](int32_t key) { return std::find(kParamKeys.begin(), kParamKeys.end(), key) != kParamKeys.end(); };
  ZERO_TRY(check_keys(config, "a single parameter", is_param_key));
  if (config.is_set(ZERO_KEY_TIED_TO)) {
    out->tied_to = config.i64(ZERO_KEY_TIED_TO);
    for (const int32_t key : kParamKeys) {
      ZERO_CHECK(key == ZERO_KEY_TIED_TO || !config.is_set(key), ZERO_E_INVALID_ARGUMENT,
                 "%s: %s is set together with ZERO_KEY_TIED_TO, but a tied parameter has the options of the one it is tied to", name,
                 find_key(key)->name);
    }
    return {};
  }
  out->set = config.i64(ZERO_KEY_SET);
  ZERO_TRY(check_index(out->set, static_cast<int64_t>(sets.size()), (std::string(name) + ": ZERO_KEY_SET").c_str(),
                       "parameter sets (zero_optimizer_add_set)"));
  out->frozen = config.i64(ZERO_KEY_FROZEN) != 0;
  out->replicated = config.i64(ZERO_KEY_REPLICATED) != 0;
  out->by_rows = config.i64(ZERO_KEY_ROWS) != 0;
  read_precision(config, &out->precision);
  if (!out->by_rows) return {};
  ZERO_TRY(check_rows(settings, name));
  const kernels::Algorithm *algorithm = sets[static_cast<size_t>(out->set)].algorithm();
  return settings.leaves_unfilled ? check_rows_apart(algorithm, out->precision, name) : Status();
}

Status Registry::add_param(const Config *config, const char *name, int32_t dtype, const int64_t *shape, int64_t ndim, int64_t *out_id) {
  ParamOptions options;
  options.precision = settings.precision;
  ZERO_TRY(check_tensor_name(name));
  const std::string shown = quoted_name(name);
  if (config != nullptr) ZERO_TRY(read_options(*config, shown.c_str(), &options));
  ZERO_CHECK(!module_buffers.has(name), ZERO_E_INVALID_ARGUMENT, "%s is the name of a module buffer; names must be unique in the optimizer",
             shown.c_str());
  return params.add(name, dtype, shape, ndim, options, out_id);
}

Status Registry::add_set(const Config &config, int64_t *out_set) {
  ZERO_TRY(check_keys(config, "a parameter set", [](int32_t key) { return key == ZERO_KEY_ALGORITHM || is_hyper_key(key); }));
  ZERO_CHECK(static_cast<int64_t>(sets.size()) < kMostSets, ZERO_E_UNSUPPORTED, "there are %zu parameter sets, which is the most",
             sets.size());
  const kernels::Algorithm *algorithm = settings.algorithm;
  if (config.is_set(ZERO_KEY_ALGORITHM)) {
    ZERO_TRY(read_algorithm(config, &algorithm));
    // Without an algorithm of the library the names must be equal: they separate parameters that
    // are only stored from those that the caller updates.
    const bool alike = algorithm != nullptr ? settings.algorithm != nullptr : config.str(ZERO_KEY_ALGORITHM) == settings.algorithm_name();
    ZERO_CHECK(alike, ZERO_E_UNSUPPORTED,
               "ZERO_KEY_ALGORITHM of the set is \"%s\", but that of the optimizer is \"%s\": the library updates all sets or none",
               config.str(ZERO_KEY_ALGORITHM).c_str(), settings.algorithm_name());
  }
  HyperSet set;
  ZERO_TRY(set.read(algorithm, config, &sets.front()));
  sets.push_back(set);
  *out_set = static_cast<int64_t>(sets.size()) - 1;
  return {};
}

Status Registry::add_module_buffer(const char *name, int32_t dtype, const int64_t *shape, int64_t ndim, int32_t rule, int64_t *out_id) {
  ZERO_TRY(check_tensor_name(name));
  ZERO_CHECK(!params.has(name), ZERO_E_INVALID_ARGUMENT, "%s is the name of a parameter; names must be unique in the optimizer",
             quoted_name(name).c_str());
  return module_buffers.add(name, dtype, shape, ndim, rule, out_id);
}

Status Registry::set_order(const int64_t *ids, int64_t count) {
  ZERO_CHECK(count >= 0 && (ids != nullptr || count == 0), ZERO_E_INVALID_ARGUMENT,
             "ids is %s and count is %lld, but ids must hold all ids of parameters and count be %lld", ids == nullptr ? "NULL" : "given",
             lld(count), lld(params.size()));
  return params.set_order({ids, static_cast<size_t>(count)});
}

Status Registry::read_gather_order(const int64_t *ids, int64_t count, std::vector<int64_t> *out) const {
  ZERO_CHECK(count >= 0 && (ids != nullptr || count == 0), ZERO_E_INVALID_ARGUMENT,
             "ids is %s and count is %lld, but must not be NULL with a count above 0, nor count negative",
             ids == nullptr ? "NULL" : "given", lld(count));
  std::vector<int64_t> order;
  for (int64_t i = 0; i < count; ++i) {
    ZERO_TRY(params.check_id(ids[i]));
    order.push_back(params.holder(ids[i]));
  }
  *out = std::move(order);
  return {};
}

Status Registry::check_set(int64_t set) const { return check_index(set, static_cast<int64_t>(sets.size()), "set", "parameter sets"); }

Status Registry::check_range(int64_t id, int64_t offset, int64_t count) const {
  ZERO_TRY(params.check_id(id));
  const int64_t whole = params[id].count;
  ZERO_CHECK(offset >= 0 && count >= 0 && offset <= whole && count <= whole - offset, ZERO_E_INVALID_ARGUMENT,
             "offset %lld and count %lld are given, but the elements of %s are %lld", lld(offset), lld(count), params[id].name.c_str(),
             lld(whole));
  return {};
}

}  // namespace zero
