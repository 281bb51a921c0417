/// @file Report: statistics of an optimizer, and the text that describes its choices and their
/// reasons.
#include "engine/optimizer/report.h"

#include "core/number_text.h"
#include "engine/gradients/low_rank_sums.h"
#include "kernels/coded_lines.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <iterator>
#include <vector>

namespace zero {
namespace {

[[gnu::format(printf, 2, 3)]] void add_line(std::string &text, const char *format, ...) {
  char line[512];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  text += line;
  text += '\n';
}

std::string code_text(const kernels::Coder *code, int64_t low_rank = 0) {
  if (low_rank > 0) return "factors of rank " + std::to_string(low_rank) + " for large matrices and fp32 for all else";
  if (code == nullptr) return "fp32";
  return code->text + (code->kept > 0 ? ", " + std::to_string(code->kept) + " of each " + std::to_string(kLine) : "");
}

}  // namespace

Status OptimizerReport::memory(int32_t category, MemoryUse *out) const {
  ZERO_CHECK(Accounting::valid(category), ZERO_E_INVALID_ARGUMENT, "category is %d, but must be a zero_memory (0 .. %d)", category,
             Accounting::kCategories - 1);
  *out = {parts_.memory->accounting.now(category), parts_.memory->accounting.peak(category), 0, 0};
  if (!parts_.guard.sealed()) return {};
  out->formula_nbytes = formula_nbytes(category);
  out->constant_nbytes = constant_nbytes(category);
  return {};
}

int64_t OptimizerReport::formula_nbytes(int32_t category) const {
  if (category == ZERO_MEMORY_ACCUMULATED) return parts_.gradients.accumulated_nbytes();
  if (category == ZERO_MEMORY_MODULE_BUFFER) return parts_.registry.module_buffers.formula_nbytes();
  const int64_t grads = (parts_.settings.delays_grads ? 2 : 1) * parts_.state.slots.formula_nbytes(ZERO_MEMORY_GRAD);
  if (category == ZERO_MEMORY_GRAD) return grads;
  if (category != ZERO_MEMORY_TOTAL) return parts_.state.slots.formula_nbytes(category);
  return parts_.state.slots.formula_nbytes(ZERO_MEMORY_PARAM) + grads + parts_.state.slots.formula_nbytes(ZERO_MEMORY_STATE) +
         parts_.gradients.accumulated_nbytes() + parts_.registry.module_buffers.formula_nbytes();
}

/// The largest tensor that is gathered or decoded when it is acquired, and those that are gathered
/// ahead.
int64_t OptimizerReport::gathered_nbytes() const {
  int64_t largest = 0;
  int64_t all = 0;
  for (int64_t id = 0; id < parts_.registry.params.size(); ++id) {
    if (!parts_.state.tensors.buffered(id) || parts_.registry.params[id].tied()) continue;
    const int64_t nbytes = Arena::private_nbytes(parts_.registry.params[id].count * dtype_nbytes(parts_.registry.params[id].dtype));
    largest = std::max(largest, nbytes);
    if (parts_.state.tensors.sharded(id)) all += nbytes;
  }
  return largest + std::min(all, parts_.gathers.most_ahead_nbytes());
}

/// Arenas do not change after seal, so what they hold beyond the formula is padding.
int64_t OptimizerReport::constant_nbytes(int32_t category) const {
  switch (category) {
    case ZERO_MEMORY_PARAM:
    case ZERO_MEMORY_GRAD:
    case ZERO_MEMORY_STATE:
    case ZERO_MEMORY_STAGING:
    case ZERO_MEMORY_MODULE_BUFFER:
    case ZERO_MEMORY_WORKSPACE:
      return parts_.memory->accounting.now(category) - formula_nbytes(category);
    case ZERO_MEMORY_GRAD_POOL:
      return parts_.gradients.schedule().pool().first_nbytes();
    case ZERO_MEMORY_PARAM_POOL:
      return gathered_nbytes();
    case ZERO_MEMORY_TOTAL: {
      int64_t sum = 0;
      for (int32_t part = ZERO_MEMORY_PARAM; part < Accounting::kCategories; ++part) sum += constant_nbytes(part);
      return sum;
    }
    default:
      return 0;
  }
}

Traffic OptimizerReport::traffic(OperationKind kind) const {
  Traffic sum;
  if (!parts_.guard.sealed()) return sum;
  for (const Group *group : parts_.groups.all()) {
    if (group == nullptr) continue;
    const Traffic part = group->traffic(kind);
    sum.call_count += part.call_count;
    sum.sent_elements += part.sent_elements;
    sum.sent_nbytes += part.sent_nbytes;
  }
  return sum;
}

std::string OptimizerReport::describe() const {
  std::string text;
  add_line(text, "optimizer: algorithm %s, stage %lld, rank %lld of %lld over %s", parts_.settings.algorithm_name(),
           lld(parts_.settings.stage), lld(parts_.group->rank()), lld(parts_.group->size()),
           parts_.group->transport().capabilities().name.c_str());
  add_line(text, "kernels: target %s, %s (ZERO_KEY_THREADS, ZERO_THREADS, or the cores that it may use / ranks that may use them)",
           kernels::active().target, count_text(parts_.memory->threads, "thread").c_str());
  if (parts_.settings.on_device) {
    add_line(text, "device: %lld (%s), which keeps parameters, gradients and states and updates them", lld(parts_.memory->device->index()),
             parts_.memory->device->name().c_str());
  } else if (parts_.memory->device != nullptr) {
    add_line(text, "device: %lld (%s), gradients and parameters pass through %lld bytes of pinned memory",
             lld(parts_.memory->device->index()), parts_.memory->device->name().c_str(), lld(Device::staging_nbytes()));
  }
  if (!parts_.guard.sealed()) {
    add_line(text, "not sealed yet");
    return text;
  }
  describe_plan(text);
  describe_memory(text);
  return text;
}

Status OptimizerReport::trace(std::string *out) const {
  ZERO_CHECK(parts_.guard.sealed(), ZERO_E_STATE, "zero_stats_optimizer_trace comes after zero_optimizer_seal");
  ZERO_CHECK(parts_.trace.on(), ZERO_E_STATE, "the optimizer keeps no trace; set ZERO_KEY_TRACE_EVENTS in its config");
  *out =
      parts_.trace.text(parts_.group->rank(), [this](int64_t id) -> const std::string & { return parts_.registry.params[id].given_name; });
  return {};
}

void OptimizerReport::describe_plan(std::string &text) const {
  add_line(text, "parameters: %s, %s; this rank owns %lld",
           count_text(static_cast<int64_t>(parts_.state.plan.params().size()), "tensor").c_str(),
           count_text(parts_.state.plan.element_count(), "element").c_str(), lld(parts_.state.plan.own_element_count()));
  add_line(text, "buckets: %lld of at most %lld bytes%s (a larger tensor is one alone), in %s", lld(parts_.state.plan.bucket_count()),
           lld(parts_.state.layout.bucket_nbytes()), parts_.settings.buckets.nbytes == 0 ? ", chosen by the memory formula" : "",
           count_text(static_cast<int64_t>(parts_.state.layout.formats().size()), "flat space").c_str());
  const auto by_rows = [](const PlannedBucket &bucket) { return bucket.rows.count > 0; };
  if (parts_.state.plan.any_rows() && !parts_.alone()) {
    add_line(text, "by rows: gradients of %s; rows that no rank gives do not travel",
             count_text(std::count_if(parts_.state.plan.buckets().begin(), parts_.state.plan.buckets().end(), by_rows), "tensor").c_str());
  }
  if (parts_.state.plan.any_rows() && parts_.settings.leaves_unfilled) {
    const bool gathers = !parts_.alone() && !parts_.one_copy() && (parts_.settings.stage == 1 || parts_.settings.stage == 2);
    add_line(text, "untouched: rows that no rank gives in a step keep parameter, states and average%s",
             gathers ? "; zero_optimizer_step gathers the others only" : "");
  }
  if (parts_.settings.stage == 3 && parts_.settings.overlaps_in(*parts_.groups.gather())) {
    add_line(text, "gathered ahead: at most %lld bytes%s", lld(parts_.gathers.most_ahead_nbytes()),
             parts_.settings.gathers.ahead_follows ? ", chosen by the memory formula" : "");
  }
  for (size_t space = 0; space < parts_.state.layout.formats().size(); ++space) describe_space(text, space);
  describe_replicas(text);
  if (const std::string way = parts_.gathers.strategy().text(parts_.ranks()); !way.empty()) add_line(text, "%s", way.c_str());
  add_line(text, "step: %s", parts_.paths.text().c_str());
  const char *overlap = "off: ZERO_KEY_OVERLAP is 0; reductions advance inside calls";
  if (parts_.alone()) {
    overlap = "none: a world of one has nothing to reduce";
  } else if (parts_.settings.overlap && parts_.groups.reduce()->transport().capabilities().single_thread) {
    overlap = "off: the transport may be used from one thread only (for MPI: MPI_THREAD_MULTIPLE was not granted)";
  } else if (parts_.settings.overlap) {
    overlap = parts_.gradients.reductions().overlapping() ? "on: the progress thread reduces while the caller works"
                                                          : "asked for; the progress thread starts with the first complete bucket";
  }
  add_line(text, "overlap %s", overlap);
  if (!parts_.settings.delays_grads) return;
  const char *where = "within the step: nothing overlaps";
  if (parts_.settings.overlaps_in(*parts_.groups.reduce())) where = "behind the caller's next pass";
  if (parts_.alone()) where = "nowhere: this is a world of one";
  add_line(text, "delay: a step applies the gradients given before the step before it; they are reduced %s", where);
}

void OptimizerReport::describe_replicas(std::string &text) const {
  const ReplicaSettings &replicas = parts_.settings.replicas;
  if (!parts_.settings.strategy.empty()) add_line(text, "strategy %s", parts_.settings.strategy.c_str());
  if (!replicas.any()) return;
  add_line(text, "replicas: %lld of %s each; this rank is number %lld of replica %lld", lld(replicas.count),
           count_text(parts_.ranks(), "rank").c_str(), lld(parts_.rank()), lld(parts_.group->rank() / parts_.ranks()));
  if (replicas.sum_gradients()) {
    add_line(text, "gradients of %s are summed over all replicas, in %s; this rank sends at most %lld bytes",
             replicas.part() ? ("the first " + count_text(replicas.after, "step")).c_str() : "every step",
             code_text(replicas.grad_code, replicas.low_rank).c_str(), lld(sent_for_gradients_nbytes()));
  }
  if (replicas.codes_grads() && (replicas.residual || replicas.flush_period > 0)) {
    add_line(text, "rounding errors of coded gradients are %s; gradients are sent in full %s",
             replicas.residual ? "added to the gradients of the next step" : "dropped",
             replicas.flush_period > 0 ? ("once in " + count_text(replicas.flush_period, "step")).c_str() : "in no step");
  }
  if (replicas.code_momentum > 0) {
    add_line(text, "gradients get momentum %s before they are coded, which ends for each value when it is sent",
             number_text(replicas.code_momentum).c_str());
  }
  if (replicas.code_freeze) {
    const MomentFreeze &freeze = parts_.state.moment_freeze;
    const std::string stays = "stays as " + count_text(parts_.run.known().applied_count - freeze.missed(), "update") + " left it";
    add_line(text, "1-bit Adam: coded gradients carry the first moment; the second moment %s",
             freeze.stays() ? stays.c_str() : "stays from the step on in which codes begin");
    add_line(text, "  elements whose second moment is at most %s of the mean of their line then keep still",
             number_text(MomentFreeze::kStill).c_str());
  }
  if (replicas.code_after > 0)
    add_line(text, "codes begin after %s; all travels in full before", count_text(replicas.code_after, "step").c_str());
  if (!replicas.part()) return;
  if (replicas.ring) {
    add_line(text, "rounds of replicas with neighbours in a ring: %safter every %s, in %s; this rank sends %lld bytes each time",
             replicas.after > 0 ? "then " : "", count_text(replicas.period, "step").c_str(), code_text(replicas.sync_code).c_str(),
             lld(parts_.replicas.sent_to_neighbours_nbytes()));
    return;
  }
  add_line(text,
           "synchronisation of replicas: %safter every %s, in %s, with outer rate %s and momentum %s; this rank sends about %lld "
           "bytes %s",
           replicas.after > 0 ? "then " : "", count_text(replicas.period, "step").c_str(), code_text(replicas.sync_code).c_str(),
           number_text(parts_.replicas.outer().lr).c_str(), number_text(parts_.replicas.outer().momentum).c_str(),
           lld(sent_across_nbytes(replicas.sync_code, parts_.updates_all())), replicas.fragments > 1 ? "per period" : "each time");
  if (replicas.fragments > 1) {
    add_line(text, "fragments: %lld of whole tensors, the largest of %s; one after every %s, in turn", lld(replicas.fragments),
             count_text(parts_.replicas.largest_fragment(), "element").c_str(),
             count_text(replicas.period / replicas.fragments, "step").c_str());
  }
  if (replicas.delay > 0) {
    add_line(text, "delay: results are used %s after their values; exchanges %s", count_text(replicas.delay, "step").c_str(),
             parts_.replicas.overlaps() ? "go on behind these steps" : "are made at once, because nothing overlaps");
  }
  if (parts_.replicas.outer().mix > 0)
    add_line(text, "mix: results have the weight %s, own values %s", number_text(1 - parts_.replicas.outer().mix).c_str(),
             number_text(parts_.replicas.outer().mix).c_str());
}

int64_t OptimizerReport::sent_for_gradients_nbytes() const {
  const ReplicaSettings &replicas = parts_.settings.replicas;
  if (replicas.low_rank == 0) return sent_across_nbytes(replicas.grad_code, false);
  const int64_t count = LowRankSums::given_count(parts_.state.plan, replicas.low_rank);
  return 2 * (replicas.count - 1) * count * dtype_nbytes(DType::f32) / replicas.count;
}

/// For one sum over all replicas, both ways. `all`: of everything, not only of this rank's cuts.
int64_t OptimizerReport::sent_across_nbytes(const kernels::Coder *code, bool all) const {
  int64_t nbytes = 0;
  for (const int64_t index : parts_.state.plan.order()) {
    const Range range = all ? Range{0, parts_.state.plan.bucket(index).flat.count()} : parts_.state.plan.bucket(index).own;
    const std::vector<uint8_t> full = parts_.state.plan.shared_lines(index, code != nullptr && code->fills);
    const int64_t first = range.begin / kLine;
    const int64_t last = (range.end + kLine - 1) / kLine;
    if (range.empty()) continue;
    nbytes += code != nullptr ? kernels::coded_nbytes(*code, last - first, std::count(full.begin() + first, full.begin() + last, 1))
                              : range.count() * dtype_nbytes(DType::f32);
  }
  return 2 * (parts_.settings.replicas.count - 1) * nbytes / parts_.settings.replicas.count;
}

void OptimizerReport::describe_space(std::string &text, size_t space) const {
  const Format &format = parts_.state.layout.formats()[space];
  std::string slots = slot_name(ZERO_SLOT_PARAM) + " " + dtype_name(format.param) +
                      (format.trains ? ", " + slot_name(ZERO_SLOT_GRAD) + " " + dtype_name(format.grad) : "");
  int64_t nbytes = dtype_nbytes(format.param) + (format.trains ? dtype_nbytes(format.grad) : 0);
  int64_t scales_nbytes = format.coded() ? dtype_nbytes(DType::f32) : 0;
  for (const SlotFormat &slot : format.states) {
    slots += ", " + slot_name(slot.number) + " " + dtype_name(slot.dtype) + (slot.per > 1 ? " per line" : "");
    (slot.per > 1 ? scales_nbytes : nbytes) += dtype_nbytes(slot.dtype);
  }
  if (format.counts_updates) slots += ", " + slot_name(ZERO_SLOT_UPDATE_COUNT) + " " + dtype_name(DType::i64) + " per tensor";
  add_line(text, "  flat space %zu: %s%s%s%s%s; %lld bytes per element, %lld bytes per line of %lld elements", space,
           format.algorithm != nullptr ? format.algorithm->name
           : format.trains             ? "custom"
                                       : "frozen",
           format.kept_whole ? ", kept whole on every rank" : "", format.replicated ? ", replicated in the model group" : "",
           format.whole_tensors() ? ", tensors whole on one rank: " : ": ", slots.c_str(), lld(nbytes), lld(scales_nbytes), lld(kLine));
}

void OptimizerReport::describe_memory(std::string &text) const {
  static constexpr const char *kFormulas[] = {"p + g + s", "p + g + s/N", "p + (g + s)/N", "(p + g + s)/N", "p/R + (g + s)/N"};
  const bool copied = parts_.groups.copies() != nullptr;
  const int64_t row = parts_.alone() ? 0 : copied ? 4 : parts_.settings.stage;
  add_line(text,
           "memory: N ranks%s%s, bytes of parameters p%s, gradients g%s, states s: %s per rank, here %lld + %lld (padding, pools, staging)",
           parts_.settings.replicas.any() ? " of a replica" : "", copied ? ", R of them (ZERO_KEY_PARAM_RANKS) for all parameters" : "",
           parts_.one_copy() ? " (on rank 0 only)" : "", parts_.settings.delays_grads ? " (two of them: ZERO_KEY_GRAD_DELAY)" : "",
           kFormulas[row], lld(formula_nbytes(ZERO_MEMORY_TOTAL)), lld(constant_nbytes(ZERO_MEMORY_TOTAL)));
  static constexpr const char *kNames[] = {"total",   "param",  "grad",        "state",         "grad_pool", "param_pool",
                                           "staging", "buffer", "accumulated", "module_buffer", "workspace"};
  static_assert(std::size(kNames) == Accounting::kCategories);
  for (int32_t category = ZERO_MEMORY_PARAM; category < Accounting::kCategories; ++category) {
    if (category == ZERO_MEMORY_BUFFER) continue;
    add_line(text, "  %-13s now %lld, peak %lld, formula %lld, constant %lld", kNames[category],
             lld(parts_.memory->accounting.now(category)), lld(parts_.memory->accounting.peak(category)), lld(formula_nbytes(category)),
             lld(constant_nbytes(category)));
  }
}

}  // namespace zero
