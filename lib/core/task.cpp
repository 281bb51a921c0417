/// @file Running tasks: the loop that resumes coroutines, and queues of operations.
#include "core/task.h"

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
  // The frame goes before done is published: whoever sees done may free what the task refers to.
  std::exchange(task_.handle_, {}).destroy();
  doorbell_.store(nullptr, std::memory_order_release);
  done_.store(true, std::memory_order_release);
  return true;
}

/// False when the wait goes on. An exception ends the wait as an error does: nobody above could handle it.
bool Operation::poll_waiting() noexcept {
  bool ready = false;
  try {
    driver_.wait_status = driver_.waiting->poll(&ready);
  } catch (...) {
    driver_.wait_status = exception_status();
  }
  if (driver_.wait_status.ok() && !ready) {
    doorbell_.store(driver_.waiting->doorbell(), std::memory_order_release);
    return false;
  }
  driver_.waiting = nullptr;
  return true;
}

OperationQueue::~OperationQueue() {
  // Unlinked one by one: a chain of shared pointers freed at once would recurse.
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

bool OperationQueue::progress(const Operation *wanted) {
  std::unique_lock advancing(advance_mutex_, std::try_to_lock);
  if (!advancing.owns_lock()) return false;
  Doorbell *bell = nullptr;
  std::shared_ptr<Operation> operation = first();
  while (operation != nullptr) {
    if (wanted != nullptr && wanted->done() && watched()) {
      // The progress thread may be asleep for what has ended.
      advancing.unlock();
      if (bell != nullptr) bell->ring();
      return false;
    }
    if (Doorbell *next_bell = operation->doorbell()) bell = next_bell;
    if (!operation->advance()) return false;
    const std::lock_guard lock(list_mutex_);
    head_ = std::move(operation->next_);
    if (head_ == nullptr) tail_ = nullptr;
    operation = head_;
  }
  return true;
}

Status OperationQueue::wait(const std::shared_ptr<Operation> &operation) {
  // What ends at once looks at no bell, whose line peers write.
  progress(operation.get());
  Backoff backoff;
  while (!operation->done()) {
    Doorbell *bell = doorbell();
    const uint32_t seen = bell != nullptr ? bell->sequence() : 0;
    progress(operation.get());
    if (operation->done()) break;
    backoff.pause(bell, seen);
  }
  return operation->status();
}

Status OperationQueue::run(Task task) { return wait(submit(std::move(task))); }

std::shared_ptr<Operation> OperationQueue::first() {
  const std::lock_guard lock(list_mutex_);
  return head_;
}

Doorbell *OperationQueue::doorbell() {
  const std::lock_guard lock(list_mutex_);
  return head_ != nullptr ? head_->doorbell() : nullptr;
}

}  // namespace zero
