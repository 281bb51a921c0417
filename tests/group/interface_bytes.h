/// @file What a network interface of this host has sent. Linux only, as the network namespaces that need it.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstring>

namespace zero::test {

/// Bytes sent since the interface came up, headers of packets included; -1 when there is no such interface.
inline int64_t interface_sent_nbytes(const char *name) {
  std::FILE *file = std::fopen("/proc/self/net/dev", "re");
  if (file == nullptr) return -1;
  int64_t sent = -1;
  char line[512];
  while (std::fgets(line, sizeof line, file) != nullptr) {
    char found[64];
    long long nbytes = 0;
    // name: 8 numbers about what was received, then the bytes sent
    if (std::sscanf(line, " %63[^:]: %*u %*u %*u %*u %*u %*u %*u %*u %lld", found, &nbytes) == 2 && std::strcmp(found, name) == 0)
      sent = nbytes;
  }
  std::fclose(file);
  return sent;
}

}  // namespace zero::test
