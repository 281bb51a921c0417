/// @file The readers get what nobody wrote: mutations of headers, manifests with a right sum, descriptions and indexes. They refuse or accept,
/// never crash, and what they accept keeps its own laws.
#include "checkpoint/description_json.h"
#include "checkpoint/file_plan.h"
#include "checkpoint/manifest.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/save_reader.h"
#include "checkpoint/tensor_files.h"
#include "core/clock.h"
#include "core/hash.h"
#include "tests/checkpoint/full_size.h"
#include "tests/checkpoint/model_files.h"
#include "tests/checkpoint/sample_run.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

namespace zero::tests {
namespace {

using namespace checkpoint;
using Bytes = std::string;

const std::vector<Bytes> &dictionary() {
  static const std::vector<Bytes> kWords = {
      "{", "}", "[", "]", ",", ":", "\"", "\"dtype\":", "\"shape\":", "\"data_offsets\":", "\"__metadata__\":", "\"F32\"", "\"U8\"", "\"I64\"",
      "[0,0]", "[]", "0", "-1", "1", "255", "4611686018427387904", "4611686018427387905", "9223372036854775807", "18446744073709551615",
      "18446744073709551616", "1e9", "1.5", "true", "null", "\\u0000", "\\ud800", "\xff", "\xc3\xa9", "[[[[[[[[[[", "{\"a\":{\"a\":{\"a\":{\"a\":",
      "\"ranks\":", "\"model_files\":", "\"per\":", "\"per_tensor\":true", "\"copy_entries\":", "\"placement\":\"per_rank\"", "\"whole\"",
      "\"state_files\":[0,0]", "\"slots\":[]", "\"tied_to\":\"w\"", "\"cuts.0\"", "\"sum\"", "\"zero.version\":\"1\"", std::string(1, '\0'), "  "};
  return kWords;
}

class Mutator {
 public:
  explicit Mutator(uint64_t seed) : random_(seed) {}

  size_t below(size_t count) { return count == 0 ? 0 : random_() % count; }

  void mutate(Bytes *bytes, const Bytes &other) {
    for (size_t round = 1 + below(4); round > 0; --round) mutate_once(bytes, other);
  }

 private:
  void mutate_once(Bytes *bytes, const Bytes &other) {
    const size_t at = below(bytes->size() + 1);
    const size_t length = std::min(bytes->size() - at, below(below(8) == 0 ? 400 : 12));
    switch (below(8)) {
      case 0:
        if (at < bytes->size()) (*bytes)[at] = static_cast<char>((*bytes)[at] ^ (1 << below(8)));
        break;
      case 1:
        bytes->erase(at, length);
        break;
      case 2:
        bytes->insert(at, bytes->substr(below(bytes->size() + 1), below(60)));
        break;
      case 3:
        bytes->insert(at, dictionary()[below(dictionary().size())]);
        break;
      case 4:
        bytes->replace(at, length, dictionary()[below(dictionary().size())]);
        break;
      case 5:
        bytes->insert(at, other.substr(below(other.size() + 1), below(200)));
        break;
      case 6:
        replace_number(bytes, at);
        break;
      default:
        if (at < bytes->size()) (*bytes)[at] = static_cast<char>(below(256));
    }
  }

  /// The next number in the text becomes another.
  void replace_number(Bytes *bytes, size_t from) {
    const size_t begin = bytes->find_first_of("0123456789", from);
    if (begin == Bytes::npos) return;
    const size_t end = std::min(bytes->find_first_not_of("0123456789", begin), bytes->size());
    const uint64_t number = below(2) == 0 ? below(300) : random_() >> below(64);
    bytes->replace(begin, end - begin, std::to_string(number));
  }

