/// @file Bringing replicas together. Stich, "Local SGD converges fast and communicates little",
/// 2019; the outer step is that of Douillard et al., "DiLoCo: Distributed low-communication
/// training of language models", 2023, algorithm 1. Fragments, delay and mix are those of Douillard
/// et al., "Streaming DiLoCo with overlapping communication", 2025, algorithm 2.
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

Status Replicas::lay_out() {
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
  whole_ = whole_fragment(plan(), all_);
  return cut_into_fragments(plan(), all_, settings_.fragments, &fragments_);
}

int64_t Replicas::largest_part() const {
  int64_t largest = 0;
  for (const int64_t index : plan().order()) largest = std::max(largest, plan().bucket(index).flat.count());
  return std::min(round_up(largest, kLine), kMostPartElements);
}

int64_t Replicas::largest_fragment() const {
  int64_t largest = 0;
  for (const Fragment &fragment : fragments_) largest = std::max(largest, fragment.element_count);
  return largest;
}

bool Replicas::averages(int64_t bucket) const {
  const std::vector<SlotFormat> &states = layout_.format_in(plan().bucket(bucket)).states;
  return std::any_of(states.begin(), states.end(), [](const SlotFormat &slot) { return slot.number == ZERO_SLOT_AVERAGE; });
}

/// Values that an exchange behind steps keeps at most: changes and averages of a fragment.
int64_t Replicas::most_exchanged() const {
  int64_t most = 0;
  for (const Fragment &fragment : fragments_) {
    int64_t count = 0;
    for (const Part &part : fragment.parts) count += part.range.count() * (averages(part.bucket) ? 2 : 1);
    most = std::max(most, count);
  }
  return settings_.delay > 0 ? most : 0;
}

int64_t Replicas::workspace_nbytes() const {
  if (!settings_.part()) return 0;
  const int64_t codes = settings_.sync_code != nullptr ? CodedMean::nbytes(*settings_.sync_code, largest_part(), settings_.count) : 0;
  const int64_t received = settings_.ring ? NeighbourMean::nbytes(largest_part(), settings_.count) : 0;
  return largest_part() * static_cast<int64_t>(sizeof(float)) + codes + received + DelayedExchange::nbytes(most_exchanged());
}

Status Replicas::open(const OptimizerGroups &groups, const MemorySource &source) {
  within_ = groups.gather();
  across_ = groups.across();
  meet();
  if (!settings_.part()) return {};
  ZERO_TRY(Arena::create_private(source, ZERO_MEMORY_WORKSPACE, largest_part() * static_cast<int64_t>(sizeof(float)), &memory_));
  changes_ = reinterpret_cast<float *>(memory_.data());
  if (settings_.ring) return neighbours_.open(largest_part(), *across_, source);
  const bool overlaps = groups.exchange() != nullptr && !across_->transport().capabilities().single_thread;
  if (settings_.delay > 0) ZERO_TRY(exchange_.open(overlaps ? groups.exchange() : across_, most_exchanged(), overlaps, source));
  if (settings_.sync_code == nullptr) return {};
  for (int64_t index = 0; index < plan().bucket_count(); ++index)
    full_lines_.push_back(plan().shared_lines(index, settings_.sync_code->fills));
  return coded_.open(*settings_.sync_code, largest_part(), across_->size(), source);
}

void Replicas::close() {
  exchange_.close();
  memory_.release();
  coded_.close();
  neighbours_.close();
  full_lines_.clear();
  whole_ = {};
  fragments_.clear();
  within_.reset();
  across_.reset();
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
  for (const Part &part : whole_.parts) read_values(part, floats(ZERO_SLOT_ANCHOR, part));
}

/// Codes follow their masters last. Replicas are together once all their values are results.
Task Replicas::bring_together(Meeting meeting, int64_t calls, double *out_spread) {
  Squares squares;
  codes_ = settings_.codes(calls);
  if (exchange_.under_way()) use_exchange(squares);
  const bool ring = settings_.ring && meeting == Meeting::turn;
  if (meeting == Meeting::all || settings_.delay == 0) {
    const Fragment &fragment = meeting == Meeting::all || settings_.fragments == 1 ? whole_ : fragments_[turn(calls)];
    squares = {};
    for (const Part &part : fragment.parts) {
      if (ring) {
        ZERO_CO_AWAIT(average_with_neighbours(part, squares));
      } else {
        ZERO_CO_AWAIT(bring_part(part, meeting == Meeting::all ? 0 : outer_.mix, squares));
      }
    }
    agree_codes(fragment);
  }
  ZERO_CO_AWAIT(measure(squares, !ring, out_spread));
  if (meeting == Meeting::all || (!ring && settings_.fragments == 1 && outer_.mix == 0)) differ_ = false;
  co_return kernels_.status();
}

