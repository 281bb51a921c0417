/// @file The manifest as a safetensors file of numbers, a description and a sum.
#include "checkpoint/manifest.h"

#include "checkpoint/description_json.h"
#include "checkpoint/file_plan.h"
#include "checkpoint/safetensors.h"
#include "core/hash.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace zero::checkpoint {
namespace {

constexpr int64_t kSumNbytes = 16;
constexpr const char *kSumName = "sum";
constexpr size_t kFirstCuts = 3;  ///< entries before the cuts of the first section
constexpr const char *kDescriptionName = "json";

std::string cuts_name(size_t section) { return "cuts." + std::to_string(section); }

/// Entries of the manifest, in the order of the format.
std::vector<Entry> layout_of(const Manifest &manifest, int64_t text_nbytes) {
  const auto files = static_cast<int64_t>(manifest.files.size());
  int64_t blocks = 0;
  for (const FileReport &file : manifest.files) blocks += static_cast<int64_t>(file.block_hashes.size());
  std::vector<Entry> entries = {{"file_nbytes", DiskType::i64, {files}},
                                {"block_first", DiskType::i64, {files + 1}},
                                {"block_hash", DiskType::u64, {blocks}}};
  for (size_t s = 0; s < manifest.description.sections.size(); ++s) {
    const Section &section = manifest.description.sections[s];
    entries.push_back({cuts_name(s), DiskType::i64, {static_cast<int64_t>(section.tensors.size()), section.rank_count + 1}});
  }
  entries.push_back({kDescriptionName, DiskType::u8, {text_nbytes}});
  entries.push_back({kSumName, DiskType::u64, {2}});
  return entries;
}

class Writer {
 public:
  explicit Writer(std::vector<std::byte> *out) : out_(*out) {}
  void put(const void *data, size_t nbytes) {
    if (nbytes == 0) return;
    const auto *const bytes = static_cast<const std::byte *>(data);
    out_.insert(out_.end(), bytes, bytes + nbytes);
  }
  template <class T>
  void put(const std::vector<T> &values) {
    put(values.data(), values.size() * sizeof(T));
  }
  void put(int64_t value) { put(&value, sizeof value); }

 private:
  std::vector<std::byte> &out_;
};

Status check_reports(const Manifest &manifest) {
  const FilePlan plan(manifest.description);
  ZERO_CHECK(static_cast<int64_t>(manifest.files.size()) == plan.file_count(), ZERO_E_INVALID_ARGUMENT,
             "a save of %lld files was reported with %zu", lld(plan.file_count()), manifest.files.size());
  for (size_t f = 0; f < manifest.files.size(); ++f) {
    const FileReport &file = manifest.files[f];
    ZERO_CHECK(file.file == static_cast<int64_t>(f), ZERO_E_INVALID_ARGUMENT, "file %s of a save was reported as number %lld, expected %zu",
               plan.name(static_cast<int64_t>(f)).c_str(), lld(file.file), f);
    ZERO_CHECK(file.nbytes >= 0 && static_cast<int64_t>(file.block_hashes.size()) == block_count(file.nbytes), ZERO_E_INVALID_ARGUMENT,
               "file %s of %lld bytes was reported with %zu block hashes", plan.name(file.file).c_str(), lld(file.nbytes),
               file.block_hashes.size());
  }
  return {};
}

/// Decodes the parts of a manifest whose sum is correct.
class Decoder {
 public:
  Decoder(std::span<const std::byte> bytes, const std::string &path) : bytes_(bytes), path_(path) {}

  Status run(Manifest *out) {
    ZERO_TRY(read_header());
    ZERO_TRY(read_description(&out->description));
    ZERO_TRY(check_layout(out));
    read_cuts(&out->description);
    ZERO_TRY(read_files(out));
    return check(*out);
  }

 private:
  Status read_header() {
    int64_t json_nbytes = 0;
    const auto nbytes = static_cast<int64_t>(bytes_.size());
    ZERO_TRY(parse_header_length(bytes_, nbytes, path_, &json_nbytes));
    ZERO_TRY(parse_header(bytes_.subspan(8, static_cast<size_t>(json_nbytes)), nbytes, path_, &header_));
    const auto version = header_.metadata.find("zero.version");
    ZERO_CHECK(version != header_.metadata.end(), ZERO_E_CHECKPOINT, "%s has no zero.version: it is no manifest of libzero", path_.c_str());
    ZERO_CHECK(version->second == std::to_string(kFormatVersion), ZERO_E_CHECKPOINT,
               "%s was written in version %.20s of the format, but this library reads version %d: use a newer library", path_.c_str(),
               version->second.c_str(), kFormatVersion);
    return {};
  }

