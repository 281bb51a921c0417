/// @file What saves and loads cost beside a bare loop of the same files and blocks past the page cache, torch.save and safetensors, and how
/// long asynchronous saves keep the program waiting beside a memcpy of the shard and a step. All of a round follow one another.
/// usage: checkpoint_benchmark [--folder=.] [--ranks=2] [--elements=124439808] [--rounds=9] [--peers=PYTHON]
#include "must.h"
#include "options.h"
#include "samples.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace zero::bench;
using Clock = std::chrono::steady_clock;

constexpr int64_t kBlock = 16 << 20;
constexpr int64_t kTensors = 100;
constexpr int64_t kPage = 4096;

double since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

int64_t peak_kb() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind("VmHWM:", 0) == 0) return std::stoll(line.substr(6));
  }
  return 0;
}

/// VmHWM counts from here on.
void begin_peak() { std::ofstream("/proc/self/clear_refs") << "5"; }

struct Given {
  std::string folder;
  int64_t ranks;
  int64_t elements;
  int64_t rounds;
  std::string python;  ///< empty: no peers
};

struct FreePages {
  void operator()(std::byte *memory) const { std::free(memory); }
};
using Pages = std::unique_ptr<std::byte, FreePages>;

Pages pages(int64_t nbytes) {
  Pages made(static_cast<std::byte *>(std::aligned_alloc(kPage, static_cast<size_t>(nbytes))));
  if (made == nullptr) fail("aligned_alloc", "no memory");
  std::memset(made.get(), 1, static_cast<size_t>(nbytes));
  return made;
}

/// The files of one rank: a model file and a state file.
std::vector<int64_t> raw_sizes(const Given &given) {
  const int64_t params = given.elements * 4 / given.ranks / kPage * kPage;
  return {params, 2 * params};
}

std::string raw_path(const Given &given, int64_t rank, size_t file) {
  return given.folder + "/raw." + std::to_string(rank) + "." + std::to_string(file);
}

/// What a save cannot be faster than: reserved blocks, whole writes, sync.
void raw_write(const Given &given, int64_t rank, const std::byte *block) {
  const std::vector<int64_t> sizes = raw_sizes(given);
  for (size_t file = 0; file < sizes.size(); ++file) {
    const int fd = ::open(raw_path(given, rank, file).c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_DIRECT, 0600);
    if (fd < 0 || ::fallocate(fd, 0, 0, sizes[file]) != 0) fail("raw loop", "cannot create its file with O_DIRECT");
    for (int64_t at = 0; at < sizes[file]; at += kBlock) {
      const int64_t nbytes = std::min(kBlock, sizes[file] - at);
      if (::pwrite(fd, block, static_cast<size_t>(nbytes), at) != nbytes) fail("raw loop", "a write was refused");
    }
    if (::fsync(fd) != 0 || ::close(fd) != 0) fail("raw loop", "fsync was refused");
  }
}

void raw_read(const Given &given, int64_t rank, std::byte *block) {
  const std::vector<int64_t> sizes = raw_sizes(given);
  for (size_t file = 0; file < sizes.size(); ++file) {
    const int fd = ::open(raw_path(given, rank, file).c_str(), O_RDONLY | O_DIRECT);
    if (fd < 0) fail("raw loop", "cannot open its file");
    for (int64_t at = 0; at < sizes[file]; at += kBlock) {
      const int64_t nbytes = std::min(kBlock, sizes[file] - at);
      if (::pread(fd, block, static_cast<size_t>(nbytes), at) != nbytes) fail("raw loop", "a read was refused");
    }
    ::close(fd);
  }
}

/// Seconds that the peer's program prints.
double peer(const Given &given, const char *library, const char *action) {
  const std::string file = given.folder + "/peer." + library;
  const std::string command = given.python + " " + std::string(ZERO_BENCHMARK_FOLDER) + "/checkpoint_peers.py " + library + " " + action + " " +
                              file + " " + std::to_string(given.elements * 12);
  FILE *const output = ::popen(command.c_str(), "r");
  double seconds = 0;
  if (output == nullptr || std::fscanf(output, "%lf", &seconds) != 1 || ::pclose(output) != 0) fail(command.c_str(), "failed");
  return seconds;
}

/// Rank 0's times, of all ranks together.
using Table = std::map<std::string, Samples>;

/// Of a program's work between two saves: longer than any save so far.
std::atomic<double> pause_seconds = 2;

