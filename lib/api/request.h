/// @file Requests: operations that may wait for other ranks. A Work describes each once. The
/// blocking call runs it; the _async call begins it and returns a request. Knows nothing of the
/// operations.
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

/// The description of one operation. It keeps its address until the operation has ended, because
/// the task writes results into it.
struct Work {
  enum class Makes { nothing, group, buffer };

  std::shared_ptr<void> owner;            ///< keeps the objects of the task alive
  std::shared_ptr<OperationQueue> queue;  ///< the queue that runs the task
  std::optional<Task> task;
  /// Set by the task when the _async call may return; nullptr: at once.
  std::shared_ptr<const std::atomic<bool>> begun;
  Makes makes = Makes::nothing;
  std::shared_ptr<Group> group;
  std::shared_ptr<Buffer> buffer;
  // Results before they are copied to the caller:
  zero_step_result step = {};
  zero_verify_result verified = {};
  zero_checkpoint_result checkpoint = {};
};

/// Copies a result of this library's size; the caller's struct may be older and shorter.
template <class Result>
Task write_after(Task task, const Result &made, Result *out) {
  ZERO_CO_AWAIT(task);
  write_struct(made, out);
  co_return Status();
}

/// An operation that was begun. One thread at a time may query its status.
class Request {
 public:
  Work work;

  /// Submits the task to its queue. If it throws std::bad_alloc, nothing was begun.
  void begin();
  /// Advances the queue on this thread until something waits. Returns true if the operation has
  /// ended.
  bool test();
  /// Waits until the _async call may return.
  void wait_for_begin();
  /// Waits until the operation has ended, at most until its deadline, and returns its status.
  Status wait();
  /// Call it only after the operation has ended.
  const Status &status() const { return operation_->status(); }
  /// Returns ZERO_OK if the object of that kind may be taken now.
  Status check_take(Work::Makes kind, const char *noun) const;
  void mark_taken() { taken_ = true; }

 private:
  std::shared_ptr<Operation> operation_;
  bool taken_ = false;
};

/// Begins the request's work and returns a new handle for it.
zero_request *begin_request(const std::shared_ptr<Request> &request);

/// The body of a blocking call: describe(Work &) checks the arguments and describes the work,
/// finish(Work &) writes outputs.
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