  Status find(const std::string &name, DiskType type, const Entry **out) const {
    *out = header_.find(name);
    ZERO_CHECK(*out != nullptr && (*out)->type == type, ZERO_E_CHECKPOINT, "%s lacks the tensor \"%s\" of %s", path_.c_str(), name.c_str(),
               disk_type_name(type));
    return {};
  }

  template <class T>
  std::vector<T> values(const Entry &entry) const {
    std::vector<T> values(static_cast<size_t>(entry.count()));
    if (!values.empty()) std::memcpy(values.data(), bytes_.data() + entry.offset, values.size() * sizeof(T));
    return values;
  }

  Status read_description(SaveDescription *out) const {
    const Entry *text = nullptr;
    ZERO_TRY(find(kDescriptionName, DiskType::u8, &text));
    return parse_description(
        {reinterpret_cast<const char *>(bytes_.data() + text->offset), static_cast<size_t>(text->nbytes())}, path_, out);
  }

  /// Runs before any work whose cost grows with ranks or files.
  Status check_counts(const SaveDescription &description) const {
    ZERO_CHECK(description.rank_count >= 1 && description.model_file_count >= 0 && description.rank_count <= kMostManifestNbytes &&
                   description.model_file_count <= kMostManifestNbytes,
               ZERO_E_CHECKPOINT, "%s: the description has %lld ranks and %lld model files", path_.c_str(), lld(description.rank_count),
               lld(description.model_file_count));
    for (const Section &section : description.sections) {
      ZERO_CHECK(section.rank_count >= 1 && section.rank_count <= description.rank_count, ZERO_E_CHECKPOINT,
                 "%s: section \"%.100s\" has %lld ranks of %lld", path_.c_str(), section.prefix.c_str(), lld(section.rank_count),
                 lld(description.rank_count));
    }
    return {};
  }

  /// Checks that all entries exist, in their order, with their shapes.
  Status check_layout(Manifest *out) {
    const SaveDescription &description = out->description;
    ZERO_TRY(check_counts(description));
    const Entry *hashes = nullptr;
    const Entry *text = nullptr;
    ZERO_TRY(find("block_hash", DiskType::u64, &hashes));
    ZERO_TRY(find(kDescriptionName, DiskType::u8, &text));
    std::vector<Entry> wanted = layout_of(*out, text->count());
    const int64_t files = FilePlan(description).file_count();
    wanted[0].shape = {files};
    wanted[1].shape = {files + 1};
    wanted[2].shape = {hashes->count()};
    ZERO_CHECK(wanted.size() == header_.entries.size(), ZERO_E_CHECKPOINT, "%s has %zu tensors, but its description needs %zu",
               path_.c_str(), header_.entries.size(), wanted.size());
    for (size_t i = 0; i < wanted.size(); ++i) {
      const Entry &found = header_.entries[i];
      const bool same = found.name == wanted[i].name && found.type == wanted[i].type && found.shape == wanted[i].shape;
      ZERO_CHECK(same, ZERO_E_CHECKPOINT, "%s: tensor %zu is %.100s, expected %s, with the shape that follows from the description",
                 path_.c_str(), i, found.name.c_str(), wanted[i].name.c_str());
    }
    return {};
  }

  /// The cuts are in the order of the sections, as check_layout() has verified.
  void read_cuts(SaveDescription *description) const {
    for (size_t s = 0; s < description->sections.size(); ++s) {
      description->sections[s].cuts = values<int64_t>(header_.entries[kFirstCuts + s]);
    }
  }

  Status read_files(Manifest *out) const {
    const std::vector<int64_t> nbytes = values<int64_t>(header_.entries[0]);
    const std::vector<int64_t> first = values<int64_t>(header_.entries[1]);
    const std::vector<uint64_t> hashes = values<uint64_t>(header_.entries[2]);
    const bool rises = first.front() == 0 && std::is_sorted(first.begin(), first.end()) &&
                       first.back() == static_cast<int64_t>(hashes.size());
    ZERO_CHECK(rises, ZERO_E_CHECKPOINT, "%s: the lists of block hashes do not follow one another", path_.c_str());
    out->files.resize(nbytes.size());
    Int128 total = 0;
    for (size_t f = 0; f < nbytes.size(); ++f) {
      ZERO_CHECK(nbytes[f] >= 0 && nbytes[f] <= kPerTensor && block_count(nbytes[f]) == first[f + 1] - first[f], ZERO_E_CHECKPOINT,
                 "%s: file %zu of %lld bytes has %lld block hashes", path_.c_str(), f, lld(nbytes[f]), lld(first[f + 1] - first[f]));
      total += nbytes[f];
      out->files[f] = {static_cast<int64_t>(f), nbytes[f], {hashes.begin() + first[f], hashes.begin() + first[f + 1]}};
    }
    ZERO_CHECK(total <= kPerTensor, ZERO_E_CHECKPOINT, "%s: the files have more than 2^62 bytes together", path_.c_str());
    return {};
  }

