/// @file PeerStatus: the state that a rank reports when another asks, and the text about the ranks
/// that were asked. For transports whose ranks cannot read one another's memory.
#pragma once

#include "group/fingerprint.h"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace zero {

/// Sent as it is.
struct PeerStatus {
  enum State : int32_t { outside = 0, inside = 1, failed = 2, gone = 3, messaging = 4 };
  int64_t state = outside;
  Fingerprint where;
};

/// The call and the message that this rank is in, for ranks that ask.
class PublishedCalls {
 public:
  /// As those of PeerHealth.
  void publish(const Fingerprint *call) {
    inside_ = call != nullptr;
    if (inside_) call_ = *call;
  }
  void publish_message(const Fingerprint &message, bool ends) {
    const bool same = message_.sequence == message.sequence && message_.kind == message.kind && message_.root == message.root;
    if (ends && !same) return;
    in_message_ = !ends;
    message_ = message;
  }
  /// nullptr: none.
  const Fingerprint *call() const { return inside_ ? &call_ : nullptr; }
  /// The answer of this rank; `failure` is that of its group, or ZERO_OK.
  PeerStatus status(const Status &failure) const {
    if (!failure.ok() || inside_) return {failure.ok() ? PeerStatus::inside : PeerStatus::failed, call_};
    return {in_message_ ? PeerStatus::messaging : PeerStatus::outside, message_};
  }

 private:
  bool inside_ = false;
  Fingerprint call_;
  bool in_message_ = false;
  Fingerprint message_;
};

/// True if the rank that answered waits in the same call, so that a rank in `mine` does not wait
/// for it. Always false if `mine` is a message.
bool waits_in(const PeerStatus *answer, const Fingerprint &mine);

/// The ranks to ask if none of those in `asked` is the cause: some of the `size` ranks, without
/// `asked`, and few enough for all ranks to ask them at the same time.
std::vector<int64_t> others_to_ask(int64_t size, const std::vector<int64_t> &asked);

/// Calls complete() until it is true, but no longer than a rank that is alive may take to answer.
void await_answers(const std::function<bool()> &complete);

/// `name` "is in #17 ..."; `answer` nullptr: none has come.
std::string peer_status_text(const std::string &name, const PeerStatus *answer);
/// text_of(rank) of the first of them, and how many more there are.
std::string progress_text(const std::vector<int64_t> &ranks, const std::function<std::string(int64_t)> &text_of);

}  // namespace zero