void Replicas::agree_codes(const Fragment &fragment) const {
  for (const int64_t id : fragment.params) {
    if (tensors_.coded(id) && !tensors_.updated(id).empty()) quantized_params_.agree(id, tensors_.updated(id), Lead::masters);
  }
}

/// The change of a replica is its anchor minus its parameters: the sign of a gradient.
void Replicas::read_changes(const Part &part, float *out, kernels::ExactSum &squares) const {
  const int64_t count = part.range.count();
  read_values(part, out);
  kernels_.scale(out, out, count, -1);
  kernels_.add(out, DType::f32, floats(ZERO_SLOT_ANCHOR, part), DType::f32, count, 1);
  kernels_.add_squares(out, DType::f32, count, squares);
}

/// Results do not depend on where parts are cut.
Task Replicas::bring_part(const Part &part, double mix, Squares &squares) {
  const int64_t count = part.range.count();
  read_changes(part, changes_, squares.before);
  ZERO_CO_AWAIT(average_changes(*across_, part, changes_));
  kernels_.add_squares(changes_, DType::f32, count, squares.after);
  make_outer_step(part, changes_, mix);
  float *average = floats(ZERO_SLOT_AVERAGE, part);
  if (average == nullptr) co_return Status();
  ZERO_CO_AWAIT(all_reduce(*across_, average, changes_, count, DType::f32, ReduceOp::avg));
  mix_into(average, changes_, count, mix);
  co_return Status();
}

/// Anchors stay, because replicas still have only these in common. Values are averaged, not
/// changes, so that replicas with the same values keep them.
Task Replicas::average_with_neighbours(const Part &part, Squares &squares) {
  read_changes(part, changes_, squares.before);
  read_values(part, changes_);
  ZERO_CO_AWAIT(neighbours_.run(*across_, changes_, part.range.count()));
  write_values(part, changes_);
  read_changes(part, changes_, squares.after);
  float *average = floats(ZERO_SLOT_AVERAGE, part);
  if (average != nullptr) ZERO_CO_AWAIT(neighbours_.run(*across_, average, part.range.count()));
  co_return Status();
}

/// Codes keep no residual, so rounding errors are not made good later.
Task Replicas::average_changes(Group &across, const Part &part, float *changes) {
  const int64_t count = part.range.count();
  if (!coded_.codes() || !codes_) co_return co_await all_reduce(across, changes, changes, count, DType::f32, ReduceOp::avg);
  const std::vector<uint8_t> &full = full_lines_[static_cast<size_t>(part.bucket)];
  const std::span<const uint8_t> lines(full.begin() + part.range.begin / kLine, full.begin() + (part.range.end + kLine - 1) / kLine);
  bool finite = true;  // parameters may be anything
  co_return co_await coded_.run(across, changes, count, lines, static_cast<double>(across.size()), &finite);
}

/// The values of the step are kept, because later steps change parameters.
Task Replicas::end_step(int64_t calls) {
  if (!is_turn(calls)) {
    exchange_.count_step();
    co_return Status();
  }
  const Fragment &fragment = fragments_[turn(calls)];
  float *at = exchange_.values();
  codes_ = settings_.codes(calls);
  exchanged_ = {};
  for (const Part &part : fragment.parts) {
    read_changes(part, at, exchanged_.before);
    at += part.range.count();
    const float *average = floats(ZERO_SLOT_AVERAGE, part);
    if (average == nullptr) continue;
    kernels_.copy(at, average, DType::f32, part.range.count());
    at += part.range.count();
  }
  differ_ = true;
  co_return co_await exchange_.begin(turn(calls), settings_.delay, exchange(fragment));
}

/// Runs on the progress thread, or on a waiting caller's.
Task Replicas::exchange(const Fragment &fragment) {
  float *at = exchange_.values();
  for (const Part &part : fragment.parts) {
    const int64_t count = part.range.count();
    ZERO_CO_AWAIT(average_changes(exchange_.group(), part, at));
    at += count;
    if (!averages(part.bucket)) continue;
    ZERO_CO_AWAIT(all_reduce(exchange_.group(), at, at, count, DType::f32, ReduceOp::avg));
    at += count;
  }
  co_return Status();
}

/// Anchors and momentum change only here, so that nothing that is kept changes behind steps.
void Replicas::use_exchange(Squares &squares) {
  const Fragment &fragment = fragments_[exchange_.fragment()];
  const float *at = exchange_.values();
  squares.before = exchanged_.before;
  for (const Part &part : fragment.parts) {
    const int64_t count = part.range.count();
    kernels_.add_squares(at, DType::f32, count, squares.after);
    make_outer_step(part, at, outer_.mix);
    at += count;
    float *average = floats(ZERO_SLOT_AVERAGE, part);
    if (average == nullptr) continue;
    mix_into(average, at, count, outer_.mix);
    at += count;
  }
  agree_codes(fragment);
  exchange_.end();
}

