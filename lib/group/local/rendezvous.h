/// @file Rendezvous: ranks of one host meet by name, agree that they belong together, and hand one another a blob and a file descriptor.
/// Knows nothing of what these are for.
#pragma once

#include "core/clock.h"
#include "core/mapping.h"
#include "core/status.h"
#include "core/task.h"
#include "group/local/rendezvous_socket.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
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

/// What a rank asks of a meeting.
struct MeetingTerms {
  std::string name;
  int64_t rank = 0;
  int64_t size = 1;
  uint64_t agree = 0;  ///< must be equal on all ranks
  int64_t deadline_ms = 0;
  std::function<Status()> watch = {};  ///< polled while the rank waits; an error ends the meeting for it. May be empty
  /// What a thread of this process brings, by its blob; nullptr: it is gone. Descriptors then travel only where they leave the process,
  /// as those of these mappings. Empty: each travels as its joiner's fd.
  std::function<std::shared_ptr<const Mapping>(std::span<const std::byte> blob)> lend = {};
  std::vector<int64_t> names = {};     ///< of the ranks, in texts, where ranks of a group meet; empty: they meet by a name of the caller's
  Deadline deadline = Deadline::after_ms(deadline_ms);

  long long name_of(int64_t of) const { return names.empty() ? of : names[static_cast<size_t>(of)]; }
  int32_t late_code() const { return names.empty() ? ZERO_E_RENDEZVOUS : ZERO_E_TIMEOUT; }
  std::string purpose() const { return names.empty() ? "as \"" + name + "\"" : "to share memory or make a group"; }
  /// What goes along with a joiner of this process to another one. *out_held keeps it open.
  int descriptor_of(const Joiner &joiner, std::shared_ptr<const Mapping> *out_held) const {
    if (lend == nullptr) return joiner.fd.get();
    *out_held = lend(joiner.blob);
    return *out_held != nullptr ? (*out_held)->fd() : -1;
  }
  const char *advice() const { return names.empty() ? ". Start all ranks with the same name, or raise ZERO_KEY_RENDEZVOUS_MS" : ""; }
};

/// Meets the other ranks. On success out has one entry per rank, this rank's own is `mine`. Whoever comes first leads the meeting; threads
/// of one process and processes take the same path. Connections that do not speak the protocol or come from another user are ignored; a
/// rank that goes before all have met counts as missing and may come again. Errors: ZERO_E_RENDEZVOUS, or ZERO_E_TIMEOUT where ranks of a
/// group meet, names missing, doubled or disagreeing ranks; ZERO_E_SYSTEM; what terms.watch says.
Task rendezvous(MeetingTerms terms, Joiner mine, std::vector<Joiner> *out);

/// Ends a meeting that this rank cannot come to: those who have come, or come within a moment, are told `cause` instead of waiting for it.
/// Where even that fails they wait. Never an error.
Task call_off(MeetingTerms terms, Status cause);

}  // namespace zero
