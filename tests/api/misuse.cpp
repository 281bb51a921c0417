/// @file Makes bad values for each kind of argument, and judges one misuse.
#include "misuse.h"

#include <filesystem>
#include <memory>
#include <random>

namespace zero::test {
namespace {

uint64_t word_of(const void *handle) { return reinterpret_cast<uintptr_t>(handle); }

std::string hex(uint64_t word) {
  char text[32];
  std::snprintf(text, sizeof text, "%#llx", static_cast<unsigned long long>(word));
  return text;
}

/// Values that are never valid handles: a handle of another kind, released ones, addresses, random
/// words.
std::vector<Bad> bad_handles(Bench &bench, const void *other_kind, bool may_be_null) {
  std::vector<Bad> bad;
  if (!may_be_null) bad.push_back({0, ZERO_E_BAD_HANDLE, "NULL"});
  bad.push_back({word_of(other_kind), ZERO_E_BAD_HANDLE, hex(word_of(other_kind))});
  bad.push_back({word_of(bench.world.stale_config), ZERO_E_BAD_HANDLE, hex(word_of(bench.world.stale_config))});
  bad.push_back({word_of(&bench), ZERO_E_BAD_HANDLE, "no handle of libzero"});
  static std::mt19937_64 random(7);
  for (int i = 0; i < 8; ++i) {
    const uint64_t word = random();
    bad.push_back({word, ZERO_E_BAD_HANDLE, hex(word)});
  }
  return bad;
}

/// A released handle of the same kind.
Bad stale(const void *handle) { return {word_of(handle), ZERO_E_BAD_HANDLE, "was released"}; }

zero_group *released_group() {
  zero_group *group = solo_group();
  zero_group_release(group);
  return group;
}

zero_buffer *released_buffer(Bench &bench) {
  zero_buffer *buffer = nullptr;
  EXPECT_EQ(ZERO_OK, zero_buffer_create(bench.world.group, nullptr, ZERO_DTYPE_U8, 1, &buffer)) << last_text();
  zero_buffer_release(buffer);
  return buffer;
}

zero_optimizer *released_optimizer(Bench &bench) {
  zero_optimizer *optimizer = bench.world.new_optimizer();
  zero_optimizer_release(optimizer);
  return optimizer;
}

zero_request *released_request(Bench &bench) {
  zero_request *request = nullptr;
  EXPECT_EQ(ZERO_OK, zero_group_barrier_async(bench.world.group, &request)) << last_text();
  zero_request_release(request);
  return request;
}

zero_checkpoint *released_checkpoint(Bench &bench) {
  zero_checkpoint *checkpoint = nullptr;
  EXPECT_EQ(ZERO_OK, zero_checkpoint_create(bench.world.group, nullptr, &checkpoint)) << last_text();
  zero_checkpoint_release(checkpoint);
  return checkpoint;
}

zero_save *released_save(Bench &bench) {
  zero_save *save = nullptr;
  EXPECT_EQ(ZERO_OK, zero_save_open(saved_folder(bench), &save)) << last_text();
  zero_save_release(save);
  return save;
}

zero_server *released_server(Bench &bench) {
  zero_server *server = nullptr;
  EXPECT_EQ(ZERO_OK, zero_server_create(bench.pair.rank[0], nullptr, 1, &server)) << last_text();
  zero_server_release(server);
  return server;
}

const char *make_folder(const char *name) {
  static std::vector<std::unique_ptr<std::string>> paths;
  const auto made = std::filesystem::temp_directory_path() / ("zero_misuse." + std::to_string(::getpid())) / name;
  std::filesystem::create_directories(made);
  paths.push_back(std::make_unique<std::string>(made.string()));
  return paths.back()->c_str();
}

Arg handle(std::function<const void *(Bench &)> other_kind, std::function<const void *(Bench &)> released, bool may_be_null = false) {
  return [=](Bench &bench) {
    std::vector<Bad> bad = bad_handles(bench, other_kind(bench), may_be_null);
    bad.push_back(stale(released(bench)));
    return bad;
  };
}

}  // namespace

Outputs::Outputs() { reset(); }

DeviceConfig::DeviceConfig() {
  ZERO_EXPECT_OK(zero_config_create(&handle));
  ZERO_EXPECT_OK(zero_config_set_i64(handle, ZERO_KEY_DEVICE, 0));
}

void Outputs::reset() {
  std::memset(static_cast<void *>(&memory), 0xa5, sizeof memory);
  memory.bounds.struct_size = sizeof memory.bounds;
  memory.result.struct_size = sizeof memory.result;
  memory.memory.struct_size = sizeof memory.memory;
  memory.traffic.struct_size = sizeof memory.traffic;
  memory.steps.struct_size = sizeof memory.steps;
  memory.verification.struct_size = sizeof memory.verification;
  memory.saved.struct_size = sizeof memory.saved;
  memory.served.struct_size = sizeof memory.served;
  request = nullptr;
}

Arg config_handle() {
  return handle([](Bench &bench) { return bench.world.group; }, [](Bench &bench) { return bench.world.stale_config; });
}
Arg optional_config() {
  return handle([](Bench &bench) { return bench.world.group; }, [](Bench &bench) { return bench.world.stale_config; }, true);
}
Arg group_handle() {
  return handle([](Bench &bench) { return bench.world.config; }, [](Bench &) { return released_group(); });
}
Arg buffer_handle() {
  return handle([](Bench &bench) { return bench.world.group; }, released_buffer);
}
Arg optimizer_handle() {
  return handle([](Bench &bench) { return bench.world.group; }, released_optimizer);
}
Arg request_handle() {
  return handle([](Bench &bench) { return bench.world.group; }, released_request);
}

Arg checkpoint_handle() {
  return handle([](Bench &bench) { return bench.world.group; }, released_checkpoint);
}

Arg save_handle() {
  return handle([](Bench &bench) { return bench.world.group; }, released_save);
}

Arg server_handle() {
  return handle([](Bench &bench) { return bench.world.group; }, released_server);
}

const char *empty_folder() {
  static const char *path = make_folder("empty");
  return path;
}

const char *saved_folder(Bench &bench) {
  static const char *path = [&bench] {
    const char *made = make_folder("saved");
    EXPECT_EQ(ZERO_OK, zero_optimizer_save(bench.world.running, made, nullptr)) << last_text();
    return made;
  }();
  return path;
}

zero_save *open_save(Bench &bench) {
  static zero_save *opened = [&bench] {
    zero_save *save = nullptr;
    EXPECT_EQ(ZERO_OK, zero_save_open(saved_folder(bench), &save)) << last_text();
    return save;
  }();
  return opened;
}

Arg address(const char *argument) {
  return [=](Bench &) { return std::vector<Bad>{{0, ZERO_E_INVALID_ARGUMENT, std::string(argument) + " is NULL"}}; };
}

Arg result_struct(const char *argument, bool may_be_null) {
  return [=](Bench &) {
    static std::array<std::array<uint64_t, 16>, std::size(kBadStructSizes)> structs;
    std::vector<Bad> bad;
    if (!may_be_null) bad.push_back({0, ZERO_E_INVALID_ARGUMENT, std::string(argument) + " is NULL"});
    for (size_t i = 0; i < structs.size(); ++i) {
      structs[i].fill(0xa5a5a5a5a5a5a5a5);
      structs[i][0] = kBadStructSizes[i];
      bad.push_back({word_of(&structs[i]), ZERO_E_INVALID_ARGUMENT, "struct_size is " + std::to_string(kBadStructSizes[i])});
    }
    return bad;
  };
}

Arg struct_size(uint64_t first) {
  return [=](Bench &) {
    std::vector<Bad> bad;
    for (const uint64_t nbytes : {uint64_t{0}, first - 8, first + 1, uint64_t{4104}, ~uint64_t{0}}) {
      bad.push_back({nbytes, ZERO_E_INVALID_ARGUMENT, "struct_size is " + std::to_string(nbytes)});
    }
    return bad;
  };
}

Arg count(const char *argument) {
  return [=](Bench &) {
    std::vector<Bad> bad;
    for (const int64_t value : {int64_t{-1}, INT64_MIN, INT64_MAX, INT64_MAX / 4 + 1}) {
      bad.push_back({static_cast<uint64_t>(value), ZERO_E_INVALID_ARGUMENT, std::string(argument) + " is " + std::to_string(value)});
    }
    return bad;
  };
}

Arg stream() {
  return [](Bench &bench) { return std::vector<Bad>{{word_of(&bench), ZERO_E_UNSUPPORTED, "stream is " + hex(word_of(&bench))}}; };
}

Arg values(std::vector<int64_t> bad_values, int32_t code) {
  return [=](Bench &) {
    std::vector<Bad> bad;
    for (const int64_t value : bad_values) bad.push_back({static_cast<uint64_t>(value), code, std::to_string(value)});
    return bad;
  };
}

Arg dtype() {
  return [](Bench &bench) {
    std::vector<Bad> bad = values({0, -1, 5, 19, 42, INT32_MAX, INT32_MIN})(bench);
    bad.push_back({ZERO_DTYPE_U16, ZERO_E_INVALID_ARGUMENT, "41"});
    return bad;
  };
}
Arg op() { return values({0, -1, 6, INT32_MAX, INT32_MIN}); }
Arg texts(std::vector<Bad> bad) {
  return [=](Bench &) { return bad; };
}
Bad text(const char *value, int32_t code, const char *named) { return {reinterpret_cast<uintptr_t>(value), code, named}; }
Arg anything() {
  return [](Bench &) { return std::vector<Bad>(); };
}

void judge(Bench &bench, const std::string &name, size_t argument, const Bad &bad, int32_t status, const Outputs::Memory &before) {
  ++bench.calls;
  const testing::AssertionResult right = failed_with(status, bad.code, bad.named);
  const bool untouched = std::memcmp(&before, &bench.outputs.memory, sizeof before) == 0 && bench.outputs.request == nullptr;
  if (right && untouched) return;
  ++bench.failures;
  ADD_FAILURE() << name << ", argument " << argument << " = " << static_cast<int64_t>(bad.word) << " (" << bad.number
                << "): " << (right ? "" : right.message()) << (untouched ? "" : " outputs were touched");
}

}  // namespace zero::test
