/// @file Power cuts: at every call of a save, a rotation and a sweep, with any part of what was not synced lost, acknowledged saves are
/// there, nothing torn is taken for a save, and the next save succeeds.
#include "tests/checkpoint/full_size.h"
#include "tests/checkpoint/model_files.h"
#include "tests/checkpoint/sample_run.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <unordered_set>

namespace zero::tests {
namespace {

using namespace checkpoint;

constexpr int64_t kKeep = 2;

/// A moment of a history: the files, and which saves every rank knows to be committed.
struct Moment {
  ModelTree tree;
  std::vector<std::string> acknowledged;
  std::string call;
};

/// Saves one after the other on a model, whose moments are kept from `recorded_from` on.
class History {
 public:
  explicit History(const SampleShape &shape, ModelFiles::Ignored ignored = ModelFiles::Ignored::none) : shape_(shape) {
    files_.ignored = ignored;
    files_.changed = [this](const char *call) {
      if (records_) moments.push_back({files_.tree, acknowledged_, call});
    };
  }

  /// A save that ends well.
  void save(uint64_t step) {
    const FileCallsReplaced replaced(files_);
    Folder saves;
    ASSERT_TRUE(Folder::open(ModelFiles::kRoot, &saves).ok());
    SaveDescription description = sample_description(shape_, step);
    std::vector<int64_t> writers;
    assign_model_files(&description, 1 << 30, &writers);
    names_[save_name(step, description.id)] = step;
    SampleOptions options{.keep = kKeep, .threads = true};
    options.acknowledged = [&] { acknowledged_.push_back(save_name(step, description.id)); };
    const SampleSaved saved = save_sample(saves, description, writers, options);
    ASSERT_TRUE(saved.status.ok()) << saved.status.text();
    if (records_) moments.push_back({files_.tree, acknowledged_, "the end of the save"});
  }

  void record() { records_ = true; }
  /// Goes on from what a power cut left.
  void go_on_from(ModelTree tree) { files_.tree = std::move(tree); }
  const ModelTree &tree() const { return files_.tree; }
  bool knows(const std::string &name) const { return names_.contains(name); }
  const SampleShape &shape() const { return shape_; }

  std::vector<Moment> moments;

 private:
  const SampleShape shape_;
  ModelFiles files_;
  bool records_ = false;
  std::vector<std::string> acknowledged_;
  std::map<std::string, uint64_t> names_;
};

/// Looks at what a power cut left, as the next run does.
class Oracle {
 public:
  explicit Oracle(const History &history) : history_(history) {}

  int64_t lost = 0;
  int64_t torn = 0;
  int64_t stuck = 0;
  std::string first_failure;

  void look_at(ModelTree tree, const Moment &moment, const std::string &cut) {
    ModelFiles files(std::move(tree));
    const FileCallsReplaced replaced(files);
    Folder saves;
    if (!Folder::open(ModelFiles::kRoot, &saves).ok()) return fail(&stuck, moment, cut, "no folder");
    look_for_acknowledged(saves, moment, cut);
    look_for_torn(saves, moment, cut);
    save_again(saves, moment, cut);
  }

 private:
  void fail(int64_t *count, const Moment &moment, const std::string &cut, const std::string &why) {
    if ((*count)++ == 0) first_failure += "after " + moment.call + ", " + cut + ": " + why + "\n";
  }

  /// The last kKeep: the rotation that follows an acknowledgement may remove the older ones.
  void look_for_acknowledged(const Folder &saves, const Moment &moment, const std::string &cut) {
    const size_t count = moment.acknowledged.size();
    for (size_t i = count - std::min<size_t>(count, kKeep); i < count; ++i) {
      const Status status = read_and_compare(saves, moment.acknowledged[i]);
      if (!status.ok()) fail(&lost, moment, cut, status.text());
    }
    FoundSave found;
    const Status status = find_save(saves, 0, &found);
    if (count > 0 && (!status.ok() || found.name < moment.acknowledged.back())) fail(&lost, moment, cut, status.text());
    if (count == 0 && !status.ok() && status.code() != ZERO_E_NOT_FOUND) fail(&torn, moment, cut, status.text());
  }

  /// A save that has a manifest is whole, and the history wrote it.
  void look_for_torn(const Folder &saves, const Moment &moment, const std::string &cut) {
    std::vector<SaveEntry> entries;
    if (!list_saves(saves, &entries).ok()) return fail(&stuck, moment, cut, "no list");
    for (const SaveEntry &entry : entries) {
      if (!entry.committed) continue;
      const Status status = read_and_compare(saves, entry.name);
      if (!status.ok() || !history_.knows(entry.name)) fail(&torn, moment, cut, entry.name + ": " + status.text());
    }
  }

  void save_again(const Folder &saves, const Moment &moment, const std::string &cut) {
    const SampleSaved saved = save_sample(saves, history_.shape(), 1000, {.keep = kKeep});
    if (!saved.status.ok()) return fail(&stuck, moment, cut, saved.status.text());
    const Status status = read_and_compare(saves, saved.name);
    if (!status.ok()) return fail(&stuck, moment, cut, status.text());
    std::vector<FolderEntry> entries;
    const Status listed = saves.list(&entries);
    if (!listed.ok() || entries.size() > kKeep) fail(&stuck, moment, cut, std::to_string(entries.size()) + " folders are left");
  }

  static Status read_and_compare(const Folder &saves, const std::string &name) {
    std::vector<std::byte> bytes;
    Manifest manifest;
    ZERO_TRY(read_manifest(saves, name, true, &bytes, &manifest));
    return compare_sample(saves, name, manifest, 1);
  }