  Status check(const Manifest &found) const {
    const Status status = check_description(found.description);
    ZERO_CHECK(status.ok(), ZERO_E_CHECKPOINT, "%s: %s", path_.c_str(), status.text());
    const auto id = header_.metadata.find("zero.save");
    ZERO_CHECK(id != header_.metadata.end() && id->second == found.description.id, ZERO_E_CHECKPOINT,
               "%s: header and description name different saves", path_.c_str());
    return {};
  }

  const std::span<const std::byte> bytes_;
  const std::string &path_;
  Header header_;
};

}  // namespace

uint64_t block_hash(std::span<const std::byte> block, int64_t number) {
  return hash_of(block.data(), block.size(), static_cast<uint64_t>(number));
}

int64_t Manifest::nbytes() const {
  int64_t nbytes = 0;
  for (const FileReport &file : files) nbytes += file.nbytes;
  return nbytes;
}

Status encode_manifest(const Manifest &manifest, std::vector<std::byte> *out) {
  ZERO_TRY(check_description(manifest.description));
  ZERO_TRY(check_reports(manifest));
  std::string text = description_text(manifest.description);
  // Pads the text so that the sum is aligned.
  text.resize(static_cast<size_t>(round_up(static_cast<int64_t>(text.size()), kSumNbytes)), ' ');
  Header header{layout_of(manifest, static_cast<int64_t>(text.size())),
                file_metadata(manifest.description, FileKind::state, kManifestName)};
  std::string head;
  ZERO_TRY(format_header(&header, Order::given, &head));
  ZERO_CHECK(header.file_nbytes <= kMostManifestNbytes, ZERO_E_INVALID_ARGUMENT,
             "the manifest of a save would have %lld bytes, but at most %lld are read; save fewer tensors at once", lld(header.file_nbytes),
             lld(kMostManifestNbytes));
  out->clear();
  out->reserve(static_cast<size_t>(header.file_nbytes));
  Writer writer(out);
  writer.put(head.data(), head.size());
  for (const FileReport &file : manifest.files) writer.put(file.nbytes);
  int64_t first = 0;
  writer.put(first);
  for (const FileReport &file : manifest.files) writer.put(first += static_cast<int64_t>(file.block_hashes.size()));
  for (const FileReport &file : manifest.files) writer.put(file.block_hashes);
  for (const Section &section : manifest.description.sections) writer.put(section.cuts);
  writer.put(text.data(), text.size());
  const Hash128 sum = hash128_of(out->data(), out->size());
  writer.put(&sum.low, sizeof sum.low);
  writer.put(&sum.high, sizeof sum.high);
  return {};
}

Status decode_manifest(std::span<const std::byte> bytes, const std::string &path, Manifest *out) {
  const auto nbytes = static_cast<int64_t>(bytes.size());
  ZERO_CHECK(nbytes > kSumNbytes && nbytes <= kMostManifestNbytes, ZERO_E_CHECKPOINT,
             "%s has %lld bytes, which no manifest has: it was cut off",
             path.c_str(), lld(nbytes));
  const std::span<const std::byte> summed = bytes.first(bytes.size() - static_cast<size_t>(kSumNbytes));
  Hash128 stored;
  std::memcpy(&stored.low, summed.data() + summed.size(), sizeof stored.low);
  std::memcpy(&stored.high, summed.data() + summed.size() + sizeof stored.low, sizeof stored.high);
  const Hash128 found = hash128_of(summed.data(), summed.size());
  ZERO_CHECK(found == stored, ZERO_E_CHECKPOINT, "%s is damaged: its sum is %016llx%016llx, expected %016llx%016llx", path.c_str(),
             static_cast<unsigned long long>(found.high), static_cast<unsigned long long>(found.low),
             static_cast<unsigned long long>(stored.high), static_cast<unsigned long long>(stored.low));
  Manifest manifest;
  ZERO_TRY(Decoder(bytes, path).run(&manifest));
  *out = std::move(manifest);
  return {};
}

}  // namespace zero::checkpoint
