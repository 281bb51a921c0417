/// @file Tells on which words the threads of this process sleep, where they sleep on several at once (futex_waitv).
/// Knows nothing of who sleeps.
#pragma once

#include <vector>

namespace zero::test {

/// While it lives, the wait for the most words so far is kept. One at a time.
class WaitedWords {
 public:
  using Addresses = std::vector<const void *>;

  WaitedWords();
  ~WaitedWords();

  /// Of that wait; empty before the first.
  Addresses most() const;
};

}  // namespace zero::test