  const History &history_;
};

/// The sets of lost items that are tried at one moment: at most three, all, none, all but one, and some at random.
std::vector<std::vector<bool>> losses(size_t count, int64_t random_count, std::mt19937_64 *random) {
  std::vector<std::vector<bool>> sets = {std::vector<bool>(count, false), std::vector<bool>(count, true)};
  const auto lose = [&](std::initializer_list<size_t> items) {
    sets.emplace_back(count, false);
    for (const size_t item : items) sets.back()[item] = true;
  };
  for (size_t a = 0; a < count; ++a) {
    lose({a});
    sets.emplace_back(count, true);
    sets.back()[a] = false;
    for (size_t b = a + 1; b < count; ++b) {
      lose({a, b});
      for (size_t c = b + 1; c < count; ++c) lose({a, b, c});
    }
  }
  for (int64_t i = 0; i < random_count; ++i) {
    sets.emplace_back(count, false);
    for (size_t item = 0; item < count; ++item) sets.back()[item] = (*random)() % 2 == 0;
  }
  return sets;
}

struct Counts {
  int64_t moments = 0;
  int64_t states = 0;
};

/// Every state that a power cut at one of the moments could leave, within `most`; each distinct one once.
Counts enumerate(const History &history, int64_t most, Oracle *oracle) {
  std::mt19937_64 random(39);
  std::unordered_set<uint64_t> seen;
  Counts counts;
  struct State {
    const Moment *moment;
    std::vector<bool> lost;
    int64_t torn;
  };
  std::vector<State> states;
  for (const Moment &moment : history.moments) {
    ++counts.moments;
    const auto items = static_cast<size_t>(moment.tree.pending_count());
    for (const std::vector<bool> &lost : losses(items, is_full_size() ? 200 : 32, &random)) {
      states.push_back({&moment, lost, -1});
      for (int torn = 0; torn < (is_full_size() ? 6 : 2) && items > 0; ++torn) states.push_back({&moment, lost, static_cast<int64_t>(random() % items)});
    }
  }
  std::shuffle(states.begin(), states.end(), random);
  for (const State &state : states) {
    if (counts.states == most) break;
    ModelTree left = state.moment->tree.cut(state.lost, state.torn, &random);
    const uint64_t key = left.hash() ^ (state.moment->acknowledged.size() * 0x9e3779b97f4a7c15ULL);
    if (!seen.insert(key).second) continue;
    ++counts.states;
    oracle->look_at(std::move(left), *state.moment, std::to_string(std::count(state.lost.begin(), state.lost.end(), true)) + " of " +
                                                        std::to_string(state.lost.size()) + " changes lost");
  }
  return counts;
}

enum class Scenario { first_save, second_save, rotation, after_a_crash };

void play(History *history, Scenario scenario) {
  if (scenario == Scenario::second_save) history->save(1);
  if (scenario == Scenario::rotation) {
    for (uint64_t step = 1; step <= 3; ++step) history->save(step);
  }
  if (scenario == Scenario::after_a_crash) {
    // A save whose files were all written, but not committed, and a sweep of it that was itself cut off half-way.
    History crashed(history->shape());
    crashed.record();
    crashed.save(1);
    const auto at = std::find_if(crashed.moments.begin(), crashed.moments.end(), [](const Moment &m) { return m.call == "renameat"; });
    ASSERT_NE(at, crashed.moments.begin());
    const ModelTree &before = (at - 1)->tree;
    history->go_on_from(before.cut(std::vector<bool>(static_cast<size_t>(before.pending_count()), false), -1, nullptr));
  }
  history->record();
  history->save(10);
}

TEST(Crash, LosesNothingAcknowledgedAcceptsNothingTornStopsNoLaterSave) {
  const int64_t wanted = is_full_size() ? 30'000 : 10'000;
  int64_t states = 0;
  int64_t left = 12;
  for (const int64_t ranks : {1, 2, 4}) {
    for (const Scenario scenario : {Scenario::first_save, Scenario::second_save, Scenario::rotation, Scenario::after_a_crash}) {
      History history({.ranks = ranks, .model = ranks != 1, .extras = ranks == 2,
                       .scale = (ranks == 1 ? 8 : 2) * (is_full_size() ? 3 : 1), .minimal = true});
      ASSERT_NO_FATAL_FAILURE(play(&history, scenario));
      Oracle oracle(history);
      const Counts counts = enumerate(history, (wanted - states) / left-- + 1, &oracle);
      std::printf("%lld ranks, scenario %d: %lld moments, %lld states, %lld lost, %lld torn, %lld stuck\n", lld(ranks),
                  static_cast<int>(scenario), lld(counts.moments), lld(counts.states), lld(oracle.lost), lld(oracle.torn), lld(oracle.stuck));
      EXPECT_EQ(oracle.lost + oracle.torn + oracle.stuck, 0) << oracle.first_failure;
      states += counts.states;
    }
  }
  std::printf("%lld states after power cuts, wanted %lld\n", lld(states), lld(wanted));
  EXPECT_GE(states, wanted);
}

/// Each kind of sync is needed, and the enumerator sees it when one is missing.
TEST(Crash, AMissingSyncIsCaught) {
  for (const auto ignored : {ModelFiles::Ignored::files, ModelFiles::Ignored::saves, ModelFiles::Ignored::folder_of_saves}) {
    History history({.ranks = 1, .model = false, .extras = false, .minimal = true}, ignored);
    history.record();
    history.save(1);
    Oracle oracle(history);
    enumerate(history, 2000, &oracle);
    EXPECT_GT(oracle.lost, 0) << static_cast<int>(ignored);
  }
}

}  // namespace
}  // namespace zero::tests
