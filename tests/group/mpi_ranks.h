/// @file What MPI test programs share: checks that count, and loops that poll. They run as ranks, so they are not GoogleTest programs.
#pragma once

#include "core/clock.h"
#include "core/task.h"
#include "group/mpi/mpi_module.h"
#include "group/mpi/mpi_transport.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

namespace zero::mpi_test {

struct Counts {
  int passed = 0;
  int failed = 0;
};
inline Counts counts;

inline void note(bool passed, const char *file, int line, const std::string &text) {
  ++(passed ? counts.passed : counts.failed);
  if (!passed) std::fprintf(stderr, "%s:%d: failed: %s\n", file, line, text.c_str());
}

template <class... Values>
std::string format(const char *text, Values... values) {
  char out[1024];
  if constexpr (sizeof...(values) == 0) {
    std::snprintf(out, sizeof out, "%s", text);
  } else {
    std::snprintf(out, sizeof out, text, values...);
  }
  return out;
}

inline void note_code(const Status &status, int32_t code, const char *part, const char *file, int line) {
  note(status.code() == code && std::strstr(status.text(), part) != nullptr, file, line,
       format("expected %s with \"%s\", got %s: %s", status_name(code), part, status_name(status.code()), status.text()));
}

#define CHECK(condition, ...) ::zero::mpi_test::note((condition), __FILE__, __LINE__, ::zero::mpi_test::format(#condition ": " __VA_ARGS__))
#define CHECK_CODE(status, code, part) ::zero::mpi_test::note_code((status), (code), (part), __FILE__, __LINE__)
#define CHECK_OK(status) CHECK_CODE(status, ZERO_OK, "")

/// The launcher's number of this process, which is its rank.
inline int64_t launched_rank() {
  for (const char *name : {"OMPI_COMM_WORLD_RANK", "PMI_RANK"}) {
    if (const char *text = std::getenv(name)) return std::atoll(text);
  }
  return 0;
}

inline Status run(Task task) {
  OperationQueue queue;
  return queue.run(std::move(task));
}

/// Polls until done, an error, or the deadline (ZERO_E_TIMEOUT).
template <class Poll>
Status wait_for(int64_t deadline_ms, Poll poll) {
  const Deadline deadline = Deadline::after_ms(deadline_ms);
  Backoff backoff;
  for (bool done = false;;) {
    ZERO_TRY(poll(&done));
    if (done) return {};
    ZERO_CHECK(!deadline.passed(), ZERO_E_TIMEOUT, "nothing after %lld ms", static_cast<long long>(deadline_ms));
    backoff.pause();
  }
}

struct Tables {
  explicit Tables(int64_t size) : offers(static_cast<size_t>(size)), arrivals(static_cast<size_t>(size)) {}
  std::vector<Offer> offers;
  std::vector<Arrival> arrivals;
};

/// Starts a round and waits for its arrivals; a timeout tells where ranks stand, or what another rank said of it first.
inline Status run_round(Transport &transport, const Fingerprint *fingerprint, Tables &tables, int64_t deadline_ms) {
  ZERO_TRY(transport.rounds().start(fingerprint, tables.offers, tables.arrivals));
  const Status status = wait_for(deadline_ms, [&](bool *done) { return transport.rounds().poll(done); });
  if (status.code() != ZERO_E_TIMEOUT || fingerprint == nullptr) return status;
  ZERO_TRY(transport.peers().health());
  return Status::error(ZERO_E_TIMEOUT, "%s in %s: %s", status.text(), to_text(*fingerprint).c_str(),
                       transport.peers().progress_report(*fingerprint).c_str());
}

inline Status wait_quiet(Transport &transport, int64_t deadline_ms) {
  return wait_for(deadline_ms, [&](bool *done) { return transport.rounds().poll_quiet(done); });
}

inline std::vector<int64_t> all_ranks(int64_t size) {
  std::vector<int64_t> ranks(static_cast<size_t>(size));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

/// Finalises MPI as a program would that does so itself.
inline void stop_mpi() {
  const zero_mpi_table *table = nullptr;
  if (load_mpi_module("", &table).ok() && table->alive() != 0) table->stop();
}

/// Prints the counts where asked and returns the exit status.
inline int finish(int print) {
  if (print != 0) std::printf("%d passed, %d failed\n", counts.passed, counts.failed);
  std::fflush(stdout);
  return counts.failed == 0 && counts.passed > 0 ? 0 : 1;
}

}  // namespace zero::mpi_test
