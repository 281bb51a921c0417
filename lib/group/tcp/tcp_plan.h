/// @file What a rank of a meeting over TCP goes by: its terms with what follows from them. Knows nothing of how ranks meet.
#pragma once

#include "core/clock.h"
#include "group/tcp/tcp_id.h"
#include "group/tcp/tcp_meeting.h"
#include "group/tcp/tcp_bootstrap_message.h"

namespace zero {

struct TcpPlan {
  TcpTerms terms;
  TcpPlace place;
  TcpRank self;
  Deadline deadline;
  uint64_t random = 0;  ///< names the meeting of rank 0, and each other rank as long as it comes to one
};

}  // namespace zero
