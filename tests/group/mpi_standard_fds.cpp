/// @file A rank of an MPI job that closes some of its standard input, output and error before it uses libzero.
/// usage: mpi_standard_fds CLOSED, which has bit i for descriptor i. Exit code 0: groups, buffers and training work, and nothing of libzero
/// lay there at any time. What MPI itself opens while it works is MPI's.
#include "tests/api/trained_values.h"
#include "tests/standard_fds.h"

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <string>
#include <thread>

namespace {

/// The first file of libzero's kinds that is seen at 0, 1 or 2: its memory, or what watches a process.
class Watcher {
 public:
  Watcher() : thread_([this] { run(); }) {}
  std::string stop() {
    stopped_ = true;
    thread_.join();
    return seen_;
  }

 private:
  void run() {
    while (!stopped_) {
      for (const char *path : {"/proc/self/fd/0", "/proc/self/fd/1", "/proc/self/fd/2"}) look(path);
      ::sched_yield();
    }
  }

  void look(const char *path) {
    char file[256] = "";
    if (::readlink(path, file, sizeof file - 1) < 0) return;
    const std::string name = file;
    if (name.find("memfd:libzero") != std::string::npos || name.find("pidfd") != std::string::npos) seen_ = std::string(path) + ": " + name;
  }

  std::atomic<bool> stopped_{false};
  std::string seen_;  ///< the thread's until it has ended
  std::thread thread_;
};

std::string train_over_mpi() {
  zero_group *group = nullptr;
  ZERO_TRAINED(zero_group_create_env(nullptr, &group));
  std::string text = zero::test::trained_values(group);
  zero_group_release(group);
  return text;
}

}  // namespace

int main(int argc, char **argv) {
  const int closed = argc > 1 ? std::atoi(argv[1]) : 0;
  const int out = ::fcntl(2, F_DUPFD_CLOEXEC, 10);
  zero::test::close_standard_fds(closed);
  Watcher watcher;
  std::string text = train_over_mpi();
  const std::string seen = watcher.stop();
  if (!seen.empty()) text += "; " + seen + "\n";
  const bool right = text.starts_with("trained ") && seen.empty();
  if (!right && ::write(out, text.data(), text.size()) < 0) return 2;
  return right ? 0 : 1;
}
