/// @file Every bit of a save of 64 KiB flipped, every file cut off at every length, swapped with another's, and made longer: none is
/// accepted, and the error names the file.
#include "tests/checkpoint/model_files.h"
#include "tests/checkpoint/sample_run.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

namespace zero::tests {
namespace {

using namespace checkpoint;

constexpr int64_t kWanted = 65'536;

/// A save in memory whose files have exactly kWanted bytes together, so that the counts are round.
class Damaged {
 public:
  Damaged() : replaced_(files_) {
    EXPECT_TRUE(Folder::open(ModelFiles::kRoot, &saves).ok());
    name = save(1, 0);
    const int64_t missing = kWanted - total();
    EXPECT_GE(missing, 0);
    files_.tree = {};
    name = save(1, missing);
    EXPECT_EQ(total(), kWanted);
    read();
  }

  /// Another save of the same shape.
  std::string save(uint64_t step, int64_t more) {
    SaveDescription description = sample_description({.ranks = 2, .minimal = true}, step);
    description.extras[0].shape = {1 + more + extra_};
    std::vector<int64_t> writers;
    assign_model_files(&description, 1 << 30, &writers);
    const SampleSaved saved = save_sample(saves, description, writers, {.rotate = false});
    EXPECT_TRUE(saved.status.ok()) << saved.status.text();
    extra_ += more;
    return saved.name;
  }

  void read() {
    std::vector<std::byte> ignored;
    const Status status = read_manifest(saves, name, true, &ignored, &manifest);
    EXPECT_TRUE(status.ok()) << status.text();
  }

  std::vector<std::string> file_names() const {
    std::vector<std::string> names;
    for (const auto &[file, node] : files_.tree.nodes[static_cast<size_t>(files_.tree.find(name))].entries) names.push_back(file);
    return names;
  }
  std::vector<std::byte> &bytes_of(const std::string &save, const std::string &file) {
    return files_.tree.nodes[static_cast<size_t>(files_.tree.find(save + "/" + file))].bytes;
  }
  std::vector<std::byte> &bytes_of(const std::string &file) { return bytes_of(name, file); }

  /// As a program does that opens the save: the manifest, the sizes, then all blocks of all files.
  Status open_and_verify() {
    std::vector<std::byte> ignored;
    Manifest found;
    ZERO_TRY(read_manifest(saves, name, true, &ignored, &found));
    SaveReader reader(found, kOptions);
    ZERO_TRY(reader.open(saves, name, 0));
    return reader.verify(nullptr);
  }

  /// The same, less what does not look at `file`.
  Status open_and_verify(const std::string &file) {
    if (file == kManifestName) return open_and_verify();
    if (!reader_) {
      reader_ = std::make_unique<SaveReader>(manifest, kOptions);
      ZERO_TRY(reader_->open(saves, name, 0));
    }
    const FilePlan plan(manifest.description);
    for (int64_t f = 0; f < plan.file_count(); ++f) {
      if (plan.name(f) == file) return reader_->verify_file(f, nullptr);
    }
    return Status::error(ZERO_E_INTERNAL, "no file %s", file.c_str());
  }

  Folder saves;
  std::string name;
  Manifest manifest;

 private:
  static constexpr StreamOptions kOptions{.staging_nbytes = 2 << 20};

  int64_t total() {
    int64_t nbytes = 0;
    for (const std::string &file : file_names()) nbytes += static_cast<int64_t>(bytes_of(file).size());
    return nbytes;
  }

  ModelFiles files_;
  const FileCallsReplaced replaced_;
  int64_t extra_ = 0;
  std::unique_ptr<SaveReader> reader_;
};

struct Found {
  int64_t tried = 0;
  int64_t accepted = 0;
  int64_t blamed_wrongly = 0;
  std::string first;

  void add(const Status &status, const std::string &file) {
    ++tried;
    const bool named = std::strstr(status.text(), ("/" + file).c_str()) != nullptr;
    const bool right = status.code() == ZERO_E_CHECKPOINT && named;
    if (status.ok()) ++accepted;
    if (!status.ok() && !right) ++blamed_wrongly;
    if (!right && first.empty()) first = file + ": " + status.text();
  }
  void expect_none(const char *what, int64_t wanted) const {
    std::printf("%lld %s, wanted %lld: %lld accepted, %lld blamed on another file\n", lld(tried), what, lld(wanted), lld(accepted),
                lld(blamed_wrongly));
    EXPECT_EQ(accepted, 0) << first;
    EXPECT_EQ(blamed_wrongly, 0) << first;
    EXPECT_GE(tried, wanted);
  }
};

TEST(Damage, NoFlippedBitIsAccepted) {
  Damaged damaged;
  Found found;
  for (const std::string &file : damaged.file_names()) {
    std::vector<std::byte> &bytes = damaged.bytes_of(file);
    for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
      const std::byte mask{static_cast<unsigned char>(1U << (bit % 8))};
      bytes[bit / 8] ^= mask;
      // The whole save now and then: the file by itself is what decides.
      found.add(bit % 1021 == 0 ? damaged.open_and_verify() : damaged.open_and_verify(file), file);
      bytes[bit / 8] ^= mask;
    }
  }
  EXPECT_TRUE(damaged.open_and_verify().ok());
  found.expect_none("flipped bits", kWanted * 8);
}

TEST(Damage, NoTruncationIsAccepted) {
  Damaged damaged;
  Found found;
  for (const std::string &file : damaged.file_names()) {
    std::vector<std::byte> &bytes = damaged.bytes_of(file);
    const std::vector<std::byte> whole = bytes;
    for (size_t length = 0; length < whole.size(); ++length) {
      bytes.resize(length);
      found.add(damaged.open_and_verify(), file);
      bytes = whole;
    }
  }
  EXPECT_TRUE(damaged.open_and_verify().ok());
  found.expect_none("truncations", kWanted);
}

TEST(Damage, NoLongerFileIsAccepted) {
  Damaged damaged;
  Found found;
  for (const std::string &file : damaged.file_names()) {
    std::vector<std::byte> &bytes = damaged.bytes_of(file);
    const std::vector<std::byte> whole = bytes;
    for (const size_t more : {1, 2, 8, 512, 4096}) {
      bytes.resize(whole.size() + more);
      found.add(damaged.open_and_verify(), file);
      bytes = whole;
    }
  }
  found.expect_none("files with bytes too many", 25);
}

/// Each file of two saves of one run is put in place of each other file, of the other save and of its own.
TEST(Damage, NoSwappedFileIsAccepted) {
  Damaged damaged;
  const std::string other = damaged.save(2, 0);
  Found found;
  for (const std::string &file : damaged.file_names()) {
    std::vector<std::byte> &bytes = damaged.bytes_of(file);
    const std::vector<std::byte> whole = bytes;
    for (const std::string &from : damaged.file_names()) {
      for (const std::string &save : {other, damaged.name}) {
        if (save == damaged.name && from == file) continue;
        bytes = damaged.bytes_of(save, from);
        if (bytes == whole) continue;  // the index is the same in all saves
        found.add(damaged.open_and_verify(), file);
        bytes = whole;
      }
    }
  }
  found.expect_none("swapped files", 50);
}

}  // namespace
}  // namespace zero::tests
