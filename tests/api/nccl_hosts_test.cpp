/// @file zero_group_create_nccl and zero_group_unique_id: groups that meet over TCP by an id or by
/// torchrun's variables. Ranks are requests of one process, each begun on a host of its own as far
/// as it knows.
#include "nccl_world.h"
#include "variables.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <random>
#include <regex>
#include <thread>
#include <utility>

namespace zero::test::nccl_hosts_test {
namespace {

using Id = std::array<char, 256>;

/// Returns a free port of this host, outside the range of ports that the system assigns itself.
int64_t free_port() {
  static std::mt19937_64 random(std::random_device{}());
  for (;;) {
    const auto port = static_cast<uint16_t>(16384 + random() % 16384);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_ANY);
    address.sin_port = htons(port);
    const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const bool free = ::bind(socket, reinterpret_cast<const sockaddr *>(&address), sizeof address) == 0;
    ::close(socket);
    if (free) return port;
  }
}

std::string id_of_this_host(int64_t port = 0) {
  const NcclConfig keys(0);
  ZERO_EXPECT_OK(zero_config_set_str(keys.config, ZERO_KEY_RENDEZVOUS_HOST, "127.0.0.1"));
  ZERO_EXPECT_OK(zero_config_set_i64(keys.config, ZERO_KEY_RENDEZVOUS_PORT, port));
  Id id{};
  int64_t nbytes = 0;
  ZERO_EXPECT_OK(zero_group_unique_id(keys.config, id.data(), static_cast<int64_t>(id.size()), &nbytes));
  EXPECT_EQ(nbytes, static_cast<int64_t>(std::strlen(id.data())) + 1);
  return id.data();
}

/// The host of each rank: 0 0 1.
std::string host_of(int64_t rank) { return std::to_string(rank / 2); }

/// Begins every rank with begin(rank, config, out), as if on its host, and runs body(self) on a
/// thread for each.
template <class Body>
void run_hosts(const std::function<int32_t(int64_t, const zero_config *, zero_request **)> &begin, Body &&body) {
  std::vector<zero_request *> requests(static_cast<size_t>(kRanks));
  for (int64_t rank = 0; rank < kRanks; ++rank) {
    const NcclConfig keys(rank % kDevices);
    Variables variables;
    variables.set("ZERO_HOST_ID", host_of(rank));
    ZERO_EXPECT_OK(begin(rank, keys.config, &requests[static_cast<size_t>(rank)]));
  }
  run_thread_ranks(kRanks, [&](int64_t rank) {
    Rank self(requests[static_cast<size_t>(rank)], rank);
    if (self.group != nullptr) body(self);
  });
}

template <class Body>
void run_hosts(const std::string &id, Body &&body) {
  run_hosts([&](int64_t rank, const zero_config *config,
                zero_request **out) { return zero_group_create_nccl_async(id.c_str(), rank, kRanks, config, out); },
            std::forward<Body>(body));
}

int64_t number(const zero_group *group, int32_t (*read)(const zero_group *, int64_t *)) {
  int64_t value = -1;
  ZERO_EXPECT_OK(read(group, &value));
  return value;
}

void expect_places(const Rank &self) {
  EXPECT_EQ(number(self.group, zero_group_rank), self.rank);
  EXPECT_EQ(number(self.group, zero_group_size), kRanks);
  EXPECT_EQ(number(self.group, zero_group_host_count), 2);
  EXPECT_EQ(number(self.group, zero_group_local_rank), self.rank % 2);
  EXPECT_EQ(number(self.group, zero_group_local_size), self.rank < 2 ? 2 : 1);
}

void expect_sums(Rank &self) {
  float *data = self.memory(kCount, static_cast<float>(self.rank + 1));
  ZERO_EXPECT_OK(zero_group_all_reduce(self.group, data, kCount, data, kCount, ZERO_DTYPE_F32, ZERO_REDUCE_SUM, self.stream));
  EXPECT_EQ(self.seen(data, kCount), all(kCount, kRanks * (kRanks + 1) / 2));
  for (const int64_t count : {int64_t{10}, kCount}) {
    std::vector<float> host(static_cast<size_t>(count), static_cast<float>(self.rank + 1));
    ZERO_EXPECT_OK(zero_group_all_reduce(self.group, host.data(), count, host.data(), count, ZERO_DTYPE_F32, ZERO_REDUCE_SUM, nullptr));
    EXPECT_EQ(host, all(count, kRanks * (kRanks + 1) / 2));
  }
}

TEST(NcclHosts, RanksMeetByAnIdThatIsCarriedToThem) {
  run_hosts(id_of_this_host(), [](Rank &self) {
    expect_places(self);
    expect_sums(self);
  });
}

TEST(NcclHosts, RanksMeetByAHostAndPortThatAllKnow) {
  run_hosts("127.0.0.1:" + std::to_string(free_port()) + "/trainer", [](Rank &self) { expect_sums(self); });
}

TEST(NcclHosts, RanksOfTorchrunMeetAtItsMaster) {
  const int64_t port = free_port();
  const auto begin = [&](int64_t rank, const zero_config *config, zero_request **out) {
    Variables variables;
    variables.set("RANK", std::to_string(rank));
    variables.set("WORLD_SIZE", std::to_string(kRanks));
    variables.set("LOCAL_RANK", std::to_string(rank % 2));
    variables.set("LOCAL_WORLD_SIZE", rank < 2 ? "2" : "1");
    variables.set("MASTER_ADDR", "127.0.0.1");
    variables.set("MASTER_PORT", std::to_string(port - 1));
    variables.set("TORCHELASTIC_RUN_ID", "job/1: a");
    return zero_group_create_env_async(config, out);
  };
  run_hosts(begin, [](Rank &self) {
    expect_places(self);
    expect_sums(self);
  });
}

/// A job's number is new in each run: the port follows from it.
TEST(NcclHosts, TasksOfSlurmMeetAtTheirFirstNode) {
  const std::string job = std::to_string(free_port());
  const auto begin = [&](int64_t rank, const zero_config *config, zero_request **out) {
    Variables variables;
    variables.set("SLURM_JOB_ID", job);
    variables.set("SLURM_STEP_ID", "0");
    variables.set("SLURM_PROCID", std::to_string(rank));
    variables.set("SLURM_STEP_NUM_TASKS", std::to_string(kRanks));
    variables.set("SLURM_STEP_NUM_NODES", "2");
    variables.set("SLURM_STEP_NODELIST", "127.0.0.[1-2]");
    return zero_group_create_env_async(config, out);
  };
  run_hosts(begin, [](Rank &self) {
    expect_places(self);
    expect_sums(self);
  });
}

TEST(NcclHosts, PodsMeetAtTheirFirst) {
  const int64_t port = free_port();
  const auto begin = [&](int64_t rank, const zero_config *config, zero_request **out) {
    Variables variables;
    variables.set("RANK", std::to_string(rank));
    variables.set("WORLD_SIZE", std::to_string(kRanks));
    variables.set("MASTER_ADDR", rank == 0 ? "localhost" : "127.0.0.1");
    variables.set("MASTER_PORT", std::to_string(port - 1));
    variables.set("PET_NPROC_PER_NODE", "1");
    return zero_group_create_env_async(config, out);
  };
  run_hosts(begin, [](Rank &self) { expect_sums(self); });
}

TEST(NcclHosts, WithoutNcclHostsOfTorchrunAreAnError) {
  Variables variables;
  variables.set("RANK", "0");
  variables.set("WORLD_SIZE", "4");
  variables.set("LOCAL_RANK", "0");
  variables.set("LOCAL_WORLD_SIZE", "2");
  variables.set("MASTER_ADDR", "127.0.0.1");
  variables.set("MASTER_PORT", "29500");
  zero_group *group = nullptr;
  EXPECT_TRUE(failed_with(zero_group_create_env(nullptr, &group), ZERO_E_LAUNCHER, "ZERO_KEY_NCCL"));
}

TEST(NcclHosts, MessagesCrossHosts) {
  run_hosts(id_of_this_host(), [](Rank &self) {
    const int64_t next = (self.rank + 1) % kRanks;
    const int64_t previous = (self.rank + kRanks - 1) % kRanks;
    for (const int64_t count : {int64_t{1}, kCount}) {
      std::vector<float> sent(static_cast<size_t>(count), static_cast<float>(self.rank + 1));
      float *got = self.memory(count, 0, 0);
      zero_request *request = nullptr;
      ZERO_EXPECT_OK(zero_group_send_async(self.group, sent.data(), count, ZERO_DTYPE_F32, next, nullptr, &request));
      ZERO_EXPECT_OK(zero_group_recv(self.group, got, count, ZERO_DTYPE_F32, previous, self.stream));
      ZERO_EXPECT_OK(zero_request_wait(request));
      zero_request_release(request);
      EXPECT_EQ(self.seen(got, count), all(count, static_cast<float>(previous + 1)));
    }
  });
}

TEST(NcclHosts, SplitGroupsCrossHostsToo) {
  run_hosts(id_of_this_host(), [](Rank &self) {
    zero_group *outer = nullptr;  // ranks 0 and 2
    ZERO_ASSERT_OK(zero_group_split(self.group, self.rank % 2, 0, &outer));
    const int64_t members = number(outer, zero_group_size);
    EXPECT_EQ(members, self.rank % 2 == 0 ? 2 : 1);
    float *data = self.memory(kCount, 1);
    ZERO_EXPECT_OK(zero_group_all_reduce(outer, data, kCount, data, kCount, ZERO_DTYPE_F32, ZERO_REDUCE_SUM, self.stream));
    EXPECT_EQ(self.seen(data, kCount), all(kCount, static_cast<float>(members)));
    zero_group_release(outer);
  });
}

TEST(NcclHosts, GroupsTellWhatTheyStandOn) {
  run_hosts(id_of_this_host(), [](Rank &self) {
    std::array<char, 1024> text{};
    ZERO_EXPECT_OK(zero_describe_group(self.group, text.data(), static_cast<int64_t>(text.size()), nullptr));
    const std::string place = ", rank " + std::to_string(self.rank) + " of 3, local rank " + std::to_string(self.rank % 2);
    EXPECT_NE(std::string(text.data()).find("transport nccl over local and tcp" + place), std::string::npos) << text.data();
  });
}

TEST(NcclHosts, ARankThatLeavesIsNamedOnTheOtherHost) {
  run_hosts(id_of_this_host(), [](Rank &self) {
    if (self.rank == 2) return;
    EXPECT_TRUE(failed_with(zero_group_barrier(self.group), ZERO_E_PEER_LEFT, "rank 2"));
  });
}

TEST(NcclHosts, AnIdNamesThisHostAndAFreePort) {
  Id id{};
  int64_t nbytes = 0;
  ZERO_ASSERT_OK(zero_group_unique_id(nullptr, id.data(), static_cast<int64_t>(id.size()), &nbytes));
  EXPECT_TRUE(std::regex_match(id.data(), std::regex(R"((\[[0-9a-f:]+\]|[0-9.]+):[0-9]+/[A-Za-z0-9._-]+)"))) << id.data();
  Id other{};
  ZERO_ASSERT_OK(zero_group_unique_id(nullptr, other.data(), static_cast<int64_t>(other.size()), nullptr));
  EXPECT_STRNE(id.data(), other.data());
}

TEST(NcclHosts, AnIdIsMadeOnlyWhereItHasRoom) {
  Id id{};
  int64_t nbytes = 0;
  EXPECT_TRUE(failed_with(zero_group_unique_id(nullptr, id.data(), 255, nullptr), ZERO_E_INVALID_ARGUMENT, "at least 256"));
  ZERO_EXPECT_OK(zero_group_unique_id(nullptr, nullptr, 0, &nbytes));
  EXPECT_EQ(nbytes, 256);
}

TEST(NcclHosts, APortThatIsTakenIsAnError) {
  const std::string id = id_of_this_host();
  const std::string port = id.substr(id.find(':') + 1, id.find('/') - id.find(':') - 1);
  const NcclConfig keys(0);
  ZERO_ASSERT_OK(zero_config_set_i64(keys.config, ZERO_KEY_RENDEZVOUS_PORT, std::stoll(port)));
  Id other{};
  const int32_t status = zero_group_unique_id(keys.config, other.data(), static_cast<int64_t>(other.size()), nullptr);
  EXPECT_TRUE(failed_with(status, ZERO_E_SYSTEM, port));
}

TEST(NcclHosts, ADeviceMustBeNamed) {
  const NcclConfig keys(-1);
  zero_group *group = nullptr;
  EXPECT_TRUE(failed_with(zero_group_create_nccl("127.0.0.1:9/x", 0, 1, keys.config, &group), ZERO_E_INVALID_ARGUMENT, "ZERO_KEY_DEVICE"));
  EXPECT_TRUE(failed_with(zero_group_create_nccl("127.0.0.1:9/x", 0, 1, nullptr, &group), ZERO_E_INVALID_ARGUMENT, "ZERO_KEY_DEVICE"));
}

TEST(NcclHosts, AWorldOfOneMeetsNobody) {
  const NcclConfig keys(0);
  zero_group *group = nullptr;
  ZERO_ASSERT_OK(zero_group_create_nccl("nowhere.invalid:1/x", 0, 1, keys.config, &group));
  EXPECT_EQ(number(group, zero_group_size), 1);
  ZERO_EXPECT_OK(zero_group_barrier(group));
  zero_group_release(group);
}

TEST(NcclHosts, RanksThatDoNotComeAreNamed) {
  const NcclConfig keys(0);
  ZERO_ASSERT_OK(zero_config_set_i64(keys.config, ZERO_KEY_RENDEZVOUS_MS, 300));
  zero_group *group = nullptr;
  EXPECT_TRUE(failed_with(zero_group_create_nccl(id_of_this_host().c_str(), 0, 3, keys.config, &group), ZERO_E_RENDEZVOUS, "rank 2"));
  const std::string nobody = "127.0.0.1:" + std::to_string(free_port()) + "/x";
  EXPECT_TRUE(failed_with(zero_group_create_nccl(nobody.c_str(), 1, 3, keys.config, &group), ZERO_E_RENDEZVOUS, "127.0.0.1"));
}

}  // namespace
}  // namespace zero::test::nccl_hosts_test
