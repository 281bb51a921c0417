/// @file Streams that run work, and streams that are captured.
#include "tests/memory/emulated_streams.h"

#include <utility>

namespace emulated {
namespace {

/// Protects the captures of streams, events and graphs.
std::recursive_mutex &capture_mutex() {
  static auto *mutex = new std::recursive_mutex;
  return *mutex;
}

thread_local int64_t captures_under_way = 0;

std::mutex &streams_mutex() {
  static auto *mutex = new std::mutex;
  return *mutex;
}

std::set<Stream *> &streams() {
  static auto *all = new std::set<Stream *>;
  return *all;
}

}  // namespace

void Graph::begin(Stream &origin) {
  const std::lock_guard lock(capture_mutex());
  origin.graph_ = std::make_shared<Graph>();
  origin.graph_->streams_.insert(&origin);
  ++captures_under_way;
}

std::unique_ptr<Graph> Graph::end(Stream &origin) {
  const std::lock_guard lock(capture_mutex());
  const std::shared_ptr<Graph> graph = origin.graph_;
  --captures_under_way;
  for (Stream *stream : graph->streams_) {
    stream->graph_ = nullptr;
    stream->given_ = 0;
  }
  graph->open_.erase(&origin);
  if (graph->broken_ || !graph->open_.empty()) return nullptr;
  auto whole = std::make_unique<Graph>();
  whole->work_ = std::move(graph->work_);
  return whole;
}

bool Graph::begun_here() { return captures_under_way > 0; }

void Graph::run(Stream &stream) const {
  for (const std::function<void()> &work : work_) stream.give(work);
}

void Record::end() {
  const std::lock_guard lock(mutex_);
  ended_ = true;
  changed_.notify_all();
}

void Record::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return ended_; });
}

bool Record::ended() {
  const std::lock_guard lock(mutex_);
  return ended_;
}

void Event::set(std::shared_ptr<Record> record) {
  const std::lock_guard lock(mutex_);
  newest_ = std::move(record);
}

std::shared_ptr<Record> Event::newest() {
  const std::lock_guard lock(mutex_);
  return newest_;
}

Stream::Stream(int64_t device) : device_(device), worker_([this] { run(); }) {
  const std::lock_guard lock(streams_mutex());
  streams().insert(this);
}

Stream::~Stream() {
  {
    const std::lock_guard lock(streams_mutex());
    streams().erase(this);
  }
  enqueue(nullptr);
  worker_.join();
}

void Stream::wait_for_all(int64_t device) {
  std::vector<std::shared_ptr<Record>> records;
  {
    const std::lock_guard lock(streams_mutex());
    for (Stream *stream : streams()) {
      if (stream->device() != device) continue;
      records.push_back(std::make_shared<Record>());
      stream->enqueue([record = records.back()] { record->end(); });
    }
  }
  for (const std::shared_ptr<Record> &record : records) record->wait();
}

void Stream::enqueue(std::function<void()> work) {
  const std::lock_guard lock(mutex_);
  work_.push_back(std::move(work));
  changed_.notify_one();
}

void Stream::give(std::function<void()> work) {
  const std::lock_guard lock(capture_mutex());
  if (graph_ == nullptr) return enqueue(std::move(work));
  graph_->work_.push_back(std::move(work));
  graph_->open_.insert(this);
  ++given_;
}

bool Stream::captures() const {
  const std::lock_guard lock(capture_mutex());
  return graph_ != nullptr;
}

bool Stream::wait() {
  {
    const std::lock_guard lock(capture_mutex());
    if (graph_ != nullptr) graph_->broken_ = true;
    if (graph_ != nullptr) return false;
  }
  Record record;
  enqueue([&record] { record.end(); });
  record.wait();
  return true;
}

void Stream::record(Event &event) {
  const std::lock_guard lock(capture_mutex());
  if (graph_ != nullptr) return event.set(std::make_shared<Record>(graph_, *this, given_));
  auto record = std::make_shared<Record>();
  event.set(record);
  enqueue([record] { record->end(); });
}

bool Stream::follow(Event &event) {
  const std::lock_guard lock(capture_mutex());
  const std::shared_ptr<Record> record = event.newest();
  if (record == nullptr) return true;
  const std::shared_ptr<Graph> &graph = record->graph();
  if (graph == nullptr && graph_ == nullptr) {
    enqueue([record] { record->wait(); });
    return true;
  }
  if (graph == nullptr || (graph_ != nullptr && graph_ != graph)) {
    graph_->broken_ = true;
    return false;
  }
  graph_ = graph;
  graph_->streams_.insert(this);
  graph_->open_.insert(this);
  if (record->stream_ != this && record->stream_->given_ == record->given_) graph_->open_.erase(record->stream_);
  return true;
}

void Stream::run() {
  for (;;) {
    std::function<void()> work;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return !work_.empty(); });
      work = std::move(work_.front());
      work_.pop_front();
    }
    if (work == nullptr) return;
    work();
  }
}

}  // namespace emulated
