/// @file Ranks that watch one another while each works with its files.
#include "engine/checkpoint/file_job.h"

#include "engine/checkpoint/votes.h"
#include "group/collectives.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <utility>

namespace zero {
namespace {

constexpr int64_t kBeatMs = 200;
constexpr int64_t kHurriedBeatMs = 2;  ///< while a step waits
constexpr int64_t kWindUpMs = 5000;    ///< at most: the others wait in the vote that follows

/// The words that each rank sends to the others while it works with files.
enum Word : size_t {
  kEnded,
  kFailed,
  kSilentMs,
  kReads,    ///< it reads data that a step would change
  kAwaited,  ///< a step waits for those reads
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

Status silent(int64_t rank, int64_t silent_ms, int64_t progress_ms) {
  return Status::error(
      ZERO_E_TIMEOUT,
      "rank %lld has read or written nothing for %lld ms (ZERO_KEY_CHECKPOINT_PROGRESS_MS is %lld); its file system does not "
      "answer",
      lld(rank), lld(silent_ms), lld(progress_ms));
}

int64_t wish_nbytes(const checkpoint::SaveDescription &description, const Wish &wish) {
  const checkpoint::SavedTensor &tensor = description.sections[static_cast<size_t>(wish.section)].tensors[static_cast<size_t>(wish.tensor)];
  return wish.count * checkpoint::disk_type_nbytes(tensor.slots[static_cast<size_t>(wish.slot)].type);
}

}  // namespace

void FileJob::start(std::shared_ptr<WorkBell> bell, std::function<Status()> files) {
  work = std::make_shared<FileWork>(std::move(bell));
  work->start(std::move(files));
}

Task FileJob::attend_alone(int64_t rank, int64_t progress_ms) {
  while (!work->ended() && work->silent_ms() < progress_ms) {
    WorkLook look(*work, kBeatMs);
    ZERO_CO_AWAIT(look);
  }
  if (work->ended()) co_return work->status();
  work->give_up(shared_from_this());
  co_return silent(rank, work->silent_ms(), progress_ms);
}

/// The thread is not waited for longer than a moment: if it hangs, everything that it uses lives
/// on.
Task FileJob::wind_up(int64_t deadline_ms) {
  work->cancel();
  WorkLook look(*work, std::min(kWindUpMs, deadline_ms / 2));
  ZERO_CO_AWAIT(look);
  if (!work->ended()) work->give_up(shared_from_this());
  co_return Status();
}

Task FileJob::attend(Group &group, int64_t progress_ms, const checkpoint::SaveDescription *description, int64_t wishes_nbytes) {
  bool others_wish = description != nullptr;
  int64_t beat_ms = kBeatMs;
  for (;;) {
    const bool hurries = others_wish && wishes_nbytes == 0;
    WorkLook look(*work, hurries ? 0 : beat_ms, work->bell().rings());
    Status status = co_await look;
    const std::optional<Wish> wish = work->open_wish();
    const bool ended = work->ended();
    const Status own = ended ? work->status() : Status();
    std::array<int64_t, kWords> mine = {ended ? 1 : 0, own.ok() ? 0 : 1, ended ? 0 : work->silent_ms()};
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
    for (size_t rank = 0; status.ok() && rank * kWords < all.size(); ++rank) {
      const int64_t silent_ms = all[rank * kWords + kSilentMs];
      if (silent_ms >= progress_ms) status = silent(static_cast<int64_t>(rank), silent_ms, progress_ms);
    }
    const bool failed = status.ok() && any(all, kFailed);
    if (failed) work->cancel();
    if (status.ok() && !failed && any(all, kWishes)) {
      status = co_await grant_wishes(group, *description, all);
      if (!status.ok()) group.fail(status);  // the others wait for what this rank did not send
      if (wish.has_value()) wishes_nbytes -= std::min(wishes_nbytes, wish_nbytes(*description, *wish));
    }
    if (!status.ok()) {
      ZERO_CO_AWAIT(wind_up(group.deadline_ms()));
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
    if (all_ended) co_return work->status();
  }
}

/// One exchange, in which each rank sends its pieces of what others wish for.
Task FileJob::grant_wishes(Group &group, const checkpoint::SaveDescription &description, const std::vector<int64_t> &all) {
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
        ZERO_CO_TRY(snapshot->read(wish.section, wish.tensor, wish.slot, piece.begin, sent[asking]));
        offers[asking] = {sent[asking].data(), piece.count() * entry};
      }
      if (static_cast<int64_t>(asking) == group.rank())
        receives[rank] = {work->open_wish()->out + (piece.begin - wanted.begin) * entry, piece.count() * entry};
    }
  }
  ZERO_CO_AWAIT(exchange(group, offers, receives));
  if (all[static_cast<size_t>(group.rank()) * kWords + kWishes] != 0) work->grant();
  co_return Status();
}

}  // namespace zero