class Rank {
 public:
  Rank(const Given &given, int64_t rank, std::barrier<> &all, Table &table) : given_(given), rank_(rank), all_(all), table_(table) {
    must(zero_group_create_local("checkpoint", rank, given.ranks, nullptr, &group_));
    zero_config *config = nullptr;
    must(zero_config_create(&config));
    must(zero_config_set_i64(config, ZERO_KEY_STAGE, 1));
    must(zero_optimizer_create(group_, config, &optimizer_));
    zero_config_release(config);
    const int64_t count = given.elements / kTensors;
    for (int64_t id = 0; id < kTensors; ++id) {
      int64_t number = 0;
      must(zero_optimizer_add_param(optimizer_, nullptr, ("tensor." + std::to_string(id)).c_str(), ZERO_DTYPE_F32, &count, 1, &number));
    }
    must(zero_optimizer_seal(optimizer_));
    for (int64_t id = 0; id < kTensors; ++id) must(zero_optimizer_init_param(optimizer_, id, ZERO_INITIALISER_NORMAL, 0, 1, id));
    must(zero_optimizer_begin(optimizer_, ZERO_SOURCE_SHARDS));
    grad_.assign(static_cast<size_t>(count), 0.5F);
    for (const int32_t snapshot : {ZERO_SNAPSHOT_COPY, ZERO_SNAPSHOT_LAZY}) checkpoints_.push_back(make_checkpoint(snapshot));
    block_ = pages(kBlock);
    shard_nbytes_ = given.elements * 12 / given.ranks;
    from_ = pages(shard_nbytes_);
    to_ = pages(shard_nbytes_);
    step();
    for (zero_checkpoint *checkpoint : checkpoints_) (void)save_beside_a_step(checkpoint);  // their copies have pages from here on
  }
  Rank(const Rank &) = delete;
  ~Rank() {
    for (zero_checkpoint *checkpoint : checkpoints_) zero_checkpoint_release(checkpoint);
    zero_optimizer_release(optimizer_);
    zero_group_release(group_);
  }

  void round() {
    timed("raw write", [&] { raw_write(given_, rank_, block_.get()); });
    timed("save", [&] { must(zero_checkpoint_save(checkpoints_[0], given_.folder.c_str(), nullptr, nullptr)); });
    peers("save");
    timed("raw read", [&] { raw_read(given_, rank_, block_.get()); });
    zero_checkpoint_result loaded;
    must(zero_checkpoint_result_init(&loaded, sizeof loaded));
    timed("load", [&] { must(zero_checkpoint_load(checkpoints_[0], given_.folder.c_str(), ZERO_PART_ALL, nullptr, &loaded)); });
    if (rank_ == 0) table_["load, reading of rank 0"].add(1e-9 * static_cast<double>(loaded.write_ns));
    peers("load");
    timed("memcpy of the shard", [&] { std::memcpy(to_.get(), from_.get(), static_cast<size_t>(shard_nbytes_)); });
    for (size_t kind = 0; kind < checkpoints_.size(); ++kind) {
      const zero_checkpoint_result result = save_beside_a_step(checkpoints_[kind]);
      const char *const name = kind == 0 ? "stall of a copy" : "stall of a lazy snapshot";
      if (rank_ != 0) continue;
      table_[name].add(1e-9 * static_cast<double>(result.stall_ns));
      table_[std::string(name) + ", MiB copied"].add(static_cast<double>(result.snapshot_nbytes) / (1 << 20));
    }
  }

  /// Beyond what the process held before.
  void print_peaks() {
    const auto peak = [&](const char *name, const std::function<void()> &work) {
      all_.arrive_and_wait();
      int64_t before = 0;
      if (rank_ == 0) {
        begin_peak();
        before = peak_kb();
      }
      all_.arrive_and_wait();
      work();
      all_.arrive_and_wait();
      if (rank_ == 0) std::printf("peak memory of a %s beyond the run, MiB per rank: %.1f\n", name, double(peak_kb() - before) / 1024 / double(given_.ranks));
    };
    peak("save", [&] { must(zero_checkpoint_save(checkpoints_[0], given_.folder.c_str(), nullptr, nullptr)); });
    peak("load", [&] { must(zero_checkpoint_load(checkpoints_[0], given_.folder.c_str(), ZERO_PART_ALL, nullptr, nullptr)); });
  }

 private:
  zero_checkpoint *make_checkpoint(int32_t snapshot) {
    zero_config *config = nullptr;
    zero_checkpoint *checkpoint = nullptr;
    must(zero_config_create(&config));
    must(zero_config_set_i64(config, ZERO_KEY_CHECKPOINT_SNAPSHOT, snapshot));
    must(zero_config_set_i64(config, ZERO_KEY_CHECKPOINT_KEEP, 1));
    must(zero_checkpoint_create(group_, config, &checkpoint));
    must(zero_checkpoint_add_optimizer(checkpoint, "", optimizer_));
    zero_config_release(config);
    return checkpoint;
  }

