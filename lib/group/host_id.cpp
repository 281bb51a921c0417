/// @file The host by its boot, name and network namespace.
#include "group/host_id.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace zero {
namespace {

uint64_t hash_bytes(uint64_t hash, const void *data, size_t nbytes) {
  const auto *bytes = static_cast<const unsigned char *>(data);
  for (size_t i = 0; i < nbytes; ++i) hash = (hash ^ bytes[i]) * 0x100000001b3;  // FNV-1a
  return hash;
}

}  // namespace

uint64_t host_id() {
  uint64_t hash = 0xcbf29ce484222325;
  if (const char *told = std::getenv("ZERO_HOST_ID"); told != nullptr && *told != '\0') return hash_bytes(hash, told, std::strlen(told));
  char text[256] = "";
  if (std::FILE *file = std::fopen("/proc/sys/kernel/random/boot_id", "re")) {
    hash = hash_bytes(hash, text, std::fread(text, 1, sizeof text, file));
    std::fclose(file);
  }
  if (::gethostname(text, sizeof text - 1) == 0) hash = hash_bytes(hash, text, ::strnlen(text, sizeof text - 1));
  struct stat name_space {};
  if (::stat("/proc/self/ns/net", &name_space) == 0) hash = hash_bytes(hash, &name_space.st_ino, sizeof name_space.st_ino);
  return hash;
}

}  // namespace zero
