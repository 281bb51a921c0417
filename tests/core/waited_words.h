/// @file WaitedWords: the words on which threads of this process sleep, if they sleep on several at
/// once (futex_waitv). Knows nothing of the threads.
#pragma once

#include <vector>

namespace zero::test {

/// During its lifetime, keeps the wait with the most words so far. One object at a time.
class WaitedWords {
 public:
  using Addresses = std::vector<const void *>;

  WaitedWords();
  ~WaitedWords();

  /// The words of that wait; empty before the first.
  Addresses most() const;
};

}  // namespace zero::test
