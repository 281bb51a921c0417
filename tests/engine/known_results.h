/// @file Trainings and buffer operations whose results are known without ranks, for groups over any transport.
/// Knows a Group, not its transport.
#pragma once

#include "group/group.h"
#include "tests/group/collective_cases.h"

#include <memory>

namespace zero::test {

/// Every buffer operation with every dtype, reduce operation and size; report->cases counts buffers.
void run_buffer_cases(const std::shared_ptr<Group> &group, Report *report);

/// Reduced gradients of weighted trainings in 16 bits, in all stages; report->cases counts trainings.
void run_weighted_trainings(const std::shared_ptr<Group> &group, Report *report);

/// `models` random models, each trained in several manners and all stages; report->cases counts trainings.
void run_known_trainings(const std::shared_ptr<Group> &group, int64_t models, Report *report);

/// Trainings whose parameters follow their masters by coded differences, against the rule; report->cases counts trainings.
void run_gather_codes(const std::shared_ptr<Group> &group, Report *report);

/// Trainings whose replicas send coded gradients, in all stages, buckets and shards, against threads of one process; report->cases counts
/// trainings. The subset that runs unless full_tests() is one in six.
void run_coded_gradients(const std::shared_ptr<Group> &group, Report *report);

/// Trainings by rows whose steps leave rows untouched, against a dense program; report->cases counts trainings.
void run_untouched_rows(const std::shared_ptr<Group> &group, Report *report);

/// Replicas of one and of two ranks whose fragments meet in turn, against the rule; report->cases counts trainings.
void run_fragments(const std::shared_ptr<Group> &group, Report *report);

}  // namespace zero::test
