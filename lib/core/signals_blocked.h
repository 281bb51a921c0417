/// @file SignalsBlocked: the signal mask of threads that the library starts. Knows nothing of their
/// work.
#pragma once

#include <csignal>

namespace zero {

/// Blocks all signals of the calling thread during its lifetime. A thread started meanwhile keeps
/// them blocked: the program's signals are for the program's own threads.
class SignalsBlocked {
 public:
  SignalsBlocked() noexcept {
    sigset_t all;
    sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  SignalsBlocked(const SignalsBlocked &) = delete;
  ~SignalsBlocked() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_;
};

}  // namespace zero
