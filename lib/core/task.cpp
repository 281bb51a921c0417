/// @file Running tasks: the loop that resumes coroutines, and queues of operations.
#include "core/task.h"

#include <sched.h>

#include <exception>
#include <new>

namespace zero {

Status exception_status() noexcept {
  try {
    throw;
  } catch (const std::bad_alloc &) {
    return Status::error(ZERO_E_OUT_OF_MEMORY, "out of memory inside an operation");
  } catch (const std::exception &exception) {
    return Status::error(ZERO_E_INTERNAL, "unexpected exception inside an operation: %s", exception.what());
  } catch (...) {
    return Status::error(ZERO_E_INTERNAL, "unexpected exception inside an operation");
  }
}

namespace {

thread_local uint64_t ended_waits_here = 0;

}  // namespace

uint64_t ended_waits() noexcept { return ended_waits_here; }

void Pacing::pause(std::span<const Listening> listenings) {
  if (std::exchange(seen_, ended_waits()) != seen_) backoff_.begin_anew();
  backoff_.pause(listenings);
}

Operation::Operation(Task task) noexcept : task_(std::move(task)) {
  driver_.current = task_.handle_;
  task_.handle_.promise().driver = &driver_;
}

bool Operation::advance() {
  if (done()) return true;
  while (driver_.current) {
    if (driver_.waiting != nullptr && !poll_waiting()) return false;
    driver_.current.resume();
  }
  status_ = std::move(task_.handle_.promise().result);
  // The frame is destroyed before done is published: a thread that sees done may free objects that
  // the task refers to.
  std::exchange(task_.handle_, {}).destroy();
  doorbell_ = nullptr;
  done_.store(true, std::memory_order_release);
  return true;
}

/// Returns false if the wait continues. An exception ends the wait like an error, because no caller
/// could handle it.
bool Operation::poll_waiting() noexcept {
  bool ready = false;
  try {
    driver_.wait_status = driver_.waiting->poll(&ready);
  } catch (...) {
    driver_.wait_status = exception_status();
  }
  if (driver_.wait_status.ok() && !ready) {
    doorbell_ = driver_.waiting->doorbell();
    return false;
  }
  driver_.waiting = nullptr;
  ++ended_waits_here;
  return true;
}

/// A thread's turn to advance a queue. Meanwhile other threads sleep until the turn or an operation
/// has ended, because no peer rings when an operation ends during the turn.
class OperationQueue::Turn {
 public:
  explicit Turn(OperationQueue &queue) : queue_(queue), taken_(!queue.advanced_.exchange(true, std::memory_order_acquire)) {
    if (taken_) queue_.doorbell_.store(&queue_.moved_, std::memory_order_release);
  }
  Turn(const Turn &) = delete;
  ~Turn() {
    if (!taken_) return;
    queue_.doorbell_.store(next_, std::memory_order_release);
    queue_.advanced_.store(false, std::memory_order_release);
    queue_.moved_.ring();
  }

  bool taken() const { return taken_; }
  /// Sets the doorbell to sleep on after the turn.
  void leave_to(Doorbell *bell) { next_ = bell; }

 private:
  OperationQueue &queue_;
  bool taken_;
  Doorbell *next_ = nullptr;
};

OperationQueue::~OperationQueue() {
  // Unlinks one by one: a chain of shared pointers freed at once would recurse.
  while (head_) head_ = std::move(head_->next_);
}

std::shared_ptr<Operation> OperationQueue::submit(Task task) {
  auto operation = std::allocate_shared<Operation>(CachedAllocator<Operation>(), std::move(task));
  const std::lock_guard lock(list_mutex_);
  if (tail_ == nullptr) {
    head_ = operation;
  } else {
    tail_->next_ = operation;
  }
  tail_ = operation.get();
  return operation;
}

Look OperationQueue::progress(const Operation *wanted) {
  Look look;
  // A thread that submitted an operation after this turn found the queue empty, but before the turn
  // ended, got Look::elsewhere. No other thread may come to begin that operation.
  do {
    look = take_turn(wanted);
  } while (look == Look::empty && !empty());
  return look;
}

Look OperationQueue::take_turn(const Operation *wanted) {
  Doorbell *asleep_on = nullptr;
  {
    Turn turn(*this);
    if (!turn.taken()) {
      looked_at_.exchange(true, std::memory_order_acq_rel);
      return Look::elsewhere;
    }
    std::shared_ptr<Operation> operation = first();
    while (operation != nullptr) {
      if (wanted != nullptr && wanted->done() && watched()) break;
      if (operation->doorbell() != nullptr) asleep_on = operation->doorbell();
      if (!operation->advance()) {
        turn.leave_to(operation->doorbell());
        return Look::waits;
      }
      operation = pop();
      // Threads that wait for the operation that has ended need not wait for later ones, nor for
      // this thread's core.
      if (operation != nullptr && looked_at_.exchange(false, std::memory_order_acq_rel)) {
        moved_.ring();
        ::sched_yield();
      }
    }
    if (operation == nullptr) return Look::empty;
  }
  // The progress thread may be asleep on the bell of an operation that has ended.
  if (asleep_on != nullptr) asleep_on->ring();
  return Look::waits;
}

void OperationQueue::wait_for(const std::shared_ptr<Operation> &operation, const std::atomic<bool> &flag) {
  const auto waits = [&] { return !operation->done() && !flag.load(std::memory_order_acquire); };
  // Does not read the bell first: an operation that ends immediately needs none, and peers write
  // the bell's cache line.
  progress(operation.get());
  Pacing pacing;
  while (waits()) {
    const Listening listening(doorbell());
    const Look look = progress(operation.get());
    if (waits() && hears(look, listening.bell())) pacing.pause(listening);
  }
}

Status OperationQueue::wait(const std::shared_ptr<Operation> &operation) {
  wait_for(operation, operation->done_);
  return operation->status();
}

Status OperationQueue::run(Task task) { return wait(submit(std::move(task))); }

bool OperationQueue::empty() {
  const std::lock_guard lock(list_mutex_);
  return head_ == nullptr;
}

std::shared_ptr<Operation> OperationQueue::first() {
  const std::lock_guard lock(list_mutex_);
  return head_;
}

/// Unlinks the first operation, which has ended, and returns the next one.
std::shared_ptr<Operation> OperationQueue::pop() {
  const std::lock_guard lock(list_mutex_);
  head_ = std::move(head_->next_);
  if (head_ == nullptr) tail_ = nullptr;
  return head_;
}

}  // namespace zero
