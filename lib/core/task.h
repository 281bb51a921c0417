/// @file Tasks: operations that wait for other ranks, written as coroutines that return a Status. A
/// task never blocks: it suspends on a Waitable, and the thread that polls it resumes it. So the
/// blocking and the begin/test form of a call share the same code. Knows nothing of ranks or
/// transports.
#pragma once

#include "core/doorbell.h"
#include "core/frame_cache.h"
#include "core/status.h"

#include <atomic>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <utility>

namespace zero {

/// Returns the Status of the exception that is being handled.
Status exception_status() noexcept;

/// A condition that a task waits for.
class Waitable {
 public:
  /// Checks without blocking. An error ends the wait with that error.
  virtual Status poll(bool *out_ready) = 0;
  /// The doorbell that is rung when it may be ready; nullptr if there is none.
  virtual Doorbell *doorbell() { return nullptr; }

 protected:
  ~Waitable() = default;
};

/// A coroutine that returns a Status. It starts when awaited by another task or run by an
/// Operation. Reference parameters and `this` must outlive it; co_await a Waitable that lives in
/// the coroutine's own frame, or another Task.
class [[nodiscard]] Task {
 public:
  struct promise_type;
  using Handle = std::coroutine_handle<promise_type>;

  /// Drives a chain of awaiting tasks: `current` is resumed once `waiting`, if any, is ready.
  struct Driver {
    Handle current;
    Waitable *waiting = nullptr;
    Status wait_status;
  };

  struct promise_type {
    Driver *driver = nullptr;
    Handle parent;
    Status result;

    static void *operator new(std::size_t nbytes) { return cached_allocate(nbytes); }
    static void operator delete(void *data, std::size_t nbytes) noexcept { cached_free(data, nbytes); }

    Task get_return_object() noexcept { return Task(Handle::from_promise(*this)); }
    std::suspend_always initial_suspend() const noexcept { return {}; }
    struct FinalAwaiter {
      bool await_ready() const noexcept { return false; }
      void await_suspend(Handle self) const noexcept { self.promise().driver->current = self.promise().parent; }
      void await_resume() const noexcept {}
    };
    FinalAwaiter final_suspend() const noexcept { return {}; }
    void return_value(Status status) noexcept { result = std::move(status); }
    void unhandled_exception() noexcept { result = exception_status(); }

    struct WaitAwaiter {
      Driver *driver;
      Waitable *waitable;
      bool await_ready() const noexcept { return false; }
      void await_suspend(Handle) const noexcept { driver->waiting = waitable; }
      Status await_resume() const noexcept { return std::move(driver->wait_status); }
    };
    WaitAwaiter await_transform(Waitable &waitable) noexcept { return {driver, &waitable}; }

    struct TaskAwaiter {
      Handle child;
      bool await_ready() const noexcept { return false; }
      void await_suspend(Handle caller) const noexcept {
        child.promise().driver = caller.promise().driver;
        child.promise().parent = caller;
        caller.promise().driver->current = child;
      }
      Status await_resume() const noexcept { return std::move(child.promise().result); }
    };
    TaskAwaiter await_transform(const Task &task) noexcept { return {task.handle_}; }
  };

  Task(Task &&other) noexcept : handle_(std::exchange(other.handle_, {})) {}
  Task &operator=(Task &&) = delete;
  ~Task() {
    if (handle_) handle_.destroy();
  }

 private:
  friend class Operation;
  explicit Task(Handle handle) noexcept : handle_(handle) {}

  Handle handle_;
};

/// The number of waits of tasks that have ended on this thread so far.
uint64_t ended_waits() noexcept;

/// The pauses of a loop that advances tasks. They restart with the shortest when a wait has ended.
class Pacing {
 public:
  explicit Pacing(Backoff::Manner manner = Backoff::Manner::in_crowd) : backoff_(manner) {}
  void pause(std::span<const Listening> listenings);
  void pause(const Listening &listening) { pause({&listening, 1}); }
  void begin_anew() { backoff_.begin_anew(); }

 private:
  Backoff backoff_;
  uint64_t seen_ = 0;
};

/// A task that runs by polling. Advanced by one thread at a time; done() and, after it, status()
/// may be read by any thread.
class Operation {
 public:
  explicit Operation(Task task) noexcept;

  /// Runs until the task waits or ends. Returns true if it has ended.
  bool advance();

