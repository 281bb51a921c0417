/// @file Streams, events and graphs of emulated devices: work in order, on a thread per stream, or kept for later.
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

/// CUDA's error for what cannot become part of a graph.
constexpr int32_t kCaptured = 900;

class Stream;

/// What streams were given while they were captured. Run in that order, which is one that the streams' own orders allow.
class Graph {
 public:
  static void begin(Stream &origin);
  /// nullptr: something could not become part of it, or a stream did not come back to the first one.
  static std::unique_ptr<Graph> end(Stream &origin);
  /// Whether the calling thread captures a stream, so that it must neither wait for anything nor make or free memory.
  static bool begun_here();

  void run(Stream &stream) const;
  int64_t nodes() const { return std::ssize(work_); }

 private:
  friend class Stream;
  std::vector<std::function<void()>> work_;
  std::set<Stream *> streams_;
  std::set<Stream *> open_;  ///< streams with work that no other one waits for
  bool broken_ = false;
};

/// What a stream was given when an event was recorded.
class Record {
 public:
  Record() = default;
  Record(std::shared_ptr<Graph> graph, Stream &stream, int64_t given) : graph_(std::move(graph)), stream_(&stream), given_(given) {}
  void end();
  void wait();
  bool ended();
  /// The one that it is part of.
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

/// As in CUDA, who waits for an event waits for its newest record at that time, which may outlive the event.
class Event {
 public:
  void set(std::shared_ptr<Record> record);
  /// nullptr: never recorded.
  std::shared_ptr<Record> newest();

 private:
  std::mutex mutex_;
  std::shared_ptr<Record> newest_;
};

class Stream {
 public:
  explicit Stream(int64_t device);
  ~Stream();
  /// As freeing memory of a device does.
  static void wait_for_all(int64_t device);

  int64_t device() const { return device_; }
  void give(std::function<void()> work);
  /// False while the stream is captured.
  bool wait();
  void record(Event &event);
  /// False where one of both is captured and the other one is not and cannot be.
  bool follow(Event &event);
  bool captures() const;

 private:
  friend class Graph;
  void enqueue(std::function<void()> work);
  void run();

  const int64_t device_;
  std::shared_ptr<Graph> graph_;  ///< of the capture under way
  int64_t given_ = 0;             ///< in it
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> work_;
  std::thread worker_;
};

}  // namespace emulated
