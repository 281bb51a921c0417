/// @file Waiting for time to pass.
#pragma once

#include <chrono>
#include <cstdint>
#include <thread>

namespace zero::test {

inline void sleep_ms(int64_t milliseconds) { std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds)); }

}  // namespace zero::test