Task Replicas::drop_exchange() {
  ZERO_CO_AWAIT(exchange_.wait());
  exchange_.end();
  co_return Status();
}

/// m <- mu m + d; anchor <- anchor - lr (d + mu m); W <- mix W + (1 - mix) anchor.
void Replicas::make_outer_step(const Part &part, const float *changes, double mix) const {
  const DefaultFloats floats_as_ever;
  const int64_t count = part.range.count();
  float *anchor = floats(ZERO_SLOT_ANCHOR, part);
  float *moment = floats(ZERO_SLOT_OUTER_MOMENT, part);
  kernels_.add(anchor, DType::f32, changes, DType::f32, count, static_cast<float>(-outer_.lr));
  if (moment != nullptr) {
    kernels_.scale(moment, moment, count, static_cast<float>(outer_.momentum));
    kernels_.add(moment, DType::f32, changes, DType::f32, count, 1);
    kernels_.add(anchor, DType::f32, moment, DType::f32, count, static_cast<float>(-outer_.lr * outer_.momentum));
  }
  if (mix == 0) return write_values(part, anchor);
  read_values(part, changes_);
  mix_into(changes_, anchor, count, mix);
  write_values(part, changes_);
}

/// Without a mix, values that are not finite do not stay.
void Replicas::mix_into(float *values, const float *results, int64_t count, double mix) const {
  if (mix == 0) return kernels_.copy(values, results, DType::f32, count);
  kernels_.scale(values, values, count, static_cast<float>(mix));
  kernels_.add(values, DType::f32, results, DType::f32, count, static_cast<float>(1 - mix));
}

/// `alike`: all replicas have the same change. Sums of squares are exact, so that the result does
/// not depend on how replicas are sharded.
Task Replicas::measure(const Squares &squares, bool alike, double *out_spread) const {
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
  if (alike) after = norms[1] * static_cast<double>(across_->size());
  *out_spread = before > 0 ? after / before : 1;
  co_return Status();
}

int64_t Replicas::sent_to_neighbours_nbytes() const {
  int64_t count = 0;
  for (const int64_t index : plan().order()) {
    const Part whole{index, updated_range(plan().bucket(index), all_)};
    const bool average = !whole.range.empty() && floats(ZERO_SLOT_AVERAGE, whole) != nullptr;
    count += whole.range.count() * (average ? 2 : 1);
  }
  return NeighbourMean::neighbours(settings_.count) * count * static_cast<int64_t>(sizeof(float));
}

Task Replicas::take_first() {
  for (int64_t index = 0; index < plan().bucket_count(); ++index) {
    const Range range = updated_range(plan().bucket(index), all_);
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

double Replicas::Outer::*Replicas::field_of(int32_t key) {
  return key == ZERO_KEY_OUTER_LR ? &Outer::lr : key == ZERO_KEY_OUTER_MOMENTUM ? &Outer::momentum : &Outer::mix;
}

Status Replicas::set(int32_t key, double value) {
  ZERO_TRY(check_f64(key, value));
  ZERO_CHECK(settings_.part(), ZERO_E_UNSUPPORTED, "%s is no hyper-parameter of this optimizer: ZERO_KEY_SYNC_PERIOD is 1",
             find_key(key)->name);
  ZERO_CHECK(!settings_.ring || value == (key == ZERO_KEY_OUTER_LR ? 1 : 0), ZERO_E_UNSUPPORTED,
             "ZERO_KEY_NEIGHBOURS is ZERO_NEIGHBOURS_RING, so %s stays %s: an outer step needs the mean change of all replicas",
             find_key(key)->name, key == ZERO_KEY_OUTER_LR ? "1" : "0");
  ZERO_CHECK(key != ZERO_KEY_OUTER_MOMENTUM || value == 0 || settings_.outer_momentum > 0, ZERO_E_STATE,
             "ZERO_KEY_OUTER_MOMENTUM was 0 when the optimizer was created, so it keeps no outer momentum; set it in the config");
  outer_.*field_of(key) = value;
  return {};
}

Status Replicas::get(int32_t key, double *out) const {
  ZERO_CHECK(settings_.part(), ZERO_E_UNSUPPORTED, "%s is no hyper-parameter of this optimizer: ZERO_KEY_SYNC_PERIOD is 1",
             find_key(key)->name);
  *out = outer_.*field_of(key);
  return {};
}

std::string Replicas::outer_text() const {
  if (!settings_.part()) return "";
  std::string text;
  for (const int32_t key : {ZERO_KEY_OUTER_LR, ZERO_KEY_OUTER_MOMENTUM, ZERO_KEY_SYNC_MIX})
    text += setting_text(key, number_text(outer_.*field_of(key))) + "\n";
  return text;
}

}  // namespace zero
