/// @file Transfers: two staging buffers, and a thread that reads or writes one of them while the
/// caller uses the other. Knows files and bytes, no formats.
#pragma once

#include "checkpoint/blocks.h"
#include "core/file.h"

#include <array>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <utility>

namespace zero::checkpoint {

/// A file that may bypass the page cache. A file system may refuse that only at the first transfer;
/// then the file is buffered.
struct StreamedFile {
  File file;
  bool direct = false;
};

class Transfers {
 public:
  static constexpr int kBuffers = 2;
  static constexpr int64_t kAlignment = 4096;

  /// ZERO_E_OUT_OF_MEMORY. The first transfer of more than a few bytes starts the thread. The
  /// caller's thread makes smaller transfers while nothing is queued.
  static Status make(const StreamOptions &options, std::unique_ptr<Transfers> *out);
  ~Transfers();

  std::span<std::byte> buffer(int number) const { return {memory_.get() + static_cast<size_t>(number) * buffer_nbytes_, buffer_nbytes_}; }

  /// Begins to write the first `nbytes` of a buffer, or to read at least that many into it. Call
  /// end() after every begin. Buffers are served in order. A direct file is read and written in
  /// whole units of kAlignment, at multiples of it.
  void begin_write(int number, StreamedFile *file, size_t nbytes, int64_t offset) { begin(number, {file, nbytes, offset, true}); }
  void begin_read(int number, StreamedFile *file, size_t nbytes, int64_t offset) { begin(number, {file, nbytes, offset, false}); }
  /// Waits for one buffer. ZERO_OK for a buffer without a transfer.
  Status end(int number);
  /// Waits for all buffers and returns the first error.
  Status end_all();

 private:
  struct Job {
    StreamedFile *file = nullptr;  ///< nullptr: no job
    size_t nbytes = 0;
    int64_t offset = 0;
    bool writes = false;
  };
  struct Free {
    void operator()(std::byte *memory) const noexcept;
  };

  Transfers(std::unique_ptr<std::byte, Free> memory, size_t buffer_nbytes) : memory_(std::move(memory)), buffer_nbytes_(buffer_nbytes) {}
  bool has_thread();
  bool is_for_caller(const Job &job);
  void begin(int number, const Job &job);
  Status run(int number, const Job &job) const;
  void serve();

  std::unique_ptr<std::byte, Free> memory_;
  const size_t buffer_nbytes_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::array<Job, kBuffers> jobs_;
  std::array<Status, kBuffers> results_;
  std::array<int, kBuffers> queue_{};  ///< numbers of buffers, in the order of begin()
  int queued_ = 0;
  bool ends_ = false;
  bool tried_ = false;
  std::thread thread_;
};

/// The destructor waits for all transfers, also during an exception. Construct it after the file
/// that they use, so that the transfers end before the file is closed.
class TransfersEnded {
 public:
  explicit TransfersEnded(Transfers *transfers) : transfers_(*transfers) {}
  TransfersEnded(const TransfersEnded &) = delete;
  ~TransfersEnded() { static_cast<void>(transfers_.end_all()); }

 private:
  Transfers &transfers_;
};

}  // namespace zero::checkpoint
