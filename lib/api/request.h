/// @file Operations that may wait for other ranks. Each is described once, as a Work; the blocking call runs it, the _async call begins it
/// behind a request. Knows nothing of what the operations do.
#pragma once

#include "api/checks.h"
#include "api/nouns.h"
#include "api/structs.h"
#include "core/frame_cache.h"
#include "core/task.h"

#include <atomic>
#include <memory>
#include <optional>
#include <utility>

namespace zero::api {

/// The description of one operation. It stays where it is until the operation has ended: the task writes what it makes into it.
struct Work {
  enum class Makes { nothing, group, buffer };

  std::shared_ptr<void> owner;            ///< what the task refers to
  std::shared_ptr<OperationQueue> queue;  ///< where it runs
  std::optional<Task> task;
  std::shared_ptr<const std::atomic<bool>> begun;  ///< set by the task when the _async call may return; nullptr: at once
  Makes makes = Makes::nothing;
  std::shared_ptr<Group> group;
  std::shared_ptr<Buffer> buffer;
  // Results before they go to the caller:
  zero_step_result step = {};
  zero_verify_result verified = {};
  zero_checkpoint_result checkpoint = {};
};

/// A result is filled in this library's size; the caller's may be older and shorter.
template <class Result>
Task write_after(Task task, const Result &made, Result *out) {
  ZERO_CO_AWAIT(task);
  write_struct(made, out);
  co_return Status();
}

/// An operation that was begun. Its status may be asked for by one thread at a time.
class Request {
 public:
  Work work;

  /// Hands the task to its queue. Throws std::bad_alloc, and then nothing was begun.
  void begin();
  /// Lends the queue this thread for as long as nothing waits. True when the operation has ended.
  bool test();
  /// Waits until the _async call may return.
  void wait_for_begin();
  /// Waits until the operation has ended, at most until its deadline, and returns its status.
  Status wait();
  /// Only after the end.
  const Status &status() const { return operation_->status(); }
  /// ZERO_OK when the object of that kind may be taken out now.
  Status check_take(Work::Makes kind, const char *noun) const;
  void mark_taken() { taken_ = true; }

 private:
  std::shared_ptr<Operation> operation_;
  bool taken_ = false;
};

/// Begins the request's work under a new handle, which is returned.
zero_request *begin_request(const std::shared_ptr<Request> &request);

/// The body of a blocking call: describe(Work &) checks the arguments and describes, finish(Work &) writes outputs.
template <class Describe, class Finish>
int32_t run_work(Describe &&describe, Finish &&finish, const char *function = __builtin_FUNCTION()) noexcept {
  return guarded(
      [&]() -> Status {
        Work work;
        ZERO_TRY(describe(work));
        ZERO_TRY(work.queue->run(std::move(*work.task)));
        return finish(work);
      },
      function);
}

template <class Describe>
int32_t run_work(Describe &&describe, const char *function = __builtin_FUNCTION()) noexcept {
  return run_work(
      std::forward<Describe>(describe), [](Work &) { return Status(); }, function);
}

/// The body of an _async call.
template <class Describe>
int32_t begin_work(zero_request **out, Describe &&describe, const char *function = __builtin_FUNCTION()) noexcept {
  return guarded(
      [&]() -> Status {
        const auto request = std::allocate_shared<Request>(CachedAllocator<Request>());
        ZERO_TRY(describe(request->work));
        ZERO_TRY(check_pointer(out, "out"));
        *out = begin_request(request);
        return {};
      },
      function);
}

}  // namespace zero::api
