/// @file Writing and comparing what ranks agree on. Hashes are compared first; texts travel only
/// when they differ.
#include "engine/optimizer/config_digest.h"

#include "core/hash.h"
#include "core/number_text.h"
#include "group/collectives.h"
#include "group/collectives/agreement.h"

#include <string_view>
#include <vector>

namespace zero {
namespace {

std::string_view next_line(std::string_view &text) {
  const size_t end = text.find('\n');
  const std::string_view line = text.substr(0, end);
  text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
  return line;
}

Status first_difference(const char *what, std::string_view first, std::string_view other, int64_t first_rank, int64_t other_rank) {
  for (;;) {
    const std::string_view a = next_line(first);
    const std::string_view b = next_line(other);
    if (a == b && !(first.empty() && other.empty())) continue;
    const auto shown = [](std::string_view line) { return line.empty() ? std::string("nothing in its place") : std::string(line); };
    return Status::error(ZERO_E_MISMATCH, "%s: rank %lld has %s, rank %lld has %s", what, lld(other_rank), shown(b).c_str(),
                         lld(first_rank), shown(a).c_str());
  }
}

/// Gathers every rank's text and names the first difference between rank 0 and the first rank that
/// differs from it.
Task name_difference(Group &group, const char *what, const std::string &mine, const std::vector<int64_t> &words) {
  Cuts cuts;
  int64_t end = 0;
  for (size_t i = 0; i < words.size(); i += 2) {
    cuts.push_back({end, end + words[i + 1]});
    end += words[i + 1];
  }
  std::string all(static_cast<size_t>(end), ' ');
  ZERO_CO_AWAIT(all_gather(group, mine.data(), all.data(), cuts, DType::u8));
  const auto text_of = [&](size_t rank) {
    return std::string_view(all).substr(static_cast<size_t>(cuts[rank].begin), static_cast<size_t>(cuts[rank].count()));
  };
  size_t other = 1;
  while (words[other * 2] == words[0]) ++other;
  const PeerHealth &peers = group.transport().peers();
  co_return first_difference(what, text_of(0), text_of(other), peers.name_of(0), peers.name_of(static_cast<int64_t>(other)));
}

std::string text_of_sets(std::span<const HyperSet> sets) {
  std::string text;
  for (size_t set = 0; set < sets.size(); ++set) text += sets[set].text(set);
  return text;
}

std::string text_of_ids(const char *call, std::span<const int64_t> ids) {
  std::string text = std::string("the order of ") + call;
  for (const int64_t id : ids) text += " " + std::to_string(id);
  return text + "\n";
}

}  // namespace

std::string config_digest(std::span<const HyperSet> sets, const Params &params, std::span<const int64_t> gather_order) {
  std::string text = text_of_sets(sets) + count_text(params.size(), "parameter") + "\n";
  for (int64_t id = 0; id < params.size(); ++id) text += "parameter " + std::to_string(id) + " " + params[id].text() + "\n";
  return text + text_of_ids("zero_optimizer_set_order", params.order()) + text_of_ids("zero_optimizer_set_gather_order", gather_order);
}

std::string run_text(std::span<const HyperSet> sets, const kernels::StepState *run) {
  std::string text = text_of_sets(sets);
  if (run == nullptr) return text;
  const auto add = [&text](int32_t key, const std::string &value) { text += setting_text(key, value) + "\n"; };
  add(ZERO_KEY_STEP_COUNT, std::to_string(run->applied_count));
  add(ZERO_KEY_SKIPPED_COUNT, std::to_string(run->skipped_count));
  add(ZERO_KEY_LOSS_SCALE, number_text(run->loss_scale.value));
  add(ZERO_KEY_GROWTH_COUNT, std::to_string(run->loss_scale.growth_count));
  add(ZERO_KEY_OVERFLOW_COUNT, std::to_string(run->loss_scale.overflow_count));
  return text;
}

Task compare_texts(Group &group, const char *what, const std::string &mine) {
  const int64_t words[2] = {static_cast<int64_t>(hash_of_text(mine)), static_cast<int64_t>(mine.size())};
  std::vector<int64_t> all(static_cast<size_t>(group.size()) * 2);
  Fingerprint fingerprint;
  fingerprint.kind = OperationKind::seal;
  ZERO_CO_AWAIT(all_gather_words(group, fingerprint, words, all));
  bool same = true;
  for (size_t i = 0; i < all.size(); i += 2) same = same && all[i] == all[0];
  if (same) co_return Status();
  Status difference = co_await name_difference(group, what, mine, all);
  group.fail(difference);
  co_return difference;
}

}  // namespace zero
