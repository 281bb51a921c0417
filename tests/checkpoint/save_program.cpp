/// @file A program that saves the sample run once, to be traced and killed, and that looks at what is left.
///
/// usage: save_program save FOLDER STEP   saves, keeps 2; prints "acknowledged NAME", then how often it made which call
///        save_program check FOLDER NAME...   0 when each of these saves and whatever is found is whole, and another save succeeds
///        save_program save-all FOLDER   saves with everything a save can hold
///        save_program plain PATH   a line of JSON for each tensor: name, type, shape, digest of its bytes
#include "checkpoint/tensor_files.h"
#include "tests/checkpoint/sample_run.h"

#include <nlohmann/json.hpp>

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>

namespace {

using namespace zero;
using namespace zero::checkpoint;

const tests::SampleShape kShape{.ranks = 2, .minimal = true};

/// The system's calls, counted by the names that a trace has for them.
class CountingCalls final : public FileCalls {
 public:
  OwnedFd open_at(int folder, const char *name, int flags, mode_t mode) override {
    return count("openat"), system_file_calls().open_at(folder, name, flags, mode);
  }
  int make_folder(int folder, const char *name, mode_t mode) override {
    return count("mkdirat"), system_file_calls().make_folder(folder, name, mode);
  }
  ssize_t read_at(int file, void *out, size_t nbytes, int64_t offset) override {
    return count("pread64"), system_file_calls().read_at(file, out, nbytes, offset);
  }
  ssize_t write_at(int file, const void *data, size_t nbytes, int64_t offset) override {
    return count("pwrite64"), system_file_calls().write_at(file, data, nbytes, offset);
  }
  int set_direct(int file, bool direct) override { return system_file_calls().set_direct(file, direct); }
  int allocate(int file, int64_t nbytes) override { return count("fallocate"), system_file_calls().allocate(file, nbytes); }
  int truncate(int file, int64_t nbytes) override { return count("ftruncate"), system_file_calls().truncate(file, nbytes); }
  int sync(int file) override { return count("fsync"), system_file_calls().sync(file); }
  int close(OwnedFd file) override { return system_file_calls().close(std::move(file)); }
  int rename(int folder, const char *from, int to_folder, const char *to) override {
    return count("renameat"), system_file_calls().rename(folder, from, to_folder, to);
  }
  int unlink(int folder, const char *name, int flags) override { return count("unlinkat"), system_file_calls().unlink(folder, name, flags); }
  int stat(int file, struct stat *out) override { return system_file_calls().stat(file, out); }
  int stat_at(int folder, const char *name, struct stat *out) override { return system_file_calls().stat_at(folder, name, out); }
  int list(int folder, std::vector<FolderEntry> *out) override { return count("openat"), system_file_calls().list(folder, out); }
  int64_t free_nbytes(int file) override { return system_file_calls().free_nbytes(file); }

  void print() const {
    for (const auto &[name, number] : counts_) std::printf("%s=%d\n", name.c_str(), number);
  }

