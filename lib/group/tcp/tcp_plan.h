/// @file TcpPlan: the terms of a rank in a meeting over TCP, with values that follow from them.
/// Knows nothing of how ranks meet.
#pragma once

#include "core/clock.h"
#include "group/tcp/tcp_bootstrap_message.h"
#include "group/tcp/tcp_id.h"
#include "group/tcp/tcp_meeting.h"

namespace zero {

struct TcpPlan {
  TcpTerms terms;
  TcpPlace place;
  TcpRank self;
  Deadline deadline;
  /// Rank 0: the name of the meeting; other ranks: identifies all attempts of one call.
  uint64_t random = 0;
};

}  // namespace zero
