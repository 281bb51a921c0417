/// @file Saving and loading in tests.
#include "tests/engine/saved_runs.h"

#include <algorithm>

namespace zero::test {

std::vector<std::string> SaveFolder::entries() const {
  std::vector<std::string> names;
  for (const auto &entry : std::filesystem::directory_iterator(path_)) names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<std::string> SaveFolder::saves() const {
  std::vector<std::string> names = entries();
  std::erase_if(names, [this](const std::string &name) { return !std::filesystem::exists(path_ / name / "manifest.safetensors"); });
  return names;
}

std::shared_ptr<Checkpoint> checkpoint_of(const std::shared_ptr<Optimizer> &optimizer, const CheckpointKeys &keys) {
  Config config;
  expect_ok(config.set_i64(ZERO_KEY_CHECKPOINT_SYNC, 0), "set_i64");
  expect_ok(config.set_i64(ZERO_KEY_CHECKPOINT_STAGING_BYTES, int64_t{1} << 21), "set_i64");
  for (const auto &[key, value] : keys) expect_ok(config.set_i64(key, value), "set_i64");
  std::shared_ptr<Checkpoint> checkpoint;
  expect_ok(Checkpoint::create(optimizer->group(), config, &checkpoint), "create");
  if (checkpoint != nullptr) expect_ok(checkpoint->add_optimizer("", optimizer), "add_optimizer");
  return checkpoint;
}

Status save(Checkpoint &checkpoint, const std::string &folder, zero_checkpoint_result *out) {
  zero_checkpoint_result result{};
  const Status status = checkpoint.queue()->run(checkpoint.save(folder, nullptr, &result));
  if (out != nullptr) *out = result;
  return status;
}

std::shared_ptr<Operation> begin_save(Checkpoint &checkpoint, const std::string &folder, zero_checkpoint_result *out) {
  std::shared_ptr<const std::atomic<bool>> taken;
  std::shared_ptr<Operation> operation = checkpoint.queue()->submit(checkpoint.save_in_background(folder, nullptr, out, &taken));
  checkpoint.queue()->wait_for(operation, *taken);
  return operation;
}

Status load(Checkpoint &checkpoint, const std::string &folder, int32_t part, zero_checkpoint_result *out) {
  zero_checkpoint_result result{};
  const Status status = checkpoint.queue()->run(checkpoint.load(folder, part, nullptr, &result));
  if (out != nullptr) *out = result;
  return status;
}

void step_alone(Optimizer &optimizer, const Model &model, int64_t step) {
  for (int64_t id = model.tensors() - 1; id >= 0 && optimizer.group()->rank() == 0; --id) {
    const int64_t count = model.counts[static_cast<size_t>(id)];
    if (count == 0 || model.unfilled(id, step)) continue;
    std::vector<float> values;
    for (int64_t index = 0; index < count; ++index) values.push_back(gradient_at(model, step, 0, id, index));
    const std::vector<std::byte> grad = encode(values, model.grad_dtype(id));
    expect_ok(optimizer.grad_ready(id, grad.data(), 0, count), "grad_ready");
  }
  zero_step_result result{};
  expect_ok(run_task(optimizer, optimizer.step(&result)), "step");
}

void step_alone(Optimizer &optimizer, const Model &model, int64_t first, int64_t last) {
  for (int64_t step = first; step < last; ++step) step_alone(optimizer, model, step);
}

Model saved_model() {
  Model model;
  model.counts = {3000, 17, 0, 1024, 255, 256, 257, 1};
  model.divisor = ZERO_DIVISOR_ONE;
  return model;
}

}  // namespace zero::test
