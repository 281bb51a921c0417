/// @file Barrier: every exported call passes it. No exception escapes, and each error stores its
/// code and text for the calling thread. Knows nothing of the calls.
#pragma once

#include "api/handles.h"
#include "core/fork_guard.h"
#include "core/status.h"

#include <pthread.h>

#include <cstdint>
#include <memory>
#include <utility>

namespace zero::api {

/// Stores an error for zero_last_error_copy on this thread and returns its code.
int32_t remember(const Status &status) noexcept;
/// The same for the exception that is being handled in an exported function.
int32_t remember_exception(const char *function) noexcept;
/// The same for a call made in a child process.
int32_t remember_fork(const char *function) noexcept;

/// The code and text that remember stored on this thread.
int32_t last_code() noexcept;
const char *last_text() noexcept;

/// Delays cancellation of this thread (pthread_cancel) during its lifetime: a call that is unwound
/// half-way would leave its group in an unknown state. A request made meanwhile takes effect in the
/// program, after the call.
class CancellationHeld {
 public:
  CancellationHeld() noexcept { ::pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
  CancellationHeld(const CancellationHeld &) = delete;
  ~CancellationHeld() { ::pthread_setcancelstate(before_, nullptr); }

 private:
  int before_ = PTHREAD_CANCEL_ENABLE;
};

/// Runs the body of an exported function that starts nothing, so that the process may fork
/// afterwards. The body is a callable that returns a Status and writes outputs last.
template <class Body>
int32_t guarded_without_start(Body &&body, const char *function = __builtin_FUNCTION()) noexcept {
  const CancellationHeld held;
  try {
    const Status status = std::forward<Body>(body)();
    return status.ok() ? ZERO_OK : remember(status);
  } catch (...) {
    return remember_exception(function);
  }
}

/// Runs the body of every other exported function.
template <class Body>
int32_t guarded(Body &&body, const char *function = __builtin_FUNCTION()) noexcept {
  if (forked()) return remember_fork(function);
  return guarded_without_start(std::forward<Body>(body), function);
}

/// The class and kind of a public handle type. Specialised by the header of each noun.
template <class Public>
struct Noun;

template <class Public>
uint64_t handle_value(const Public *handle) {
  return reinterpret_cast<uintptr_t>(handle);
}

/// Finds the object of a handle given as the parameter `argument`.
template <class Public>
Status find(const Public *handle, const char *argument, std::shared_ptr<typename Noun<Public>::Object> *out) {
  std::shared_ptr<void> object;
  ZERO_TRY(find_handle(Noun<Public>::kKind, handle_value(handle), argument, &object));
  *out = std::static_pointer_cast<typename Noun<Public>::Object>(std::move(object));
  return {};
}

/// The body of an exported function on one object that does not wait: act(object) -> Status.
template <class Public, class Act>
int32_t call(const Public *handle, const char *argument, Act &&act, const char *function = __builtin_FUNCTION()) noexcept {
  return guarded(
      [&]() -> Status {
        std::shared_ptr<typename Noun<Public>::Object> object;
        ZERO_TRY(find(handle, argument, &object));
        return act(*object);
      },
      function);
}

/// Makes a handle for an object. Throws std::bad_alloc.
template <class Public>
Public *make_handle(std::shared_ptr<typename Noun<Public>::Object> object) {
  return reinterpret_cast<Public *>(static_cast<uintptr_t>(insert_handle(Noun<Public>::kKind, std::move(object))));
}

/// The body of an exported release. NULL is allowed. A handle that is not live changes only the
/// last error.
template <class Public>
void release(Public *handle, const char *argument, const char *function = __builtin_FUNCTION()) noexcept {
  if (handle == nullptr) return;
  guarded(
      [&]() -> Status {
        std::shared_ptr<void> object;
        return remove_handle(Noun<Public>::kKind, handle_value(handle), argument, &object);
      },
      function);
}

}  // namespace zero::api
