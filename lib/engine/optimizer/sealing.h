/// @file Sealing: from what was registered to a plan, memory and groups that all ranks agree on,
/// and the way back.
#pragma once

#include "core/task.h"
#include "engine/optimizer/memory_need.h"
#include "engine/optimizer/param_access.h"
#include "engine/optimizer/parts.h"
#include "engine/optimizer/step_flags_exchange.h"

#include <cstdint>
#include <string>
#include <vector>

namespace zero {

class Sealing {
 public:
  /// All arguments must outlive the object.
  Sealing(OptimizerParts &parts, ParamAccess &access, StepFlagsExchange &vote) : parts_(parts), access_(access), vote_(vote) {}

  Task seal();
  /// Gives everything back that seal made.
  void unseal();

 private:
  Status write_config_digest(std::string *out) const;
  Task agree_on_plan();
  Task name_replicas(int64_t *out);
  Task agree_on_model(Status mine, int64_t replicas);
  Task make_groups();
  Status allocate();
  Status open_memory();
  Task reach();
  Task share_memory();
  Status check_room_to_meet() const;
  NeedOptions needs() const;
  Task reach_devices(bool *out);
  std::vector<bool> counted_buckets() const;
  Status prepare();
  PathFacts path_facts() const;
  void plan_paths();

  OptimizerParts &parts_;
  ParamAccess &access_;
  StepFlagsExchange &vote_;
};

}  // namespace zero
