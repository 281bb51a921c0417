/// @file What saves and loads have in common: the group of their votes, and ranks that watch one another while files are read or written.
#include "engine/checkpoint/checkpoint.h"

#include "engine/checkpoint/votes.h"
#include "group/collectives.h"

#include <algorithm>
#include <array>
#include <functional>
#include <utility>

namespace zero {
namespace {

constexpr int64_t kBeatMs = 200;
constexpr int64_t kHurriedBeatMs = 2;  ///< while a step waits
constexpr int64_t kWindUpMs = 5000;  ///< at most: the others wait in the vote that follows

/// What each rank tells the others while it works with files.
enum Word : size_t {
  kEnded,
  kFailed,
  kSilentMs,
  kReads,    ///< what a step would change
  kAwaited,  ///< a step waits for that
  kWishesLeft,
  kWishes,
  kSection,
  kTensor,
  kSlot,
  kBegin,
  kCount,
  kWords
};

Wish wish_in(const std::vector<int64_t> &all, size_t rank) {
  const int64_t *words = &all[rank * kWords];
  return {words[kSection], words[kTensor], words[kSlot], words[kBegin], words[kCount], nullptr};
}

bool any(const std::vector<int64_t> &all, Word word) {
  for (size_t at = word; at < all.size(); at += kWords) {
    if (all[at] != 0) return true;
  }
  return false;
}

}  // namespace

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

void SavedRun::let_go() {
  watch.off(queue, lane);
  failed.clear();
}

/// When the caller calls, so that the save or load has its place among the caller's calls of the optimizers.
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
  // The others wait for this rank in a vote that it will not come to: they are told. Copies of a status share its text.
  if (!status.ok() && !is_agreed(status)) {
    if (run_->group == nullptr || run_->making != nullptr) (void)co_await open_group(Caller::save);
    if (run_->group != nullptr) run_->group->fail(status);
  }
  co_return status;
}

Task Checkpoint::agree(Status mine) {
  Status agreed;
  ZERO_CO_AWAIT(vote(*run_->group, std::move(mine), &agreed));
  if (!agreed.ok()) agreed_ = agreed;
  co_return agreed;
}

Task Checkpoint::agree_on_given(const char *what, const std::string &mine) {
  Status agreed;
  ZERO_CO_AWAIT(compare_given(*run_->group, what, mine, &agreed));
  if (!agreed.ok()) agreed_ = agreed;
  co_return agreed;
}

Task Checkpoint::ordered(Task body, void *stream, size_t index) {
  if (index == things_.optimizers().size()) co_return co_await body;
  const SavedState &state = things_.optimizers()[index].state;
  co_return co_await state.in_order(ordered(std::move(body), stream, index + 1), stream);
}

/// Votes are taken in a group of their own, so that they meet nothing else. One that a rank has failed alone is made anew. It is asked for
/// when the caller calls, so that it keeps its place among the caller's other collectives of the group.
void Checkpoint::make_group() {
  if (!run_->is_idle()) return;
  run_->let_go();
  if (run_->making != nullptr) return;  // by a call that then failed on this rank
  if (run_->group == nullptr || !run_->group->usable().ok()) split_group();
}

void Checkpoint::split_group() {
  Group &whole = *things_.group();
  if (run_->group != nullptr) run_->failed.push_back(std::move(run_->group));
  run_->making = whole.queue()->submit(split(whole, 0, whole.rank(), &run_->made));
}

Task Checkpoint::open_group(Caller caller) {
  Group &whole = *things_.group();
  // A save or load that was in progress when this one was called has failed since.
  if (run_->making == nullptr && (run_->group == nullptr || !run_->group->usable().ok())) split_group();
  if (const std::shared_ptr<Operation> made = std::exchange(run_->making, nullptr); made != nullptr) {
    OperationEnd end(*whole.queue(), *made);
    ZERO_CO_AWAIT(end);
    ZERO_CO_TRY(made->status());
    run_->group = std::move(run_->made);
  }
  run_->group->set_caller(caller);
  run_->group->set_deadline_ms(whole.deadline_ms());
  co_return Status();
}

