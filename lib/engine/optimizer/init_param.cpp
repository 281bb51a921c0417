/// @file First values from an initialiser: each rank fills only what it updates of a parameter. Knows cuts and masters; never how values
/// are made.
#include "engine/optimizer/optimizer.h"

#include "core/choice.h"
#include "core/number_text.h"
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
  float *scales;      ///< of codes, otherwise nullptr
  std::byte *master;  ///< nullptr: none
  DType master_dtype;
};

/// Stores fp32 values exactly where there is a master or the parameter is fp32, otherwise rounded to nearest even.
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

Status Optimizer::init_param(int64_t id, int32_t initialiser, double a, double b, int64_t seed) {
  ZERO_TRY(guard_.check_call("zero_optimizer_init_param", Phase::sealed, Phase::running));
  ZERO_TRY(params_.check_id(id));
  ZERO_CHECK(!params_[id].tied(), ZERO_E_INVALID_ARGUMENT, "%s is another name of %s; initialise that one", params_[id].name.c_str(),
             params_[params_.holder(id)].name.c_str());
  ZERO_TRY(check_values(params_[id], initialiser, a, b));
  ZERO_CHECK(!gathers_.runs_ahead(), ZERO_E_STATE,
             "parameters are gathered ahead of the caller (ZERO_KEY_PREFETCH_BYTES), from memory that would be written; initialise before "
             "the first zero_optimizer_param_acquire of a step");
  ZERO_CHECK(gate_ == nullptr || gate_->is_open(), ZERO_E_STATE,
             "an asynchronous save reads the values that would be replaced; initialise when its request has ended");
  ZERO_CHECK(!guard_.acquiring(), ZERO_E_STATE, "a zero_optimizer_param_acquire is under way; initialise when it has ended");
  ZERO_CHECK(guard_.phase() != Phase::running || !(gradients_.any_acquired() || gradients_.started()), ZERO_E_STATE,
             "gradients of a step were acquired or given; zero_optimizer_step comes before parameters are initialised");
  const Status arrived = gathers_.all_arrived();
  if (!arrived.ok()) guard_.lose(arrived);
  ZERO_TRY(arrived);
  first_values_.note_params(guard_.phase() == Phase::running, true);
  const Range range = tensors_.updated(id);
  if (range.empty()) return {};
  const Slot *master = nullptr;
  Target target{nullptr, tensors_.place(slots_.param(), id).dtype, nullptr, nullptr, DType::f32};
  HostCopy params;
  HostCopy scales;
  HostCopy masters;
  ZERO_TRY(params.open(memory_source(), tensors_.at(slots_.param(), id, range.begin), range.count() * dtype_nbytes(target.param_dtype)));
  target.param = params.data();
  if (tensors_.coded(id)) {
    ZERO_TRY(scales.open(memory_source(), tensors_.codes_at(id, range.begin).scales, CodedParams::scales_nbytes(range.count())));
    target.scales = reinterpret_cast<float *>(scales.data());
  }
  if (tensors_.find(ZERO_SLOT_MASTER, id, &master)) {
    target.master_dtype = tensors_.place(*master, id).dtype;
    ZERO_TRY(masters.open(memory_source(), tensors_.at(*master, id, range.begin), range.count() * dtype_nbytes(target.master_dtype)));
    target.master = masters.data();
  }
  host_kernels_.over_lines(range.count(), [&](Range part) {
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
  ZERO_TRY(verifier_.note_write(id, ZERO_SLOT_PARAM));
  ZERO_TRY(verifier_.note_write(id, ZERO_SLOT_PARAM_SCALE));
  return verifier_.note_write(id, ZERO_SLOT_MASTER);
}

}  // namespace zero
