/// @file Checkpoint: the votes that saves and loads share, and the pause of the optimizers.
#include "engine/checkpoint/checkpoint.h"

#include "engine/checkpoint/votes.h"

#include <functional>
#include <utility>

namespace zero {

Checkpoint::Checkpoint(std::shared_ptr<Group> group, const CheckpointSettings &settings)
    : settings_(settings), things_(std::move(group)) {}

Status Checkpoint::create(std::shared_ptr<Group> group, const Config &config, std::shared_ptr<Checkpoint> *out) {
  CheckpointSettings settings{};
  ZERO_TRY(read_checkpoint_settings(config, &settings));
  out->reset(new Checkpoint(std::move(group), settings));
  return {};
}

Status Checkpoint::create_for(std::shared_ptr<Optimizer> optimizer, std::shared_ptr<Checkpoint> *out) {
  std::shared_ptr<Checkpoint> made;
  ZERO_TRY(create(optimizer->group(), Config(), &made));
  ZERO_TRY(made->add_optimizer("", std::move(optimizer)));
  *out = std::move(made);
  return {};
}

Status Checkpoint::add_optimizer(const std::string &prefix, std::shared_ptr<Optimizer> optimizer) {
  std::shared_ptr<void> &run = SavedState(optimizer).run();
  ZERO_TRY(things_.add_optimizer(prefix, std::move(optimizer)));
  if (things_.optimizers().size() > 1) return {};
  if (run == nullptr) run = run_;
  run_ = std::static_pointer_cast<SavedRun>(run);
  return {};
}

Status Checkpoint::rename(const char *in_file, const char *here) { return renames_.add(in_file, here); }

Status Checkpoint::check_idle() const {
  ZERO_CHECK(token_.use_count() == 1, ZERO_E_STATE, "a save or load of this checkpoint is in progress; wait for its request first");
  return {};
}

Status Checkpoint::check_stream(void *stream) const {
  for (const SavedThings::SavedOptimizer &each : things_.optimizers()) ZERO_TRY(each.state.optimizer().check_stream(stream));
  ZERO_CHECK(stream == nullptr || !things_.optimizers().empty(), ZERO_E_UNSUPPORTED,
             "stream is %p, but must be NULL: this checkpoint has no optimizer on a device", stream);
  return {};
}

void SavedRun::begin(Group &whole) {
  if (!is_idle()) return;
  let_go();
  votes.ask(whole);
}

void SavedRun::let_go() {
  watch.off(queue, lane);
  votes.let_go();
}

/// When the caller calls, so that the save or load has its place among the caller's calls of the
/// optimizers.
Checkpoint::Busy::Busy(const Checkpoint &checkpoint) : token(checkpoint.token_), run_token(checkpoint.run_->token), holds(checkpoint.queue()) {
  for (const SavedThings::SavedOptimizer &each : checkpoint.things_.optimizers()) {
    optimizers.emplace_back(each.state.optimizer());
    holds.take(each.state.optimizer().queue());
  }
}

void Checkpoint::Busy::release() {
  optimizers.clear();
  holds.release();
  released.store(true, std::memory_order_release);
}

Task Checkpoint::guarded(Task body, std::shared_ptr<Busy> busy) {
  agreed_ = {};
  Status status;
  try {
    status = co_await busy->holds.begun();
    if (status.ok()) status = co_await body;
  } catch (...) {
    status = exception_status();
  }
  busy->release();
  // The others wait for this rank in a vote that it will not come to: they are told. Copies of a
  // status share its text.
  if (!status.ok() && !is_agreed(status)) {
    if (!run_->votes.is_open()) (void)co_await open_votes(Caller::save);
    if (run_->votes.is_made()) votes().fail(status);
  }
  co_return status;
}

Task Checkpoint::agree(Status mine) {
  Status agreed;
  ZERO_CO_AWAIT(vote(votes(), std::move(mine), &agreed));
  if (!agreed.ok()) agreed_ = agreed;
  co_return agreed;
}

Task Checkpoint::agree_on_given(const char *what, const std::string &mine) {
  Status agreed;
  ZERO_CO_AWAIT(compare_given(votes(), what, mine, &agreed));
  if (!agreed.ok()) agreed_ = agreed;
  co_return agreed;
}

Task Checkpoint::ordered(Task body, void *stream, size_t index) {
  if (index == things_.optimizers().size()) co_return co_await body;
  const SavedState &state = things_.optimizers()[index].state;
  co_return co_await state.in_order(ordered(std::move(body), stream, index + 1), stream);
}

Task Checkpoint::settle() {
  for (const SavedThings::SavedOptimizer &each : things_.optimizers()) ZERO_CO_AWAIT(each.state.settle());
  co_return Status();
}

/// Every rank comes here, also one without work of its own.
Task Checkpoint::run_files(std::shared_ptr<FileJob> job, std::function<Status()> files) {
  job->start(run_->bell, std::move(files));
  Status status = co_await job->attend(votes(), settings_.progress_ms);
  co_return co_await agree(std::move(status));
}

}  // namespace zero
