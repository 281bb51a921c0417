/// @file The host by its boot, name and network namespace.
#include "group/host_id.h"

#include "core/hash.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace zero {

uint64_t host_id() {
  if (const char *told = std::getenv("ZERO_HOST_ID"); told != nullptr && *told != '\0') return hash_of_text(told);
  Hash hash;
  char text[256] = "";
  if (std::FILE *file = std::fopen("/proc/sys/kernel/random/boot_id", "re")) {
    hash.add(text, std::fread(text, 1, sizeof text, file));
    std::fclose(file);
  }
  if (::gethostname(text, sizeof text - 1) == 0) hash.add(text, ::strnlen(text, sizeof text - 1));
  struct stat name_space {};
  if (::stat("/proc/self/ns/net", &name_space) == 0) hash.add(name_space.st_ino);
  return hash.value();
}

}  // namespace zero