  void timed(const std::string &name, const std::function<void()> &work) {
    all_.arrive_and_wait();
    const auto begin = Clock::now();
    work();
    all_.arrive_and_wait();
    if (rank_ != 0) return;
    table_[name].add(since(begin));
    pause_seconds = std::max(pause_seconds.load(), 2 * since(begin));
  }

  void peers(const char *action) {
    if (rank_ == 0 && !given_.python.empty()) {
      for (const char *library : {"torch", "safetensors"}) table_[std::string(library) + " " + action].add(peer(given_, library, action));
    }
    all_.arrive_and_wait();
  }

  void give_gradients() {
    for (int64_t id = 0; id < kTensors; ++id)
      must(zero_optimizer_grad_ready(optimizer_, id, grad_.data(), 0, static_cast<int64_t>(grad_.size()), nullptr));
  }
  void step() {
    give_gradients();
    must(zero_optimizer_step(optimizer_, nullptr, nullptr));
  }

  /// A model's forward and backward pass take longer than the write does; here the program sleeps as long.
  zero_checkpoint_result save_beside_a_step(zero_checkpoint *checkpoint) {
    zero_request *request = nullptr;
    zero_checkpoint_result result;
    must(zero_checkpoint_result_init(&result, sizeof result));
    all_.arrive_and_wait();
    must(zero_checkpoint_save_async(checkpoint, given_.folder.c_str(), nullptr, &result, &request));
    std::this_thread::sleep_for(std::chrono::duration<double>(pause_seconds.load()));
    step();
    must(zero_request_wait(request));
    zero_request_release(request);
    all_.arrive_and_wait();
    return result;
  }

  const Given &given_;
  const int64_t rank_;
  std::barrier<> &all_;
  Table &table_;
  zero_group *group_ = nullptr;
  zero_optimizer *optimizer_ = nullptr;
  std::vector<float> grad_;
  std::vector<zero_checkpoint *> checkpoints_;
  Pages block_;
  int64_t shard_nbytes_ = 0;
  Pages from_;
  Pages to_;
};

void print(const Table &table) {
  std::printf("%-40s %9s %9s %9s\n", "", "median", "min", "max");
  for (const auto &[name, samples] : table) std::printf("%-40s %9.3f %9.3f %9.3f\n", name.c_str(), samples.median(), samples.least(), samples.most());
  const auto ratio = [&table](const char *name, const char *over) {
    if (table.count(name) == 0 || table.count(over) == 0) return;
    std::printf("%s over %s: %.3f\n", name, over, table.at(name).median() / table.at(over).median());
  };
  ratio("raw write", "save");
  ratio("raw read", "load");
  ratio("safetensors save", "save");
  ratio("safetensors save", "raw write");
  ratio("torch save", "save");
  ratio("safetensors load", "load");
  ratio("safetensors load", "raw read");
  ratio("torch load", "load");
  ratio("stall of a copy", "memcpy of the shard");
}

}  // namespace

int main(int argc, char **argv) {
  Options options(argc, argv, "[--folder=.] [--ranks=2] [--elements=124439808] [--rounds=9] [--peers=PYTHON]");
  Given given;
  given.folder = options.text("folder", ".") + "/checkpoint_benchmark." + std::to_string(::getpid());
  given.ranks = std::max<int64_t>(options.number("ranks", 2), 1);
  given.elements = std::max<int64_t>(options.number("elements", 124'439'808) / kTensors, 1) * kTensors;
  given.rounds = options.number("rounds", 9);
  given.python = options.text("peers", "");
  options.finish();
  std::filesystem::create_directories(given.folder);
  std::barrier<> all(given.ranks);
  Table table;
  {
    std::vector<std::jthread> ranks;
    for (int64_t number = 0; number < given.ranks; ++number) {
      ranks.emplace_back([&, number] {
        Rank rank(given, number, all, table);
        for (int64_t round = 0; round < given.rounds; ++round) rank.round();
        rank.print_peaks();
      });
    }
  }
  std::filesystem::remove_all(given.folder);
  std::printf("%lld ranks, %lld elements with two states each, %.2f GB; seconds unless said\n", static_cast<long long>(given.ranks),
              static_cast<long long>(given.elements), 12e-9 * static_cast<double>(given.elements));
  print(table);
  return 0;
}
