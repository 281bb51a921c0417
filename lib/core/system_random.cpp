/// @file Random numbers by getrandom(2) and random(4).
#include "core/system_random.h"

#include "core/file_text.h"

#include <sys/random.h>

#include <cerrno>
#include <cstring>

namespace zero {
namespace {

/// Retries only if a signal interrupts it: other errors would occur again. So few bytes always
/// arrive at once.
int64_t ask_system(uint64_t *out) {
  for (;;) {
    const ssize_t nbytes = ::getrandom(out, sizeof *out, 0);
    if (nbytes >= 0 || errno != EINTR) return nbytes;
  }
}

}  // namespace

Status random_u64(uint64_t *out) {
  constexpr auto kNbytes = static_cast<int64_t>(sizeof *out);
  uint64_t value = 0;
  if (ask_system(&value) != kNbytes) {
    const int refusal = errno;
    const int64_t nbytes = read_file("/dev/urandom", {reinterpret_cast<char *>(&value), sizeof value});
    ZERO_CHECK(nbytes == kNbytes, ZERO_E_SYSTEM,
               "the system gives no random numbers, which libzero needs for names of shared memory and saves: getrandom says \"%s\", and "
               "/dev/urandom \"%s\"; allow this process one of them",
               std::strerror(refusal), nbytes < 0 ? std::strerror(errno) : "end of file");
  }
  *out = value;
  return {};
}

}  // namespace zero