Task Checkpoint::settle() {
  for (const SavedThings::SavedOptimizer &each : things_.optimizers()) ZERO_CO_AWAIT(each.state.settle());
  co_return Status();
}

/// Every rank comes here, also one without work of its own.
Task Checkpoint::run_files(std::shared_ptr<FileJob> job, std::function<Status()> files) {
  job->work = std::make_shared<FileWork>(run_->bell);
  job->work->start(std::move(files));
  Status status = co_await attend(job, nullptr, 0);
  co_return co_await agree(std::move(status));
}

/// Of this rank, for which nobody waits.
Task Checkpoint::run_alone(std::shared_ptr<FileJob> job, std::function<Status()> files) {
  job->work = std::make_shared<FileWork>(run_->bell);
  FileWork &work = *job->work;
  work.start(std::move(files));
  while (!work.ended() && work.silent_ms() < settings_.progress_ms) {
    WorkLook look(work, kBeatMs);
    ZERO_CO_AWAIT(look);
  }
  if (work.ended()) co_return work.status();
  work.give_up(job);
  co_return silent(things_.group()->rank(), work.silent_ms());
}

Status Checkpoint::silent(int64_t rank, int64_t silent_ms) const {
  return Status::error(ZERO_E_TIMEOUT,
                       "rank %lld has read or written nothing for %lld ms (ZERO_KEY_CHECKPOINT_PROGRESS_MS is %lld); its file system does not "
                       "answer",
                       lld(rank), lld(silent_ms), lld(settings_.progress_ms));
}

/// The thread is not waited for longer than a moment: where it hangs, what it uses lives on.
Task Checkpoint::wind_up(std::shared_ptr<FileJob> job) {
  job->work->cancel();
  WorkLook look(*job->work, std::min(kWindUpMs, run_->group->deadline_ms() / 2));
  ZERO_CO_AWAIT(look);
  if (!job->work->ended()) job->work->give_up(job);
  co_return Status();
}

/// All ranks work with their files. Each tells the others how far it is and, in saves, what it needs of theirs. An error of one ends the
/// work of all; whose it was is for the vote that follows.
Task Checkpoint::attend(std::shared_ptr<FileJob> job, const checkpoint::SaveDescription *description, int64_t wishes_nbytes) {
  Group &group = *run_->group;
  FileWork &work = *job->work;
  LazyRead *lazy = job->lazy.get();
  bool others_wish = description != nullptr;
  int64_t beat_ms = kBeatMs;
  for (;;) {
    const bool hurries = others_wish && wishes_nbytes == 0;
    WorkLook look(work, hurries ? 0 : beat_ms, work.bell().rings());
    Status status = co_await look;
    const std::optional<Wish> wish = work.open_wish();
    const bool ended = work.ended();
    const Status own = ended ? work.status() : Status();
    std::array<int64_t, kWords> mine = {ended ? 1 : 0, own.ok() ? 0 : 1, ended ? 0 : work.silent_ms()};
    mine[kReads] = lazy != nullptr && !ended && !lazy->has_read.load() ? 1 : 0;
    mine[kAwaited] = lazy != nullptr && lazy->gate.is_awaited() ? 1 : 0;
    mine[kWishesLeft] = wishes_nbytes > 0 && !ended ? 1 : 0;
    if (wish.has_value()) {
      mine[kWishes] = 1;
      std::copy_n(std::array{wish->section, wish->tensor, wish->slot, wish->begin, wish->count}.begin(), 5, &mine[kSection]);
      mine[kSilentMs] = 0;  // it waits for the others
    }
    std::vector<int64_t> all;
    if (status.ok()) status = co_await gather_words(group, mine, &all);
    const int64_t limit = settings_.progress_ms;
    for (size_t rank = 0; status.ok() && rank * kWords < all.size(); ++rank) {
      if (all[rank * kWords + kSilentMs] >= limit) status = silent(static_cast<int64_t>(rank), all[rank * kWords + kSilentMs]);
    }
    const bool failed = status.ok() && any(all, kFailed);
    if (failed) work.cancel();
    if (status.ok() && !failed && any(all, kWishes)) {
      status = co_await grant_wishes(*description, all, *job);
      if (!status.ok()) group.fail(status);  // the others wait for what this rank did not send
      if (wish.has_value()) wishes_nbytes -= std::min(wishes_nbytes, wish_nbytes(*description, *wish));
    }
    if (!status.ok()) {
      ZERO_CO_AWAIT(wind_up(job));
      co_return status;
    }
    others_wish = any(all, kWishesLeft) && !failed;
    beat_ms = any(all, kReads) && any(all, kAwaited) ? kHurriedBeatMs : kBeatMs;
    if (lazy != nullptr && description != nullptr) {
      if (!others_wish) lazy->wishes_ended.store(true);
      if (!others_wish && !any(all, kReads)) lazy->gate.open();
    }
    bool all_ended = true;
    for (size_t at = kEnded; at < all.size(); at += kWords) all_ended = all_ended && all[at] != 0;
    if (all_ended) co_return work.status();
  }
}

