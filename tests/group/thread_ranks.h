/// @file Ranks as threads of the test process.
/// Knows nothing of groups: it starts threads together and joins them.
#pragma once

#include <barrier>
#include <cstdint>
#include <thread>
#include <utility>
#include <vector>

namespace zero::test {

/// Runs function(rank) for rank = 0 .. size - 1, each on its own thread, all started before any goes on. Returns when all have ended.
template <class Function>
void run_thread_ranks(int64_t size, Function &&function) {
  std::barrier start(size);
  std::vector<std::jthread> threads;
  threads.reserve(static_cast<size_t>(size));
  for (int64_t rank = 0; rank < size; ++rank) {
    threads.emplace_back([&start, &function, rank] {
      start.arrive_and_wait();
      function(rank);
    });
  }
}

}  // namespace zero::test
