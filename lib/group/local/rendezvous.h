/// @file Rendezvous: ranks of one host meet by name, agree that they belong together, and hand one another a blob and a file descriptor.
/// Knows nothing of what these are for.
#pragma once

#include "core/status.h"
#include "core/task.h"
#include "group/local/rendezvous_socket.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace zero {

/// What one rank brings to a meeting.
struct Joiner {
  int64_t process = 0;          ///< set by the meeting
  bool same_process = false;    ///< set by the meeting: a thread of this process; then fd stays empty and the blob must suffice
  std::vector<std::byte> blob;  ///< at most kMaxBlobBytes
  OwnedFd fd;                   ///< may be empty
};

/// Polled while a rank waits; an error ends the meeting for this rank. May be empty.
using Watch = std::function<Status()>;

/// Meets the other ranks under `name`. `agree` must be equal on all of them. On success out has `size` entries, this rank's own is `mine`.
/// Whoever comes first leads the meeting; threads of one process and processes take the same path. Connections that do not speak the
/// protocol or come from another user are ignored; a rank that goes before all have met counts as missing and may come again. Errors:
/// ZERO_E_RENDEZVOUS names missing, doubled or disagreeing ranks; ZERO_E_SYSTEM; what `watch` says. Where ranks of a group meet, `names`
/// has their ranks there, which texts name instead, and ZERO_E_TIMEOUT says who is missing.
Task rendezvous(std::string name, int64_t rank, int64_t size, Joiner mine, uint64_t agree, int64_t deadline_ms, std::vector<Joiner> *out,
                Watch watch = {}, std::vector<int64_t> names = {});

}  // namespace zero
