/// @file Supported tables: the only file that queries the CPU. Knows no operation.
#include "kernels/kernels.h"

#include <array>
#include <cstdlib>

namespace zero::kernels {

namespace reference {
extern const Table kTable;
}
#if defined(__x86_64__)
namespace avx2 {
extern const Table kTable;
}
namespace avx512 {
extern const Table kTable;
}
#elif defined(__aarch64__)
namespace neon {
extern const Table kTable;
}
#endif

namespace {

struct Supported {
  std::array<const Table *, 3> tables{};
  size_t count = 0;
  void add(const Table &table) { tables[count++] = &table; }
};

#if defined(__x86_64__)
bool has_avx2() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c") &&
         __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
}

[[maybe_unused]] bool has_avx512() {
  return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512cd");
}
#endif

Supported detect() {
  Supported found;
  found.add(reference::kTable);
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (has_avx2()) found.add(avx2::kTable);
#ifdef ZERO_HAS_AVX512
  if (has_avx512()) found.add(avx512::kTable);
#endif
#elif defined(__aarch64__)
  found.add(neon::kTable);  // part of the base architecture
#endif
  return found;
}

const Table &choose() {
  const std::span<const Table *const> tables = supported();
  if (const char *wanted = std::getenv("ZERO_KERNEL_TARGET")) {
    for (const Table *table : tables) {
      if (std::string_view(table->target) == wanted) return *table;
    }
  }
  return *tables.back();
}

}  // namespace

std::span<const Table *const> supported() {
  static const Supported found = detect();
  return {found.tables.data(), found.count};
}

const Table &active() {
  static const Table &chosen = choose();
  return chosen;
}

}  // namespace zero::kernels
