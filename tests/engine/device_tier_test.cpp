/// @file Optimizers that keep everything on a device: the bits of the host whatever the stage, recipe and transport, and the order of work
/// between the caller's streams and the library's.
#include "tests/engine/device_memory.h"
#include "tests/engine/rank_worlds.h"
#include "tests/engine/training.h"
#include "tests/sizes.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <limits>

namespace zero::test::device_tier_test {
namespace {

const DeviceMemory kDevice(0);

using KeptOnDevice = DeviceTest;

Manner kept_on(const DeviceMemory &device, Manner manner) {
  manner.remote = &device;
  manner.kept_there = true;
  manner.one_copy = false;
  return manner;
}

Manner in_stage(int64_t stage) {
  Manner manner;
  manner.stage = stage;
  manner.bucket_nbytes = 65'536;
  return kept_on(kDevice, manner);
}

Model model_of(int64_t ranks) {
  Model model;
  model.ranks = ranks;
  model.counts = {3000, 17, 0, 1024, 70'000};
  return model;
}

/// In all stages, in manners by chance.
void expect_bits_of_the_host(const Model &model, uint64_t seed) {
  run_world(model.ranks, [&](const std::shared_ptr<Group> &group) {
    const Outcome expected = train(group, model, Manner{});
    for (int64_t stage = 0; stage < 4; ++stage) {
      Manner manner = kept_on(kDevice, random_manner(seed * 10 + static_cast<uint64_t>(stage), model.ranks));
      manner.stage = stage;
      manner.lends_host = seed % 3 == 0;
      expect_same(expected, train(group, model, manner), model, manner, group->rank());
    }
  });
}

TEST_F(KeptOnDevice, TrainingsHaveTheBitsOfTheHost) {
  const int64_t models = full_tests() ? 200 : few_tests() ? 4 : 16;
  for (int64_t i = 0; i < models; ++i) {
    const auto seed = static_cast<uint64_t>(i) + 80'001;
    const int64_t ranks = std::array{1, 2, 4, 3}[static_cast<size_t>(i % 4)];
    expect_bits_of_the_host(random_model_for_devices(seed, ranks), seed);
  }
}

/// Updates that need whole tensors, which ranks hold parts of.
TEST_F(KeptOnDevice, UpdatesOfWholeTensorsHaveTheBitsOfTheHost) {
  const int64_t models = full_tests() ? 40 : few_tests() ? 2 : 4;
  for (const char *algorithm : {"lamb", "muon"}) {
    for (int64_t i = 0; i < models; ++i) {
      const auto seed = static_cast<uint64_t>(i) + 82'001;
      const int64_t ranks = 4 - i % 4;
      Model model = random_model_for_devices(seed, ranks);
      model.algorithm = algorithm;
      model.counts.push_back(3000);
      expect_bits_of_the_host(model, seed);
    }
  }
}

TEST_F(KeptOnDevice, TensorsOfManyPartsComeFromTheHost) {
  Model model;
  model.ranks = 1;
  model.counts = {(5 << 20) / 4 + 3, 9};
  model.steps = 1;
  run_world(1, [&](const std::shared_ptr<Group> &group) {
    Manner manner = in_stage(1);
    manner.caller_memory = true;
    manner.lends_host = true;
    EXPECT_EQ(differing(train(group, model, Manner{}), train(group, model, manner)), 0);
  });
}

TEST_F(KeptOnDevice, InitialisersHaveTheBitsOfTheHost) {
  for (const bool coded : {false, true}) {
    Model model = model_of(2);
    model.recipe.dtype = DType::bf16;
    model.recipe.coded = coded;
    run_world(2, [&](const std::shared_ptr<Group> &group) {
      std::vector<std::vector<std::byte>> slots;
      for (const Manner &manner : {Manner{.stage = 3}, in_stage(3)}) {
        const auto optimizer = make_optimizer(group, model, manner);
        for (int64_t id = 0; id < model.tensors(); ++id)
          expect_ok(optimizer->init_param(id, ZERO_INITIALISER_NORMAL, 0, 0.5, 7), "init_param");
        expect_ok(run_task(*optimizer, optimizer->begin(ZERO_SOURCE_SHARDS)), "begin");
        slots.push_back(read_slots(*optimizer, model));
      }
      EXPECT_EQ(slots[0], slots[1]);
    });
  }
}

/// Writes entries of a slot of tensor 0, on rank 0.
template <class Entry>
void write_entries(Optimizer &optimizer, int32_t slot, int64_t offset, const std::vector<Entry> &entries) {
  const int64_t mine = optimizer.group()->rank() == 0 ? std::ssize(entries) : 0;
  expect_ok(run_task(optimizer, optimizer.write(0, slot, offset, entries.data(), mine)), "write");
}

/// Masters take the values of lines whose codes or scales were edited, and edited masters become codes.
TEST_F(KeptOnDevice, EditedParametersAreTakenOverAsOnTheHost) {
  Every every(3);
  for (const bool coded : {false, true}) {
    for (int64_t stage = 0; stage < 4; ++stage) {
      if (!every.next()) continue;
      Model model = model_of(2);
      model.recipe.dtype = DType::bf16;
      model.recipe.average = true;
      model.recipe.coded = coded;
      run_world(2, [&](const std::shared_ptr<Group> &group) {
        std::vector<std::vector<std::byte>> slots;
        Manner host;
        host.stage = stage;
        for (const Manner &manner : {host, in_stage(stage)}) {
          const auto optimizer = begun_optimizer(group, model, manner);
          (void)train_step(*optimizer, model, manner, 0);
          if (coded) {
            write_entries<uint8_t>(*optimizer, ZERO_SLOT_PARAM, 300, {0x38});
            write_entries<float>(*optimizer, ZERO_SLOT_PARAM_SCALE, 9, {0.5F});
          } else {
            write_entries<uint16_t>(*optimizer, ZERO_SLOT_PARAM, 300, {0x3fa0});
          }
          expect_ok(run_task(*optimizer, optimizer->begin(ZERO_SOURCE_SHARDS)), "begin");
          slots.push_back(read_slots(*optimizer, model));
          write_entries<float>(*optimizer, ZERO_SLOT_MASTER, 1234, {77.5F});
          expect_ok(run_task(*optimizer, optimizer->begin(ZERO_SOURCE_SHARDS)), "begin");
          (void)train_step(*optimizer, model, manner, 1);
          slots.push_back(read_slots(*optimizer, model));
        }
        EXPECT_EQ(slots[0], slots[2]) << "stage " << stage << " coded " << coded;
        EXPECT_EQ(slots[1], slots[3]) << "stage " << stage << " coded " << coded;
        EXPECT_NE(slots[0], slots[1]);
      });
    }
  }
}

TEST_F(KeptOnDevice, ReplicasThatDifferAreFound) {
  const Model model = model_of(2);
  run_world(2, [&](const std::shared_ptr<Group> &group) {
    const auto optimizer = make_optimizer(group, model, in_stage(1));
    const auto value = static_cast<std::byte>(group->rank());
    const auto acquire = [&](void *stream) -> const void * {
      void *data = nullptr;
      expect_ok(run_task(*optimizer, optimizer->param_acquire(0, nullptr, 0, &data, stream)), "param_acquire");
      return data;
    };
    kDevice.write(acquire, std::vector<std::byte>(12'000, value), [&](void *) { expect_ok(optimizer->param_release(0), "param_release"); });
    const Status status = run_task(*optimizer, optimizer->begin(ZERO_SOURCE_LOCAL));
    EXPECT_EQ(status.code(), ZERO_E_REPLICAS_DIFFER) << status.text();
  });
}

/// In stage 3 the next tensor may take the buffer of one that a stream still reads.
TEST_F(KeptOnDevice, AReleasedParameterIsNotOverwrittenWhileAStreamReadsIt) {
  Model model = model_of(2);
  model.counts = {50'000, 50'000};
  run_world(2, [&](const std::shared_ptr<Group> &group) {
    Manner manner = in_stage(3);
    const auto optimizer = begun_optimizer(group, model, manner);
    const Lent lent[] = {Lent(0, 4), Lent(0, 4)};
    const PinnedFloats values[] = {PinnedFloats(50'000), PinnedFloats(50'000)};
    for (int64_t id = 0; id < 2; ++id) {
      void *stream = lent[id].stream;
      void *data = nullptr;
      expect_ok(run_task(*optimizer, optimizer->param_acquire(id, nullptr, 0, &data, stream)), "param_acquire");
      caller_copy(stream, values[id].data(), data, 200'000, 20 * kLateUs);
      expect_ok(optimizer->param_release(id), "param_release");
    }
    for (int64_t id = 0; id < 2; ++id) {
      caller_wait(lent[id].stream);
      for (const int64_t k : {0, 777, 49'999}) EXPECT_EQ(values[id][k], first_value_at(model, id, k));
    }
  });
}

/// A step changes parameters after what its stream was given, and what the stream is given next sees the change.
TEST_F(KeptOnDevice, AStepIsOrderedByItsStream) {
  Model model = model_of(1);
  run_world(1, [&](const std::shared_ptr<Group> &group) {
    Manner manner = in_stage(1);
    const auto optimizer = begun_optimizer(group, model, manner);
    const Lent lent(0, 12'000);
    const PinnedFloats before(3000);
    const PinnedFloats after(3000);
    const PinnedFloats grad(3000, 1);
    void *data = nullptr;
    expect_ok(run_task(*optimizer, optimizer->param_acquire(0, nullptr, 0, &data, lent.stream)), "param_acquire");
    caller_copy(lent.stream, lent.data, grad.data(), 12'000, 0);
    expect_ok(optimizer->grad_ready(0, lent.data, 0, 3000, lent.stream), "grad_ready");
    caller_copy(lent.stream, before.data(), data, 12'000, 20 * kLateUs);
    expect_ok(run_task(*optimizer, optimizer->step(nullptr, lent.stream)), "step");
    caller_copy(lent.stream, after.data(), data, 12'000, 0);
    caller_wait(lent.stream);
    EXPECT_EQ(before[5], first_value_at(model, 0, 5));
    EXPECT_NE(after[5], before[5]);
    expect_ok(optimizer->param_release(0), "param_release");
  });
}

TEST_F(KeptOnDevice, SetsMayHaveAlgorithmsOfTheirOwn) {
  static constexpr std::array kAlgorithms = {"lion", "adagrad", "lamb", "muon", "muon"};
  static constexpr int64_t kShape[] = {20, 35};
  run_world(2, [&](const std::shared_ptr<Group> &group) {
    std::vector<std::vector<std::byte>> slots;
    Model model = model_of(2);
    model.counts.assign(kAlgorithms.size() + 1, 700);
    for (const bool kept : {false, true}) {
      Manner manner = in_stage(2);
      manner.kept_there = kept;
      std::shared_ptr<Optimizer> optimizer;
      ASSERT_TRUE(Optimizer::create(group, make_config(model, manner), &optimizer).ok());
      for (int64_t id = 0; id < model.tensors(); ++id) {
        Config set;
        Config param;
        int64_t number = 0;
        if (id > 0) expect_ok(set.set_str(ZERO_KEY_ALGORITHM, kAlgorithms[static_cast<size_t>(id - 1)]), "set_str");
        if (id == 2) expect_ok(set.set_f64(ZERO_KEY_INITIAL_ACCUMULATOR, 0.5), "set_f64");
        if (id == 5) expect_ok(set.set_f64(ZERO_KEY_EPSILON, 1000), "set_f64");
        if (id > 0) expect_ok(optimizer->add_set(set, &number), "add_set");
        expect_ok(param.set_i64(ZERO_KEY_SET, number), "set_i64");
        expect_ok(optimizer->add_param(&param, ("p" + std::to_string(id)).c_str(), ZERO_DTYPE_F32, kShape, 2, &number), "add");
      }
      expect_ok(optimizer->seal_queue()->run(optimizer->seal()), "seal");
      begin_training(*optimizer, model, manner);
      for (int64_t step = 0; step < 2; ++step) (void)train_step(*optimizer, model, manner, step);
      slots.push_back(read_slots(*optimizer, model));
    }
    EXPECT_EQ(slots[0], slots[1]);
  });
}

/// Contributions whose sum might overflow are summed before they are updated from; this one does not, and nothing is skipped.
TEST_F(KeptOnDevice, LargeContributionsAreNoOverflow) {
  const Model model = model_of(2);
  run_world(2, [&](const std::shared_ptr<Group> &group) {
    std::vector<float> large(3000, group->rank() == 0 ? 3e38F : -2.9e38F);
    std::vector<std::vector<std::byte>> slots;
    for (const bool kept : {false, true}) {
      Manner manner = in_stage(1);
      manner.kept_there = kept;
      manner.norm = false;
      const auto optimizer = make_optimizer(group, model, manner);
      for (int64_t id = 0; id < model.tensors(); ++id) expect_ok(optimizer->init_param(id, ZERO_INITIALISER_NORMAL, 0, 1, 3), "init_param");
      expect_ok(run_task(*optimizer, optimizer->begin(ZERO_SOURCE_SHARDS)), "begin");
      EXPECT_NE(optimizer->describe().find("one pass over all ranks' memory"), std::string::npos) << optimizer->describe();
      expect_ok(optimizer->grad_ready(0, large.data(), 0, 3000), "grad_ready");
      zero_step_result result{};
      result.struct_size = sizeof result;
      expect_ok(run_task(*optimizer, optimizer->step(&result)), "step");
      EXPECT_EQ(result.skipped, 0);
      slots.push_back(read_slots(*optimizer, model));
    }
    EXPECT_EQ(slots[0], slots[1]);
  });
}

TEST_F(KeptOnDevice, ViewsAreForKernelsOfTheCaller) {
  Model model = model_of(2);
  model.algorithm = "custom";
  run_world(2, [&](const std::shared_ptr<Group> &group) {
    Manner manner = in_stage(2);
    const auto optimizer = begun_optimizer(group, model, manner);
    give_gradients(*optimizer, model, manner, 0);
    const Lent lent(0, 4);
    expect_ok(run_task(*optimizer, optimizer->reduce(nullptr, lent.stream)), "reduce");
    int64_t count = 0;
    expect_ok(optimizer->view_count(&count), "view_count");
    std::vector<std::vector<std::byte>> zeros;
    for (int64_t i = 0; i < count; ++i) {
      View view{};
      expect_ok(optimizer->view(i, ZERO_SLOT_PARAM, &view), "view");
      zeros.emplace_back(static_cast<size_t>(view.count) * 4);
      caller_copy(lent.stream, view.data, zeros.back().data(), std::ssize(zeros.back()), 10 * kLateUs);
    }
    expect_ok(run_task(*optimizer, optimizer->gather(lent.stream)), "gather");
    const std::vector<std::byte> slots = read_slots(*optimizer, model);
    EXPECT_EQ(std::count(slots.begin(), slots.end(), std::byte{0}), std::ssize(slots));
    caller_wait(lent.stream);
  });
}

/// New masters of all views.
void write_masters(Optimizer &optimizer, const Manner &manner, void *stream) {
  int64_t count = 0;
  expect_ok(optimizer.view_count(&count), "view_count");
  for (int64_t i = 0; i < count; ++i) {
    View view{};
    if (!optimizer.view(i, ZERO_SLOT_MASTER, &view).ok()) continue;  // small tensors have none
    std::vector<float> masters(static_cast<size_t>(view.count));
    for (size_t k = 0; k < masters.size(); ++k) masters[k] = static_cast<float>(view.offset + static_cast<int64_t>(k)) / 1024 - 3;
    if (manner.kept_there) {
      caller_copy(stream, view.data, masters.data(), view.count * 4, kLateUs);
      caller_wait(stream);
    } else {
      std::memcpy(view.data, masters.data(), masters.size() * sizeof(float));
    }
  }
}

/// What an algorithm of the caller's own makes of masters is encoded, but not in a step that is skipped: there a line of codes that is not
/// what its masters would be encoded as stays as it is.
TEST_F(KeptOnDevice, MastersThatTheCallerUpdatedAreEncodedAsOnTheHost) {
  for (const int64_t ranks : {1, 2}) {
    Model model = model_of(ranks);
    model.algorithm = "custom";
    model.recipe.coded = true;
    run_world(ranks, [&](const std::shared_ptr<Group> &group) {
      std::vector<std::vector<std::byte>> slots;
      for (const Manner &manner : {Manner{}, in_stage(0)}) {
        const auto optimizer = begun_optimizer(group, model, manner);
        const Lent lent(0, 4);
        write_entries<float>(*optimizer, ZERO_SLOT_PARAM_SCALE, 1, {1e-3F});
        write_entries(*optimizer, ZERO_SLOT_PARAM, 256, std::vector<uint8_t>(256, 0x13));
        expect_ok(run_task(*optimizer, optimizer->begin(ZERO_SOURCE_SHARDS)), "begin");
        for (const bool skipped : {true, false}) {
          const std::vector<float> gradient(3000, skipped ? std::numeric_limits<float>::infinity() : 1.0F);
          expect_ok(optimizer->grad_ready(0, gradient.data(), 0, 3000), "grad_ready");
          expect_ok(run_task(*optimizer, optimizer->reduce(nullptr, manner.kept_there ? lent.stream : nullptr)), "reduce");
          if (!skipped) write_masters(*optimizer, manner, lent.stream);
          expect_ok(run_task(*optimizer, optimizer->gather(manner.kept_there ? lent.stream : nullptr)), "gather");
          slots.push_back(read_slots(*optimizer, model));
        }
      }
      EXPECT_EQ(slots[0], slots[2]) << ranks << " ranks";
      EXPECT_EQ(slots[1], slots[3]) << ranks << " ranks";
      EXPECT_NE(slots[0], slots[1]);
    });
  }
}

TEST_F(KeptOnDevice, MemoryIsCountedAndTheHookIsNotTold) {
  run_world(2, [&](const std::shared_ptr<Group> &group) {
    Config config = make_config(model_of(2), in_stage(2));
    int64_t told = 0;
    config.hook.alloc = [](uint64_t nbytes, uint64_t alignment, void *user) {
      ++*static_cast<int64_t *>(user);
      return std::aligned_alloc(alignment, (nbytes + alignment - 1) / alignment * alignment);
    };
    config.hook.free = [](void *data, uint64_t, void *) { std::free(data); };
    config.hook.shared = [](int64_t, void *user) { ++*static_cast<int64_t *>(user); };
    config.hook.user = &told;
    std::shared_ptr<Optimizer> optimizer;
    ASSERT_TRUE(Optimizer::create(group, config, &optimizer).ok());
    const int64_t shape = 100'000;
    int64_t id = 0;
    ASSERT_TRUE(optimizer->add_param(nullptr, "w", ZERO_DTYPE_F32, &shape, 1, &id).ok());
    ASSERT_TRUE(optimizer->seal_queue()->run(optimizer->seal()).ok());
    for (const int32_t category : {ZERO_MEMORY_PARAM, ZERO_MEMORY_GRAD, ZERO_MEMORY_STATE, ZERO_MEMORY_TOTAL}) {
      MemoryUse use{};
      ASSERT_TRUE(optimizer->memory(category, &use).ok());
      EXPECT_GT(use.formula_nbytes, 0) << category;
      EXPECT_EQ(use.now_nbytes, use.formula_nbytes + use.constant_nbytes) << category;
    }
    EXPECT_NE(optimizer->describe().find("which keeps parameters, gradients and states"), std::string::npos) << optimizer->describe();
    optimizer.reset();
    EXPECT_EQ(told, 0);
  });
}

/// What create says of one more key.
template <class Set>
Status created_with(const std::shared_ptr<Group> &group, Set &&set) {
  Config config = make_config(model_of(1), in_stage(1));
  set(config);
  std::shared_ptr<Optimizer> optimizer;
  return Optimizer::create(group, config, &optimizer);
}

TEST_F(KeptOnDevice, WhatKernelsOfDevicesDoNotDoIsAnErrorOfCreate) {
  run_world(1, [](const std::shared_ptr<Group> &group) {
    const auto expect_refused = [&](const Status &status, const char *text) {
      EXPECT_EQ(status.code(), ZERO_E_UNSUPPORTED) << status.text();
      EXPECT_NE(std::strstr(status.text(), text), nullptr) << status.text();
    };
    const auto with = [&](int32_t key, int64_t value) {
      return created_with(group, [=](Config &config) { EXPECT_TRUE(config.set_i64(key, value).ok()); });
    };
    expect_refused(with(ZERO_KEY_ONE_COPY, 1), "ZERO_KEY_ONE_COPY works on memory of the host only");
    const Status nowhere = with(ZERO_KEY_DEVICE, -1);
    EXPECT_EQ(nowhere.code(), ZERO_E_INVALID_ARGUMENT) << nowhere.text();
  });
}

TEST_F(KeptOnDevice, RanksBeyondWhatKernelsAddAreAnError) {
  Settings settings;
  const Config config = make_config(model_of(64), in_stage(1));
  EXPECT_TRUE(read_settings(config, {.size = 64}, &settings).ok());
  const Status status = read_settings(config, {.size = 65}, &settings);
  EXPECT_EQ(status.code(), ZERO_E_UNSUPPORTED);
  EXPECT_NE(std::strstr(status.text(), "the group has 65 ranks"), nullptr) << status.text();
}

TEST_F(KeptOnDevice, ElementsThatAreWrittenLoseTheirRemainders) {
  Model model = model_of(2);
  model.recipe = {.dtype = DType::bf16, .master = ZERO_MASTER_REMAINDER};
  run_world(2, [&](const std::shared_ptr<Group> &group) {
    const auto optimizer = begun_optimizer(group, model, in_stage(0));
    train_step(*optimizer, model, in_stage(0), 0);
    uint16_t halves[2][3] = {{0x4040, 0x4040, 0x4040}, {}};
    expect_ok(run_task(*optimizer, optimizer->write(0, ZERO_SLOT_PARAM, 1499, halves[0], group->rank() == 0 ? 3 : 0)), "write");
    expect_ok(run_task(*optimizer, optimizer->read(0, ZERO_SLOT_MASTER, 1499, halves[1], 3)), "read");
    for (const uint16_t half : halves[1]) EXPECT_EQ(half, 0);
    expect_ok(run_task(*optimizer, optimizer->begin(ZERO_SOURCE_SHARDS)), "begin");
    expect_same_on_all_ranks(*optimizer);
  });
}

TEST_F(KeptOnDevice, TiersThatDifferAreAMismatch) {
  run_world(2, [](const std::shared_ptr<Group> &group) {
    Manner manner = in_stage(1);
    manner.kept_there = group->rank() == 0;
    std::shared_ptr<Optimizer> optimizer;
    ASSERT_TRUE(Optimizer::create(group, make_config(model_of(2), manner), &optimizer).ok());
    const Status status = optimizer->seal_queue()->run(optimizer->seal());
    EXPECT_EQ(status.code(), ZERO_E_MISMATCH) << status.text();
    EXPECT_NE(std::strstr(status.text(), "ZERO_KEY_TIER = ZERO_TIER_HOST"), nullptr) << status.text();
  });
}

TEST_F(KeptOnDevice, RanksOfSeveralHostsAreAnErrorThatLeavesTheGroup) {
  run_hosts(4, 2, [](const std::shared_ptr<Group> &group) {
    std::shared_ptr<Optimizer> optimizer;
    const Status status = Optimizer::create(group, make_config(model_of(4), in_stage(1)), &optimizer);
    EXPECT_EQ(status.code(), ZERO_E_UNSUPPORTED) << status.text();
    EXPECT_NE(std::strstr(status.text(), "sends memory of the host only"), nullptr) << status.text();
    expect_ok(group->queue()->run(barrier(*group)), "barrier");
  });
}

}  // namespace
}  // namespace zero::test::device_tier_test
