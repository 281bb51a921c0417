/// @file Rendezvous: ranks of one host meet by name, check that they belong together, and exchange
/// a blob and a file descriptor each. Knows nothing of their use.
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

/// The contribution of one rank to a meeting.
struct Joiner {
  int64_t process = 0;  ///< set by the meeting
  /// Set by the meeting: the rank is a thread of this process. Then fd stays empty, and the blob
  /// must suffice.
  bool same_process = false;
  std::vector<std::byte> blob;  ///< at most kMaxBlobBytes
  OwnedFd fd;                   ///< may be empty
};

/// The parameters of a rank for a meeting.
struct MeetingTerms {
  std::string name;
  int64_t rank = 0;
  int64_t size = 1;
  uint64_t agree = 0;  ///< must be equal on all ranks
  int64_t deadline_ms = 0;
  /// Polled while the rank waits; an error ends the meeting for this rank. May be empty.
  std::function<Status()> watch = {};
  /// Finds the mapping that a thread of this process contributes, by its blob; nullptr: it no
  /// longer exists. The descriptor of the mapping is then sent only to other processes. Empty: the
  /// joiner's fd is sent.
  std::function<std::shared_ptr<const Mapping>(std::span<const std::byte> blob)> lend = {};
  /// The numbers of ranks in error texts, if ranks of a group meet; empty: they meet by a name of
  /// the caller.
  std::vector<int64_t> names = {};
  Deadline deadline = Deadline::after_ms(deadline_ms);

  long long name_of(int64_t of) const { return names.empty() ? of : names[static_cast<size_t>(of)]; }
  int32_t late_code() const { return names.empty() ? ZERO_E_RENDEZVOUS : ZERO_E_TIMEOUT; }
  std::string purpose() const { return names.empty() ? "as \"" + name + "\"" : "to share memory or make a group"; }
  /// Returns the descriptor to send with a joiner of this process to another process. *out_held
  /// keeps it open.
  int descriptor_of(const Joiner &joiner, std::shared_ptr<const Mapping> *out_held) const {
    if (lend == nullptr) return joiner.fd.get();
    *out_held = lend(joiner.blob);
    return *out_held != nullptr ? (*out_held)->fd() : -1;
  }
  const char *advice() const { return names.empty() ? ". Start all ranks with the same name, or raise ZERO_KEY_RENDEZVOUS_MS" : ""; }
};

/// Meets the other ranks. On success out has one entry per rank; this rank's own is `mine`. The
/// first rank becomes the root of the meeting. Threads of one process and processes take the same
/// path.
/// Connections that do not use the protocol or come from another user are ignored. A rank that
/// leaves before all have met counts as missing and may return.
/// Errors: ZERO_E_RENDEZVOUS, or ZERO_E_TIMEOUT if ranks of a group meet, with the missing,
/// duplicate or disagreeing ranks; ZERO_E_SYSTEM; errors of terms.watch.
Task rendezvous(MeetingTerms terms, Joiner mine, std::vector<Joiner> *out);

/// Ends a meeting that this rank cannot join. Ranks that have joined, or join within a moment, get
/// `cause` instead of a timeout. If they cannot be told, they wait until their deadline. Never
/// returns an error.
Task call_off(MeetingTerms terms, Status cause);

}  // namespace zero
