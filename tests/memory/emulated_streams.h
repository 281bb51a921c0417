/// @file Streams, events and graphs of emulated devices: work in order, on a thread per stream, or
/// recorded in a graph.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <iterator>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

namespace emulated {

/// CUDA's error for operations that cannot be captured.
constexpr int32_t kCaptured = 900;

class Stream;

/// Work that was enqueued on streams during their capture. It runs in that order, which satisfies
/// the order of each stream.
class Graph {
 public:
  static void begin(Stream &origin);
  /// Returns nullptr if an operation could not be captured, or if a stream was not joined to the
  /// first one.
  static std::unique_ptr<Graph> end(Stream &origin);
  /// True if the calling thread captures a stream. It must then neither wait nor allocate or free
  /// memory.
  static bool begun_here();

  void run(Stream &stream) const;
  int64_t nodes() const { return std::ssize(work_); }

 private:
  friend class Stream;
  std::vector<std::function<void()>> work_;
  std::set<Stream *> streams_;
  std::set<Stream *> open_;  ///< streams with work for which no other stream waits
  bool broken_ = false;
};

/// The work that a stream had been given when an event was recorded.
class Record {
 public:
  Record() = default;
  Record(std::shared_ptr<Graph> graph, Stream &stream, int64_t given) : graph_(std::move(graph)), stream_(&stream), given_(given) {}
  void end();
  void wait();
  bool ended();
  /// The graph of which it is part.
  const std::shared_ptr<Graph> &graph() const { return graph_; }

 private:
  friend class Stream;
  const std::shared_ptr<Graph> graph_;
  Stream *const stream_ = nullptr;
  const int64_t given_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ended_ = false;
};

/// As in CUDA, a wait for an event waits for its newest record at that time, which may outlive the
/// event.
class Event {
 public:
  void set(std::shared_ptr<Record> record);
  /// Returns nullptr if the event was never recorded.
  std::shared_ptr<Record> newest();

 private:
  std::mutex mutex_;
  std::shared_ptr<Record> newest_;
};

class Stream {
 public:
  explicit Stream(int64_t device);
  ~Stream();
  /// Waits for all streams of a device, as freeing its memory does.
  static void wait_for_all(int64_t device);

  int64_t device() const { return device_; }
  void give(std::function<void()> work);
  /// Returns false while the stream is captured.
  bool wait();
  void record(Event &event);
  /// Returns false if only one of both is captured and the other one cannot join the capture.
  bool follow(Event &event);
  bool captures() const;

 private:
  friend class Graph;
  void enqueue(std::function<void()> work);
  void run();

  const int64_t device_;
  std::shared_ptr<Graph> graph_;  ///< graph of the capture in progress
  int64_t given_ = 0;             ///< work given in that capture
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> work_;
  std::thread worker_;
};

}  // namespace emulated
