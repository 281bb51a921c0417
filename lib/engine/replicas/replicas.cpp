/// @file Bringing replicas together. Stich, "Local SGD converges fast and communicates little",
/// 2019; the outer step is that of Douillard et al., "DiLoCo: Distributed low-communication
/// training of language models", 2023, algorithm 1.
#include "engine/replicas/replicas.h"

#include "core/default_floats.h"
#include "core/number_text.h"
#include "group/collectives.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <utility>
#include <vector>

namespace zero {
namespace {

constexpr int64_t kPartElements = int64_t{1} << 20;

}  // namespace

Status Replicas::check_formats() const {
  if (!settings_.part()) return {};
  for (int64_t id = 0; id < params_.size(); ++id) {
    const Format &format = layout_.format_of(id);
    const auto is_master = [](const SlotFormat &slot) { return slot.number == ZERO_SLOT_MASTER; };
    const bool has_fp32 = format.param == DType::f32 || std::any_of(format.states.begin(), format.states.end(), is_master);
    ZERO_CHECK(
        !format.trains || has_fp32, ZERO_E_UNSUPPORTED,
        "%s has no fp32 values: ZERO_KEY_SYNC_PERIOD above 1 needs ZERO_MASTER_F32 or ZERO_MASTER_REMAINDER (ZERO_KEY_MASTER) for %s "
        "parameters",
        params_[id].text().c_str(), dtype_name(format.param));
  }
  return {};
}

int64_t Replicas::largest_part() const {
  int64_t largest = 0;
  for (const int64_t index : plan().order()) largest = std::max(largest, plan().bucket(index).flat.count());
  return std::min(round_up(largest, kLine), kPartElements);
}

int64_t Replicas::workspace_nbytes() const {
  if (!settings_.part()) return 0;
  const int64_t codes = settings_.sync_code != nullptr ? CodedMean::nbytes(*settings_.sync_code, largest_part(), settings_.count) : 0;
  const int64_t received = settings_.ring ? NeighbourMean::nbytes(largest_part(), settings_.count) : 0;
  return largest_part() * static_cast<int64_t>(sizeof(float)) + codes + received;
}

Status Replicas::open(std::shared_ptr<Group> within, std::shared_ptr<Group> across, const MemorySource &source) {
  within_ = std::move(within);
  across_ = std::move(across);
  meet();
  if (!settings_.part()) return {};
  ZERO_TRY(Arena::create_private(source, ZERO_MEMORY_WORKSPACE, largest_part() * static_cast<int64_t>(sizeof(float)), &memory_));
  changes_ = reinterpret_cast<float *>(memory_.data());
  if (settings_.ring) return neighbours_.open(largest_part(), *across_, source);
  if (settings_.sync_code == nullptr) return {};
  for (int64_t index = 0; index < plan().bucket_count(); ++index)
    full_lines_.push_back(plan().shared_lines(index, settings_.sync_code->fills));
  return coded_.open(*settings_.sync_code, largest_part(), across_->size(), source);
}

void Replicas::close() {
  memory_.release();
  coded_.close();
  neighbours_.close();
  full_lines_.clear();
  within_.reset();
  across_.reset();
}

Range Replicas::updated(int64_t bucket) const {
  const PlannedBucket &planned = plan().bucket(bucket);
  return all_ ? Range{0, planned.flat.count()} : planned.own;
}

float *Replicas::floats(int32_t slot, const Part &part) const {
  const Slot *found = slots().find(slot);
  if (found == nullptr || !slots().place(*found, part.bucket).kept) return nullptr;
  return reinterpret_cast<float *>(slots().place(*found, part.bucket).at(part.range.begin));
}

/// In fp32: masters, parameters with their remainders, or parameters.
void Replicas::read_values(const Part &part, float *out) const {
  const int64_t count = part.range.count();
  const std::byte *param = slots().place(slots().param(), part.bucket).at(part.range.begin);
  const float *master = floats(ZERO_SLOT_MASTER, part);
  const bool remainder = master != nullptr && slots().place(*slots().find(ZERO_SLOT_MASTER), part.bucket).dtype == DType::u16;
  if (!remainder) return kernels_.copy(out, master != nullptr ? static_cast<const void *>(master) : param, DType::f32, count);
  const auto *lower = reinterpret_cast<const uint16_t *>(slots().place(*slots().find(ZERO_SLOT_MASTER), part.bucket).at(part.range.begin));
  kernels::active().join(out, reinterpret_cast<const uint16_t *>(param), lower, count);
}

/// Codes follow their masters tensor by tensor, later.
void Replicas::write_values(const Part &part, const float *values) const {
  const int64_t count = part.range.count();
  const SlotPlace &place = slots().place(slots().param(), part.bucket);
  std::byte *param = place.at(part.range.begin);
  const Slot *masters = slots().find(ZERO_SLOT_MASTER);
  const bool has_master = masters != nullptr && slots().place(*masters, part.bucket).kept;
  if (!has_master) return kernels_.copy(param, values, DType::f32, count);
  const SlotPlace &master = slots().place(*masters, part.bucket);
  if (master.dtype == DType::u16) {
    kernels::active().split(reinterpret_cast<uint16_t *>(param), reinterpret_cast<uint16_t *>(master.at(part.range.begin)), values, count);
    return;
  }
  kernels_.copy(master.at(part.range.begin), values, DType::f32, count);
  if (!layout_.format_in(plan().bucket(part.bucket)).coded()) kernels_.convert(param, place.dtype, values, DType::f32, count);
}

void Replicas::part() {
  if (differ_ || !settings_.part()) return;
  differ_ = true;
  if (std::exchange(anchored_, true)) return;
  for (const int64_t index : plan().order()) {
    const Part whole{index, updated(index)};
    if (!whole.range.empty()) read_values(whole, floats(ZERO_SLOT_ANCHOR, whole));
  }
}

Task Replicas::bring_together(Meeting meeting, bool codes, double *out_spread) {
  codes_ = codes;
  Squares squares;
  for (const int64_t index : plan().order()) ZERO_CO_AWAIT(bring_bucket(meeting, index, squares));
  ZERO_CO_AWAIT(measure(meeting, squares, out_spread));
  if (meeting == Meeting::all) differ_ = false;
  co_return kernels_.status();
}

/// Parts begin on lines, and the results do not depend on where they are cut.
Task Replicas::bring_bucket(Meeting meeting, int64_t bucket, Squares &squares) {
  const Range all = updated(bucket);
  for (int64_t begin = all.begin; begin < all.end; begin += kPartElements) {
    const Part part{bucket, {begin, std::min(all.end, begin + kPartElements)}};
    if (meeting == Meeting::neighbours) {
      ZERO_CO_AWAIT(average_with_neighbours(part, squares));
    } else {
      ZERO_CO_AWAIT(bring_part(part, squares));
    }
  }
  if (!layout_.format_in(plan().bucket(bucket)).coded()) co_return Status();
  for (const int64_t id : plan().bucket(bucket).params) {
    const Range range = tensors_.updated(id);
    if (!range.empty()) quantized_params_.agree(id, range, Lead::masters);
  }
  co_return Status();
}

/// The change of a replica is its anchor minus its parameters: the sign of a gradient.
void Replicas::read_changes(const Part &part, kernels::ExactSum &squares) const {
  const int64_t count = part.range.count();
  read_values(part, changes_);
  kernels_.scale(changes_, changes_, count, -1);
  kernels_.add(changes_, DType::f32, floats(ZERO_SLOT_ANCHOR, part), DType::f32, count, 1);
  kernels_.add_squares(changes_, DType::f32, count, squares);
}

Task Replicas::bring_part(const Part &part, Squares &squares) {
  const int64_t count = part.range.count();
  read_changes(part, squares.before);
  ZERO_CO_AWAIT(average_changes(part));
  kernels_.add_squares(changes_, DType::f32, count, squares.after);
  make_outer_step(part);
  float *average = floats(ZERO_SLOT_AVERAGE, part);
  if (average != nullptr) ZERO_CO_AWAIT(all_reduce(*across_, average, average, count, DType::f32, ReduceOp::avg));
  co_return Status();
}

/// Anchors stay, because replicas still have only these in common. Values are averaged, not
/// changes, so that replicas with the same values keep them.
Task Replicas::average_with_neighbours(const Part &part, Squares &squares) {
  read_changes(part, squares.before);
  read_values(part, changes_);
  ZERO_CO_AWAIT(neighbours_.run(*across_, changes_, part.range.count()));
  write_values(part, changes_);
  read_changes(part, squares.after);
  float *average = floats(ZERO_SLOT_AVERAGE, part);
  if (average != nullptr) ZERO_CO_AWAIT(neighbours_.run(*across_, average, part.range.count()));
  co_return Status();
}

/// Codes keep no residual, so rounding errors are not made good later.
Task Replicas::average_changes(const Part &part) {
  const int64_t count = part.range.count();
  if (!coded_.codes() || !codes_) co_return co_await all_reduce(*across_, changes_, changes_, count, DType::f32, ReduceOp::avg);
  const std::vector<uint8_t> &full = full_lines_[static_cast<size_t>(part.bucket)];
  const std::span<const uint8_t> lines(full.begin() + part.range.begin / kLine, full.begin() + (part.range.end + kLine - 1) / kLine);
  bool finite = true;  // parameters may be anything
  co_return co_await coded_.run(*across_, changes_, count, lines, static_cast<double>(across_->size()), &finite);
}

/// m <- mu m + d; anchor <- anchor - lr (d + mu m).
void Replicas::make_outer_step(const Part &part) const {
  const DefaultFloats floats_as_ever;
  const int64_t count = part.range.count();
  float *anchor = floats(ZERO_SLOT_ANCHOR, part);
  float *moment = floats(ZERO_SLOT_OUTER_MOMENT, part);
  kernels_.add(anchor, DType::f32, changes_, DType::f32, count, static_cast<float>(-outer_.lr));
  if (moment != nullptr) {
    kernels_.scale(moment, moment, count, static_cast<float>(outer_.momentum));
    kernels_.add(moment, DType::f32, changes_, DType::f32, count, 1);
    kernels_.add(anchor, DType::f32, moment, DType::f32, count, static_cast<float>(-outer_.lr * outer_.momentum));
  }
  write_values(part, anchor);
}

/// Sums of squares are exact, so that the result does not depend on how replicas are sharded.
Task Replicas::measure(Meeting meeting, const Squares &squares, double *out_spread) const {
  constexpr size_t kLimbs = kernels::ExactSum::kExported;
  std::vector<int64_t> limbs(2 * kLimbs);
  squares.before.export_limbs(limbs.data());
  squares.after.export_limbs(limbs.data() + kLimbs);
  std::vector<int64_t> sums = limbs;
  if (!all_ && within_->size() > 1) {
    ZERO_CO_AWAIT(all_reduce(*within_, limbs.data(), sums.data(), std::ssize(limbs), DType::i64, ReduceOp::sum));
  }
  const std::array<double, 2> norms = {std::sqrt(kernels::ExactSum::import_limbs(sums.data()).total()),
                                       std::sqrt(kernels::ExactSum::import_limbs(sums.data() + kLimbs).total())};
  std::vector<double> all(norms.size() * static_cast<size_t>(across_->size()));
  const Cuts cuts = even_cuts(std::ssize(all), across_->size());
  ZERO_CO_AWAIT(all_gather(*across_, norms.data(), all.data(), cuts, DType::f64));
  double before = 0;
  double after = 0;
  for (size_t at = 0; at < all.size(); at += norms.size()) {
    before += all[at];
    after += all[at + 1];
  }
  // All replicas have the same change.
  if (meeting == Meeting::all) after = norms[1] * static_cast<double>(across_->size());
  *out_spread = before > 0 ? after / before : 1;
  co_return Status();
}

int64_t Replicas::sent_to_neighbours_nbytes() const {
  int64_t count = 0;
  for (const int64_t index : plan().order()) {
    const Part whole{index, updated(index)};
    const bool average = !whole.range.empty() && floats(ZERO_SLOT_AVERAGE, whole) != nullptr;
    count += whole.range.count() * (average ? 2 : 1);
  }
  return NeighbourMean::neighbours(settings_.count) * count * static_cast<int64_t>(sizeof(float));
}

Task Replicas::take_first() {
  for (int64_t index = 0; index < plan().bucket_count(); ++index) {
    const Range range = updated(index);
    for (const int32_t number : {ZERO_SLOT_PARAM, ZERO_SLOT_PARAM_SCALE, ZERO_SLOT_MASTER, ZERO_SLOT_AVERAGE}) {
      const Slot *slot = slots().find(number);
      if (slot == nullptr || !slots().place(*slot, index).kept || range.empty()) continue;
      const SlotPlace &place = slots().place(*slot, index);
      ZERO_CO_AWAIT(broadcast(*across_, place.at(range.begin), place.entries(range.count()), place.dtype, 0));
    }
  }
  co_return Status();
}

Task Replicas::largest(int64_t *value) const {
  const int64_t mine = *value;
  co_return co_await all_reduce(*across_, &mine, value, 1, DType::i64, ReduceOp::max);
}

Status Replicas::set(int32_t key, double value) {
  ZERO_TRY(check_f64(key, value));
  ZERO_CHECK(settings_.part(), ZERO_E_UNSUPPORTED, "%s is no hyper-parameter of this optimizer: ZERO_KEY_SYNC_PERIOD is 1",
             find_key(key)->name);
  ZERO_CHECK(!settings_.ring || value == (key == ZERO_KEY_OUTER_LR ? 1 : 0), ZERO_E_UNSUPPORTED,
             "ZERO_KEY_NEIGHBOURS is ZERO_NEIGHBOURS_RING, so %s stays %s: an outer step needs the mean change of all replicas",
             find_key(key)->name, key == ZERO_KEY_OUTER_LR ? "1" : "0");
  ZERO_CHECK(key == ZERO_KEY_OUTER_LR || value == 0 || settings_.outer_momentum > 0, ZERO_E_STATE,
             "ZERO_KEY_OUTER_MOMENTUM was 0 when the optimizer was created, so it keeps no outer momentum; set it in the config");
  (key == ZERO_KEY_OUTER_LR ? outer_.lr : outer_.momentum) = value;
  return {};
}

Status Replicas::get(int32_t key, double *out) const {
  ZERO_CHECK(settings_.part(), ZERO_E_UNSUPPORTED, "%s is no hyper-parameter of this optimizer: ZERO_KEY_SYNC_PERIOD is 1",
             find_key(key)->name);
  *out = key == ZERO_KEY_OUTER_LR ? outer_.lr : outer_.momentum;
  return {};
}

std::string Replicas::outer_text() const {
  if (!settings_.part()) return "";
  return setting_text(ZERO_KEY_OUTER_LR, number_text(outer_.lr)) + "\n" +
         setting_text(ZERO_KEY_OUTER_MOMENTUM, number_text(outer_.momentum)) + "\n";
}

}  // namespace zero
