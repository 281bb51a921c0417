/// @file Ranks that train over MPI until the last one is killed. The others then read what lies on them, in every stage. Run by mpi_faults.sh,
/// which judges what each rank wrote to its own file.
#include "engine/compute/host_kernels.h"
#include "engine/optimizer/optimizer.h"
#include "group/connect/connect.h"
#include "tests/group/mpi_ranks.h"

#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <thread>
#include <vector>

namespace {

using zero::Config;
using zero::Optimizer;
using zero::Status;
using namespace zero::mpi_test;

constexpr int64_t kCounts[] = {3000, 700, 5000};
constexpr int64_t kStages = 4;
constexpr int kHealthySteps = 2;
using Bytes = std::vector<std::byte>;

/// All data through MPI, or with two ranks per pretended host.
Status connect(bool by_hosts, std::shared_ptr<zero::Group> *out) {
  Config config;
  if (by_hosts) ::setenv("ZERO_HOST_ID", std::to_string(launched_rank() / 2).c_str(), 1);
  if (!by_hosts) ZERO_TRY(config.set_i64(ZERO_KEY_MPI_SHARED, 0));
  const auto reducer = [](const zero::Place &) { return std::make_shared<zero::HostReducer>(1); };
  return run(zero::connect_mpi_group(ZERO_MPI_WORLD, zero::GroupOptions(config), reducer, out));
}

Status run(Optimizer &optimizer, zero::Task task) { return optimizer.queue()->run(std::move(task)); }

/// A training, and what lay on this rank after its last step.
struct Training {
  std::shared_ptr<Optimizer> optimizer;
  int64_t stage = 0;
  int64_t views = 0;
  Bytes shards;
  Bytes params;
};

Status begin(const std::shared_ptr<zero::Group> &group, int64_t stage, Training *out) {
  Config config;
  out->stage = stage;
  ZERO_TRY(config.set_i64(ZERO_KEY_STAGE, stage));
  ZERO_TRY(config.set_i64(ZERO_KEY_BUCKET_BYTES, 8192));
  ZERO_TRY(Optimizer::create(group, config, &out->optimizer));
  Optimizer &optimizer = *out->optimizer;
  for (const int64_t count : kCounts) {
    int64_t id = 0;
    ZERO_TRY(optimizer.add_param(nullptr, ("p" + std::to_string(count)).c_str(), ZERO_DTYPE_F32, &count, 1, &id));
  }
  ZERO_TRY(optimizer.seal_queue()->run(optimizer.seal()));
  ZERO_TRY(run(optimizer, optimizer.begin(ZERO_SOURCE_LOCAL)));
  return optimizer.view_count(&out->views);
}

Status step(Optimizer &optimizer) {
  const std::vector<float> gradient(5000, 0.5F);
  for (int64_t id = 0; id < 3; ++id) ZERO_TRY(optimizer.grad_ready(id, gradient.data(), 0, kCounts[id]));
  return run(optimizer, optimizer.step(nullptr));
}

void append(Bytes &bytes, const void *data, int64_t count) {
  const auto *from = static_cast<const std::byte *>(data);
  bytes.insert(bytes.end(), from, from + count * static_cast<int64_t>(sizeof(float)));
}

/// Shards through views, and through reads of the same ranges.
Status look(const Training &training, bool reads, Bytes *out) {
  Optimizer &optimizer = *training.optimizer;
  for (int64_t i = 0; i < training.views; ++i) {
    for (const int32_t slot : {ZERO_SLOT_PARAM, ZERO_SLOT_FIRST_MOMENT}) {
      zero::View view{};
      ZERO_TRY(optimizer.view(i, slot, &view));
      std::vector<float> read(static_cast<size_t>(view.count));
      if (reads) ZERO_TRY(run(optimizer, optimizer.read(view.param, slot, view.offset, read.data(), view.count)));
      append(*out, reads ? static_cast<const void *>(read.data()) : view.data, view.count);
    }
  }
  return {};
}

/// Whole parameters, but in stage 3.
Status look_at_params(const Training &training, Bytes *out) {
  for (int64_t id = 0; id < 3 && training.stage < 3; ++id) {
    void *data = nullptr;
    ZERO_TRY(run(*training.optimizer, training.optimizer->param_acquire(id, nullptr, 0, &data)));
    append(*out, data, kCounts[id]);
    (void)training.optimizer->param_release(id);
  }
  return {};
}

Status salvage(const Training &training) {
  Bytes viewed;
  Bytes read;
  Bytes params;
  ZERO_TRY(look(training, false, &viewed));
  ZERO_TRY(look(training, true, &read));
  ZERO_TRY(look_at_params(training, &params));
  ZERO_CHECK(viewed == training.shards && read == training.shards && params == training.params, ZERO_E_INTERNAL, "values differ");
  ZERO_CHECK(!viewed.empty(), ZERO_E_INTERNAL, "there are no values");
  return {};
}

/// Healthy steps of all trainings.
Status train(const std::shared_ptr<zero::Group> &group, std::vector<Training> &trainings) {
  for (int64_t stage = 0; stage < kStages; ++stage) {
    Training &training = trainings[static_cast<size_t>(stage)];
    ZERO_TRY(begin(group, stage, &training));
    for (int count = 0; count < kHealthySteps; ++count) ZERO_TRY(step(*training.optimizer));
    ZERO_TRY(look(training, false, &training.shards));
    ZERO_TRY(look_at_params(training, &training.params));
  }
  return {};
}

int run_ranks(bool by_hosts, int64_t deadline_ms, const std::string &folder) {
  std::shared_ptr<zero::Group> group;
  const Status connected = connect(by_hosts, &group);
  if (!connected.ok()) {
    std::fprintf(stderr, "%s\n", connected.text());
    return 1;
  }
  std::ofstream file(folder + "/rank." + std::to_string(group->rank()));
  file << "pid " << ::getpid() << std::endl;
  std::vector<Training> trainings(kStages);
  if (const Status status = train(group, trainings); !status.ok()) file << "unhealthy " << status.text() << std::endl;
  group->set_deadline_ms(deadline_ms);
  if (group->rank() == group->size() - 1) {
    file << "misbehaves" << std::endl;
    ::raise(SIGKILL);
  }
  const int64_t begin_ns = zero::now_ns();
  const Status lost = step(*trainings[0].optimizer);
  file << "report " << (zero::now_ns() - begin_ns) / 1'000'000 << " " << zero::status_name(lost.code()) << " " << lost.text() << std::endl;
  group->fail(lost);  // the others need not wait for the deadline once more
  for (const Training &training : trainings) {
    const bool refused = zero::poisons_group(step(*training.optimizer).code());
    const Status salvaged = salvage(training);
    file << (refused && salvaged.ok() ? "salvaged stage " : "not salvaged stage ") << training.stage << " " << salvaged.text() << std::endl;
  }
  // A rank that ends without MPI_Finalize makes mpirun end the others, so it waits for their reports first.
  std::this_thread::sleep_for(std::chrono::seconds(4));
  trainings.clear();
  group.reset();
  file << "released" << std::endl;
  return 1;
}

}  // namespace

int main(int argc, char **argv) {
  if (argc != 5) {
    std::fprintf(stderr, "usage: mpi_salvage_ranks kill flat|hosts DEADLINE_MS FOLDER\n");
    return 2;
  }
  return run_ranks(std::string(argv[2]) == "hosts", std::atoll(argv[3]), argv[4]);
}