int64_t Checkpoint::wish_nbytes(const checkpoint::SaveDescription &description, const Wish &wish) {
  const checkpoint::SavedTensor &tensor =
      description.sections[static_cast<size_t>(wish.section)].tensors[static_cast<size_t>(wish.tensor)];
  return wish.count * checkpoint::disk_type_nbytes(tensor.slots[static_cast<size_t>(wish.slot)].type);
}

/// One exchange, in which each rank sends its pieces of what others wish for.
Task Checkpoint::grant_wishes(const checkpoint::SaveDescription &description, const std::vector<int64_t> &all, FileJob &job) {
  FileWork &work = *job.work;
  Group &group = *run_->group;
  const auto ranks = static_cast<size_t>(group.size());
  std::vector<std::vector<std::byte>> sent(ranks);
  std::vector<Offer> offers(ranks);
  std::vector<Receive> receives(ranks);
  for (size_t asking = 0; asking < ranks; ++asking) {
    if (all[asking * kWords + kWishes] == 0) continue;
    const Wish wish = wish_in(all, asking);
    const checkpoint::Section &section = description.sections[static_cast<size_t>(wish.section)];
    const checkpoint::SavedSlot &slot = section.tensors[static_cast<size_t>(wish.tensor)].slots[static_cast<size_t>(wish.slot)];
    const int64_t entry = checkpoint::disk_type_nbytes(slot.type);
    const Range wanted = {wish.begin, wish.begin + wish.count};
    for (size_t rank = 0; rank < ranks; ++rank) {
      const Range piece = intersect(checkpoint::entries_of(slot, section.cut(wish.tensor, static_cast<int64_t>(rank))), wanted);
      if (piece.empty()) continue;
      if (static_cast<int64_t>(rank) == group.rank()) {
        sent[asking].resize(static_cast<size_t>(piece.count() * entry));
        ZERO_CO_TRY(job.snapshot->read(wish.section, wish.tensor, wish.slot, piece.begin, sent[asking]));
        offers[asking] = {sent[asking].data(), piece.count() * entry};
      }
      if (static_cast<int64_t>(asking) == group.rank())
        receives[rank] = {work.open_wish()->out + (piece.begin - wanted.begin) * entry, piece.count() * entry};
    }
  }
  ZERO_CO_AWAIT(exchange(group, offers, receives));
  if (all[static_cast<size_t>(group.rank()) * kWords + kWishes] != 0) work.grant();
  co_return Status();
}

}  // namespace zero
