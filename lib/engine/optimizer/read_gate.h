/// @file ReadGate: delays changes of an optimizer until a save has read or copied its data on all
/// ranks. Knows neither of them.
#pragma once

#include "core/clock.h"
#include "core/task.h"

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

namespace zero {

class ReadGate {
 public:
  /// `saves`: the queue in which the save runs. `on_wait` is called when a task begins to wait.
  ReadGate(std::shared_ptr<OperationQueue> saves, std::function<void()> on_wait) : saves_(std::move(saves)), on_wait_(std::move(on_wait)) {}
  ReadGate(const ReadGate &) = delete;

  bool is_open() const { return open_.load(std::memory_order_acquire); }
  bool is_awaited() const { return awaited_.load(std::memory_order_acquire); }
  int64_t waited_ns() const { return waited_ns_.load(std::memory_order_relaxed); }
  void open() { open_.store(true, std::memory_order_release); }

  /// Waits until the gate is open. Meanwhile the waiting thread makes progress in the queue of
  /// saves.
  Task wait() {
    if (is_open()) co_return Status();
    const int64_t began_ns = now_ns();
    awaited_.store(true, std::memory_order_release);
    on_wait_();
    Open open(*this);
    Status status = co_await open;
    waited_ns_.fetch_add(now_ns() - began_ns, std::memory_order_relaxed);
    co_return status;
  }

 private:
  class Open final : public Waitable {
   public:
    explicit Open(ReadGate &gate) : gate_(gate) {}
    Status poll(bool *out_ready) override {
      if (!gate_.is_open()) gate_.saves_->progress();
      *out_ready = gate_.is_open();
      return {};
    }

   private:
    ReadGate &gate_;
  };

  const std::shared_ptr<OperationQueue> saves_;
  const std::function<void()> on_wait_;
  std::atomic<bool> open_{false};
  std::atomic<bool> awaited_{false};
  std::atomic<int64_t> waited_ns_{0};
};

}  // namespace zero