 private:
  void count(const char *name) { ++counts_[name]; }
  std::map<std::string, int> counts_;
};

int fail(const Status &status) {
  std::fprintf(stderr, "%s\n", status.text());
  return 1;
}

int save(const std::string &path, uint64_t step) {
  CountingCalls calls;
  const FileCallsReplaced replaced(calls);
  // The trace begins to count here.
  static_cast<void>(::access("/the-save-begins", F_OK));
  Folder saves;
  const Status opened = Folder::open(path, &saves);
  if (!opened.ok()) return fail(opened);
  SaveDescription description = tests::sample_description(kShape, step);
  std::vector<int64_t> writers;
  assign_model_files(&description, 1 << 30, &writers);
  const auto tell = [&] {
    std::printf("acknowledged %s\n", save_name(step, description.id).c_str());
    std::fflush(stdout);
  };
  const tests::SampleSaved saved = tests::save_sample(saves, description, writers, {.keep = 2, .acknowledged = tell});
  if (!saved.status.ok()) return fail(saved.status);
  static_cast<void>(::access("/the-save-ends", F_OK));
  calls.print();
  return 0;
}

Status check_one(const Folder &saves, const std::string &name) {
  std::vector<std::byte> bytes;
  Manifest manifest;
  ZERO_TRY(read_manifest(saves, name, true, &bytes, &manifest));
  return tests::compare_sample(saves, name, manifest, 3);
}

Status check(const std::string &path, char **names, int count) {
  Folder saves;
  ZERO_TRY(Folder::open(path, &saves));
  for (int i = 0; i < count; ++i) ZERO_TRY(check_one(saves, names[i]));
  std::vector<SaveEntry> entries;
  ZERO_TRY(list_saves(saves, &entries));
  for (const SaveEntry &entry : entries) {
    if (entry.committed) ZERO_TRY(check_one(saves, entry.name));
  }
  const tests::SampleSaved next = tests::save_sample(saves, kShape, 1000, {.keep = 2});
  ZERO_TRY(next.status);
  ZERO_TRY(check_one(saves, next.name));
  std::vector<FolderEntry> left;
  ZERO_TRY(saves.list(&left));
  ZERO_CHECK(left.size() <= 2, ZERO_E_INTERNAL, "%zu folders are left, expected at most 2", left.size());
  return {};
}

Status save_all(const std::string &path) {
  Folder saves;
  ZERO_TRY(Folder::open(path, &saves));
  const tests::SampleOptions keep_all{.keep = 0};
  ZERO_TRY(tests::save_sample(saves, tests::SampleShape{.ranks = 1}, 6, keep_all).status);
  ZERO_TRY(tests::save_sample(saves, tests::SampleShape{.ranks = 3, .scale = 2}, 7, keep_all).status);
  return tests::save_sample(saves, tests::SampleShape{.ranks = 4, .model = false}, 8, keep_all).status;
}

/// One number over all bytes of a tensor, which come in their order.
class DigestSink final : public PlainSink {
 public:
  Status take(const PlainRange &, int64_t, std::span<const std::byte> data) override {
    for (const std::byte byte : data) value = value * 31 + std::to_integer<uint64_t>(byte);
    return {};
  }
  uint64_t value = 0;
};

Status print_plain(const std::string &path) {
  TensorFiles files;
  ZERO_TRY(TensorFiles::open(path, &files));
  for (const PlainTensor &tensor : files.tensors()) {
    DigestSink sink;
    const PlainRange range{files.find(tensor.entry.name), 0, tensor.entry.nbytes()};
    ZERO_TRY(files.read({&range, 1}, {}, sink, nullptr));
    char digest[24];
    std::snprintf(digest, sizeof digest, "%016llx", static_cast<unsigned long long>(sink.value));
    const nlohmann::json line = {tensor.entry.name, disk_type_name(tensor.entry.type), nlohmann::json(tensor.entry.shape).dump(), digest};
    std::printf("%s\n", line.dump().c_str());
  }
  return {};
}

}  // namespace

int main(int argc, char **argv) {
  if (argc == 4 && std::strcmp(argv[1], "save") == 0) return save(argv[2], std::strtoull(argv[3], nullptr, 10));
  if (argc >= 3 && std::strcmp(argv[1], "check") == 0) {
    const Status status = check(argv[2], argv + 3, argc - 3);
    return status.ok() ? 0 : fail(status);
  }
  if (argc == 3 && std::strcmp(argv[1], "save-all") == 0) {
    const Status status = save_all(argv[2]);
    return status.ok() ? 0 : fail(status);
  }
  if (argc == 3 && std::strcmp(argv[1], "plain") == 0) {
    const Status status = print_plain(argv[2]);
    return status.ok() ? 0 : fail(status);
  }
  std::fputs("usage: save_program save FOLDER STEP | check FOLDER NAME... | save-all FOLDER | plain PATH\n", stderr);
  return 2;
}