  std::mt19937_64 random_;
};

/// The laws of a header that was accepted.
void check_header(const Header &header) {
  int64_t next = header.data_offset;
  for (const Entry &entry : header.entries) {
    ASSERT_GE(entry.count(), 0);
    ASSERT_EQ(entry.offset, next);
    ASSERT_TRUE(!entry.name.empty() && entry.name.size() <= kMostNameNbytes);
    next += entry.nbytes();
  }
  ASSERT_EQ(next, header.file_nbytes);
}

struct Counts {
  int64_t executions = 0;
  int64_t accepted = 0;
};

Bytes sample_header(int variant) {
  Header header;
  header.entries = {{"a", DiskType::f32, {2, 3}}, {"b", DiskType::u8, {5}}, {"c:first_moment", DiskType::i64, {}}};
  if (variant > 0) header.entries.push_back({"empty", DiskType::bf16, {0, 4}});
  header.metadata = {{"format", "zero"}};
  Bytes head;
  EXPECT_TRUE(format_header(&header, Order::by_size, &head).ok());
  return head.substr(8, head.find_last_not_of(' ') - 7);
}

void fuzz_headers(Mutator *mutator, Counts *counts) {
  Bytes json = sample_header(static_cast<int>(mutator->below(2)));
  mutator->mutate(&json, sample_header(1));
  // Now and then exactly as many bytes as the tensors say, most often those of the seed.
  const int64_t data = mutator->below(8) == 0 ? static_cast<int64_t>(mutator->below(64)) : 37;
  Header header;
  const Status status = parse_header(std::as_bytes(std::span(json)), 8 + static_cast<int64_t>(json.size()) + data, "fuzzed", &header);
  ++counts->executions;
  if (status.ok()) {
    ++counts->accepted;
    check_header(header);
    Bytes again;
    const Status formatted = format_header(&header, Order::given, &again);
    ASSERT_TRUE(formatted.ok()) << formatted.text();
  } else {
    ASSERT_EQ(status.code(), ZERO_E_CHECKPOINT) << status.text();
  }
  int64_t nbytes = 0;
  static_cast<void>(parse_header_length(std::as_bytes(std::span(json)), static_cast<int64_t>(mutator->below(200)), "fuzzed", &nbytes));
}

Bytes sample_manifest_bytes() {
  Manifest manifest;
  manifest.description = sample_description({.ranks = 2}, 12);
  std::vector<int64_t> writers;
  assign_model_files(&manifest.description, 4000, &writers);
  const FilePlan plan(manifest.description);
  for (int64_t file = 0; file < plan.file_count(); ++file) manifest.files.push_back({file, 1000, {7}});
  std::vector<std::byte> bytes;
  EXPECT_TRUE(encode_manifest(manifest, &bytes).ok());
  return {reinterpret_cast<const char *>(bytes.data()), bytes.size()};
}

/// A whole manifest around a mutated part: its header, its numbers, or its description, with lengths, offsets and sum put right again as far
/// as that can be done, so that the reader gets past them.
Bytes mutated_manifest(const Bytes &seed, Mutator *mutator) {
  uint64_t head_nbytes = 0;
  std::memcpy(&head_nbytes, seed.data(), 8);
  Bytes head = seed.substr(8, head_nbytes);
  Bytes data = seed.substr(8 + head_nbytes);
  const size_t text_at = data.find("{\"id\"");
  switch (mutator->below(4)) {
    case 0:
      mutator->mutate(&head, seed);
      break;
    case 1:
      for (size_t i = 0; i < 4; ++i) data[mutator->below(text_at)] = static_cast<char>(mutator->below(256));
      break;
    default: {
      Bytes text = data.substr(text_at, data.size() - 16 - text_at);
      const size_t before = text.size();
      mutator->mutate(&text, text);
      if (text.size() < before) text.resize(before, ' ');
      while (text.size() > before && text.back() == ' ') text.pop_back();
      if (text.size() == before) data.replace(text_at, before, text);
    }
  }
  Bytes bytes = seed.substr(0, 8) + head + data;
  head_nbytes = head.size();
  std::memcpy(bytes.data(), &head_nbytes, 8);
  const Hash128 sum = hash128_of(bytes.data(), bytes.size() - 16);
  std::memcpy(bytes.data() + bytes.size() - 16, &sum.low, 8);
  std::memcpy(bytes.data() + bytes.size() - 8, &sum.high, 8);
  return bytes;
}

void fuzz_manifests(Mutator *mutator, Counts *counts) {
  static const Bytes kSeed = sample_manifest_bytes();
  const Bytes bytes = mutated_manifest(kSeed, mutator);
  Manifest manifest;
  const Status status = decode_manifest(std::as_bytes(std::span(bytes)), "fuzzed", &manifest);
  ++counts->executions;
  if (!status.ok()) {
    ASSERT_EQ(status.code(), ZERO_E_CHECKPOINT) << status.text();
    return;
  }
  ++counts->accepted;
  ASSERT_TRUE(prove_cover(manifest).ok());
  const FilePlan plan(manifest.description);
  for (int64_t file = 0; file < std::min<int64_t>(plan.file_count(), 8); ++file) {
    const PlannedFile planned = plan.file(manifest.description, file);
    Header header{planned.entries, {}};
    Bytes head;
    if (planned.kind != FileKind::index) static_cast<void>(format_header(&header, Order::by_size, &head));
  }
  std::vector<std::byte> again;
  ASSERT_TRUE(encode_manifest(manifest, &again).ok());
  Manifest twice;
  ASSERT_TRUE(decode_manifest(again, "again", &twice).ok());
}

/// An index, and the header of the file that it names, on a file system in memory.
void fuzz_folders(Mutator *mutator, Counts *counts) {
  Bytes index = R"({"metadata": {"total_size": 37}, "weight_map": {"a": "x.safetensors", "b": "x.safetensors"}})";
  Bytes head = sample_header(1);
  Bytes &victim = mutator->below(2) == 0 ? index : head;
  mutator->mutate(&victim, index);
  ModelFiles files;
  const auto put = [&](const char *name, const Bytes &bytes) {
    files.tree.nodes.push_back({});
    const auto *const begin = reinterpret_cast<const std::byte *>(bytes.data());
    files.tree.nodes.back().bytes.assign(begin, begin + bytes.size());
    files.tree.nodes[0].entries[name] = static_cast<int>(files.tree.nodes.size()) - 1;
  };
  const uint64_t head_nbytes = head.size();
  Bytes file(8, '\0');
  std::memcpy(file.data(), &head_nbytes, 8);
  put("x.safetensors", file + head + Bytes(37, 'd'));
  put("model.safetensors.index.json", index);
  const FileCallsReplaced replaced(files);
  TensorFiles found;
  const Status status = TensorFiles::open(ModelFiles::kRoot, &found);
  ++counts->executions;
  if (status.ok()) {
    ++counts->accepted;
  } else {
    ASSERT_EQ(status.code(), ZERO_E_CHECKPOINT) << status.text();
  }
}

void fuzz_one(int64_t kind, Mutator *mutator, Counts *headers, Counts *manifests, Counts *folders) {
  if (kind < 2) fuzz_headers(mutator, headers);
  if (kind == 2) fuzz_manifests(mutator, manifests);
  if (kind == 3) fuzz_folders(mutator, folders);
}

TEST(Fuzz, ReadersRefuseOrAcceptAndKeepTheirLaws) {
  const int64_t wanted = is_full_size() ? 1'000'000 : 20'000;
  const int64_t began = now_ns();
  int64_t slowest = 0;
  Counts headers;
  Counts manifests;
  Counts folders;
  for (int64_t i = 0; headers.executions + manifests.executions + folders.executions < wanted; ++i) {
    Mutator mutator(static_cast<uint64_t>(i));
    const int64_t before = now_ns();
    SCOPED_TRACE("seed " + std::to_string(i));
    fuzz_one(i % 4, &mutator, &headers, &manifests, &folders);
    if (HasFatalFailure()) return;
    slowest = std::max(slowest, now_ns() - before);
  }
  const int64_t executions = headers.executions + manifests.executions + folders.executions;
  std::printf("%lld executions, wanted %lld: headers %lld (%lld accepted), manifests %lld (%lld), folders %lld (%lld); %lld ms, slowest %lld ms\n",
              lld(executions), lld(wanted), lld(headers.executions), lld(headers.accepted), lld(manifests.executions), lld(manifests.accepted),
              lld(folders.executions), lld(folders.accepted), lld((now_ns() - began) / 1'000'000), lld(slowest / 1'000'000));
  EXPECT_GE(executions, wanted);
  // Mutations that are all refused at the first look would test little.
  EXPECT_GT(headers.accepted, executions / 200);
  EXPECT_GT(manifests.accepted, executions / 200);
  EXPECT_GT(folders.accepted, executions / 200);
}

}  // namespace
}  // namespace zero::tests
