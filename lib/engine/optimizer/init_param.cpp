/// @file First values from an initialiser: each rank fills only what it updates of a parameter.
/// Knows cuts and masters; never how values are made.
#include "engine/optimizer/state_access.h"

#include "core/choice.h"
#include "core/number_text.h"
#include "engine/compute/host_kernels.h"
#include "engine/storage/host_copy.h"
#include "kernels/convert.h"
#include "kernels/initialise.h"

#include <algorithm>
#include <cmath>

namespace zero {
namespace {

double largest_of(DType dtype) {
  switch (dtype) {
    case DType::f16:
      return 0x1.ffcp15;
    case DType::bf16:
      return 0x1.fep127;
    default:
      return 0x1.fffffep127;
  }
}

/// Every value that may come must be a number of the parameter's dtype.
Status check_values(const Param &param, int32_t initialiser, double a, double b) {
  static constexpr Choice kInitialisers[] = {{ZERO_INITIALISER_CONSTANT, "ZERO_INITIALISER_CONSTANT"},
                                             {ZERO_INITIALISER_UNIFORM, "ZERO_INITIALISER_UNIFORM"},
                                             {ZERO_INITIALISER_NORMAL, "ZERO_INITIALISER_NORMAL"}};
  ZERO_TRY(check_choice(kInitialisers, initialiser, "initialiser"));
  ZERO_CHECK(std::isfinite(a) && std::isfinite(b), ZERO_E_INVALID_ARGUMENT, "a is %s and b %s, but both must be finite",
             number_text(a).c_str(), number_text(b).c_str());
  ZERO_CHECK(initialiser != ZERO_INITIALISER_UNIFORM || a <= b, ZERO_E_INVALID_ARGUMENT,
             "a is %s and b %s, but uniform values lie in [a, b), which needs a <= b", number_text(a).c_str(), number_text(b).c_str());
  ZERO_CHECK(initialiser != ZERO_INITIALISER_NORMAL || b >= 0, ZERO_E_INVALID_ARGUMENT,
             "b is %s, but the deviation of normal values must not be negative", number_text(b).c_str());
  // 53 random bits make normal values of at most sqrt(2 ln 2^53) = 8.572 deviations.
  constexpr double kMostDeviations = 8.6;
  double most = std::abs(a);
  if (initialiser == ZERO_INITIALISER_UNIFORM) most = std::max(most, std::abs(b));
  if (initialiser == ZERO_INITIALISER_NORMAL) most += kMostDeviations * b;
  ZERO_CHECK(most <= largest_of(param.dtype), ZERO_E_INVALID_ARGUMENT, "a is %s and b %s, which makes values beyond the largest of %s: %s",
             number_text(a).c_str(), number_text(b).c_str(), param.text().c_str(), number_text(largest_of(param.dtype)).c_str());
  return {};
}

/// A parameter and its master, from one element on.
struct Target {
  std::byte *param;
  DType param_dtype;
  float *scales;      ///< for coded parameters, otherwise nullptr
  std::byte *master;  ///< nullptr: none
  DType master_dtype;
};

/// Stores fp32 values exactly where there is a master or the parameter is fp32, otherwise rounded
/// to nearest even.
void store(const Target &target, int64_t index, const float *values, int64_t count) {
  const kernels::Table &table = kernels::active();
  std::byte *param = target.param + index * dtype_nbytes(target.param_dtype);
  std::byte *master = target.master == nullptr ? nullptr : target.master + index * dtype_nbytes(target.master_dtype);
  if (master != nullptr && target.master_dtype == DType::u16) {
    table.split(reinterpret_cast<uint16_t *>(param), reinterpret_cast<uint16_t *>(master), values, count);
    return;
  }
  if (master != nullptr) kernels::narrow(table, master, target.master_dtype, values, count);
  if (target.scales == nullptr) {
    kernels::narrow(table, param, target.param_dtype, values, count);
  } else {
    table.encode(reinterpret_cast<uint8_t *>(param), target.scales + index / kLine, target.param_dtype, values, count, nullptr);
  }
}

}  // namespace

Status StateAccess::init_param(int64_t id, int32_t initialiser, double a, double b, int64_t seed) {
  ZERO_TRY(parts_.guard.check_call("zero_optimizer_init_param", CallGuard::Phase::sealed, CallGuard::Phase::running));
  ZERO_TRY(parts_.registry.params.check_id(id));
  ZERO_CHECK(!parts_.registry.params[id].tied(), ZERO_E_INVALID_ARGUMENT, "%s is another name of %s; initialise that one",
             parts_.registry.params[id].name.c_str(), parts_.registry.params[parts_.registry.params.holder(id)].name.c_str());
  ZERO_TRY(check_values(parts_.registry.params[id], initialiser, a, b));
  ZERO_CHECK(!parts_.gathers.runs_ahead(), ZERO_E_STATE,
             "parameters are gathered ahead of the caller (ZERO_KEY_PREFETCH_BYTES), from memory that would be written; initialise before "
             "the first zero_optimizer_param_acquire of a step");
  ZERO_CHECK(parts_.gate == nullptr || parts_.gate->is_open(), ZERO_E_STATE,
             "an asynchronous save reads the values that would be replaced; initialise when its request has ended");
  ZERO_CHECK(!parts_.guard.acquiring(), ZERO_E_STATE, "a zero_optimizer_param_acquire is under way; initialise when it has ended");
  ZERO_CHECK(parts_.guard.phase() != CallGuard::Phase::running || !(parts_.gradients.any_acquired() || parts_.gradients.started()),
             ZERO_E_STATE, "gradients of a step were acquired or given; zero_optimizer_step comes before parameters are initialised");
  const Status arrived = parts_.gathers.all_arrived();
  if (!arrived.ok()) parts_.guard.lose(arrived);
  ZERO_TRY(arrived);
  parts_.first_values.note_params(id, parts_.guard.phase() == CallGuard::Phase::running, true);
  const Range range = parts_.state.tensors.updated(id);
  if (range.empty()) return {};
  const Slot *master = nullptr;
  Target target{nullptr, parts_.state.tensors.place(parts_.state.slots.param(), id).dtype, nullptr, nullptr, DType::f32};
  HostCopy params;
  HostCopy scales;
  HostCopy masters;
  ZERO_TRY(params.open(parts_.memory_source(), parts_.state.tensors.at(parts_.state.slots.param(), id, range.begin),
                       range.count() * dtype_nbytes(target.param_dtype)));
  target.param = params.data();
  if (parts_.state.tensors.coded(id)) {
    ZERO_TRY(scales.open(parts_.memory_source(), parts_.state.tensors.codes_at(id, range.begin).scales,
                         QuantizedParams::scales_nbytes(range.count())));
    target.scales = reinterpret_cast<float *>(scales.data());
  }
  if (parts_.state.tensors.find(ZERO_SLOT_MASTER, id, &master)) {
    target.master_dtype = parts_.state.tensors.place(*master, id).dtype;
    ZERO_TRY(masters.open(parts_.memory_source(), parts_.state.tensors.at(*master, id, range.begin),
                          range.count() * dtype_nbytes(target.master_dtype)));
    target.master = masters.data();
  }
  HostKernels(parts_.memory->threads).over_lines(range.count(), [&](Range part) {
    float values[4 * kLine];
    for (int64_t at = part.begin; at < part.end; at += std::ssize(values)) {
      const int64_t count = std::min<int64_t>(std::ssize(values), part.end - at);
      kernels::initialise(values, count, static_cast<kernels::Initialiser>(initialiser), a, b, static_cast<uint64_t>(seed),
                          static_cast<uint64_t>(id), range.begin + at);
      store(target, at, values, count);
    }
  });
  ZERO_TRY(params.write_back());
  if (target.scales != nullptr) ZERO_TRY(scales.write_back());
  if (target.master != nullptr) ZERO_TRY(masters.write_back());
  ZERO_TRY(parts_.verifier.note_write(id, ZERO_SLOT_PARAM));
  ZERO_TRY(parts_.verifier.note_write(id, ZERO_SLOT_PARAM_SCALE));
  return parts_.verifier.note_write(id, ZERO_SLOT_MASTER);
}

}  // namespace zero