  bool done() const { return done_.load(std::memory_order_acquire); }
  const Status &status() const { return status_; }
  /// The doorbell that is rung when advancing again may help; nullptr if there is none. For the
  /// thread that advances the operation. It belongs to an object that the task refers to, so it
  /// outlives the operation.
  Doorbell *doorbell() const { return doorbell_; }

 private:
  friend class OperationQueue;

  bool poll_waiting() noexcept;

  Task task_;
  Task::Driver driver_;
  Status status_;
  std::atomic<bool> done_{false};
  Doorbell *doorbell_ = nullptr;
  std::shared_ptr<Operation> next_;
};

/// The result of an attempt to advance a queue.
enum class Look {
  empty,      ///< no operation is left
  waits,      ///< an operation is left
  elsewhere,  ///< another thread is advancing the queue
};

/// Operations that run one after another, in the order of submission. A thread that needs a result
/// advances the queue itself by calling progress(). If a progress thread watches the queue, the
/// caller stops as soon as its result is there.
class OperationQueue {
 public:
  OperationQueue() = default;
  OperationQueue(const OperationQueue &) = delete;
  ~OperationQueue();

  /// Adds an operation. Objects that its task refers to must live until it has ended.
  std::shared_ptr<Operation> submit(Task task);

  /// Advances operations in order until one waits. Once `wanted` has ended, later ones are advanced
  /// only if no progress thread watches the queue. Returns immediately if another thread is
  /// advancing it.
  Look progress(const Operation *wanted = nullptr);

  /// Waits until the operation has ended or set the flag.
  void wait_for(const std::shared_ptr<Operation> &operation, const std::atomic<bool> &flag);

  /// Waits until the operation has ended and returns its status.
  Status wait(const std::shared_ptr<Operation> &operation);

  /// submit and wait.
  Status run(Task task);

  /// The doorbell to listen to before an attempt to advance; nullptr if none is rung.
  Doorbell *doorbell() const { return doorbell_.load(std::memory_order_acquire); }
  /// True if a thread that listened to `bell` before an attempt with result `look` will be rung at
  /// the next event. Otherwise it must try again at once.
  bool hears(Look look, const Doorbell *bell) const { return look == Look::elsewhere ? bell == &moved_ : bell == doorbell(); }

  /// True if a progress thread holds the queue, as it declares by set_watched().
  bool watched() const { return watched_.load(std::memory_order_relaxed); }
  void set_watched(bool watched) { watched_.store(watched, std::memory_order_relaxed); }

 private:
  class Turn;

  Look take_turn(const Operation *wanted);
  bool empty();
  std::shared_ptr<Operation> first();
  std::shared_ptr<Operation> pop();

  std::mutex list_mutex_;               ///< guards the list
  std::atomic<bool> advanced_{false};   ///< a thread is advancing the queue
  std::atomic<bool> looked_at_{false};  ///< other threads have tried and wait
  /// Rung when a turn has ended, or an operation for which others wait.
  Doorbell moved_;
  std::atomic<Doorbell *> doorbell_{nullptr};
  std::shared_ptr<Operation> head_;
  Operation *tail_ = nullptr;
  std::atomic<bool> watched_{false};
};

/// Awaits the end of an operation in another queue. The waiting thread advances that queue
/// meanwhile.
class OperationEnd final : public Waitable {
 public:
  OperationEnd(OperationQueue &queue, const Operation &operation) : queue_(queue), operation_(operation) {}
  Status poll(bool *out_ready) override {
    queue_.progress(&operation_);
    *out_ready = operation_.done();
    return {};
  }
  /// nullptr if the operation has ended by now: poll again at once.
  Doorbell *doorbell() override {
    Doorbell *bell = queue_.doorbell();
    return operation_.done() ? nullptr : bell;
  }

 private:
  OperationQueue &queue_;
  const Operation &operation_;
};

}  // namespace zero

/// Awaits a task or waitable inside a task and passes an error up.
#define ZERO_CO_AWAIT(...)                                                                                         \
  do {                                                                                                             \
    if (::zero::Status zero_try_status = co_await (__VA_ARGS__); !zero_try_status.ok()) co_return zero_try_status; \
  } while (0)

/// ZERO_TRY and ZERO_CHECK inside a task.
#define ZERO_CO_TRY(expression)                                                                          \
  do {                                                                                                   \
    if (::zero::Status zero_try_status = (expression); !zero_try_status.ok()) co_return zero_try_status; \
  } while (0)
#define ZERO_CO_CHECK(condition, code, ...)                                 \
  do {                                                                      \
    if (!(condition)) co_return ::zero::Status::error((code), __VA_ARGS__); \
  } while (0)
