/// @file Lists the paths of steps, picks one, and describes them.
#include "engine/optimizer/step_path.h"

#include <algorithm>

namespace zero {

using Sum = StepPath::Sum;
using Publish = StepPath::Publish;
using Decide = StepPath::Decide;

void StepPaths::list(const PathFacts &facts) {
  facts_ = facts;
  paths_.clear();
  if (facts.alone) {
    paths_.push_back({Sum::none, Publish::none, facts.device_decides ? Decide::device : Decide::host});
  } else {
    if (facts.fuses) paths_.push_back({Sum::fused, Publish::direct, Decide::host});
    if (facts.writes) paths_.push_back({Sum::collective, Publish::direct, Decide::host});
    paths_.push_back({Sum::collective, facts.updates_all ? Publish::none : Publish::gather, Decide::host});
  }
  now_ = paths_.front();
}

void StepPaths::pick(bool whole, bool sums_fit) {
  now_ = *std::find_if(paths_.begin(), paths_.end() - 1, [&](const StepPath &path) {
    return (whole || path.publish != Publish::direct) && (sums_fit || path.sum != Sum::fused);
  });
}

std::string StepPaths::text_of(const StepPath &path) const {
  if (path.sum == Sum::none) return "a world of one: gradients are updated from where they were given, nothing is reduced";
  const bool direct = path.publish == Publish::direct;
  std::string text = path.sum == Sum::fused ? "one pass over all ranks' memory: sum" : "reduce-scatter";
  if (path.publish == Publish::none) text = "all-reduce";
  text += facts_.one_copy ? ", update the one copy of parameters" : ", update";
  if (path.publish == Publish::none && !facts_.one_copy) text += " everything on each rank";
  if (direct && !facts_.one_copy) text += facts_.updates_all ? ", write to all ranks, states too" : ", write to all ranks";
  if (path.publish == Publish::gather && !facts_.one_copy) text += ", all-gather";
  if (path.publish == Publish::gather && facts_.trails) text += " behind the step (param_acquire waits for its tensor)";
  return text;
}

std::string StepPaths::text() const {
  std::string text;
  for (const StepPath &path : paths_) {
    if (!text.empty()) text += path.publish == Publish::direct ? "; when sums might overflow: " : "; in reduce, apply and gather: ";
    text += text_of(path);
  }
  return text;
}

}  // namespace zero
