/// @file Opening and reading plain safetensors.
#include "checkpoint/tensor_files.h"

#include "checkpoint/file_plan.h"
#include "checkpoint/strict_json.h"
#include "checkpoint/transfers.h"
#include "core/clock.h"

#include <algorithm>
#include <cstdio>
#include <utility>

namespace zero::checkpoint {
namespace {

constexpr int64_t kMostIndexNbytes = 256 << 20;
constexpr int64_t kFirstNbytes = 8;

/// Names come from the file and must not be paths.
Status check_file_name(const std::string &name, const std::string &index) {
  const bool plain = !name.empty() && name.size() <= 255 && name.find('/') == std::string::npos && name.front() != '.' &&
                     name.find('\0') == std::string::npos;
  ZERO_CHECK(plain, ZERO_E_CHECKPOINT, "%s names the file \"%.200s\", which is no name of a file beside it", index.c_str(), name.c_str());
  return {};
}

/// Follows symbolic links, because caches of models use them.
Status open_plain(const Folder &folder, const std::string &name, File *out) {
  return folder.open_file(name, out, nullptr, Folder::Links::followed);
}

Status read_text(const Folder &folder, const std::string &name, std::string *out) {
  File file;
  ZERO_TRY(open_plain(folder, name, &file));
  int64_t nbytes = 0;
  ZERO_TRY(file.size(&nbytes));
  ZERO_CHECK(nbytes <= kMostIndexNbytes, ZERO_E_CHECKPOINT, "%s has %lld bytes, but an index has at most %lld", file.path().c_str(),
             lld(nbytes), lld(kMostIndexNbytes));
  out->resize(static_cast<size_t>(nbytes));
  return file.read_at(std::as_writable_bytes(std::span(*out)), out->size(), 0);
}

/// Reads the file of each tensor from the index.
Status read_index(const Folder &folder, const std::string &name, std::map<std::string, std::string> *out) {
  std::string text;
  ZERO_TRY(read_text(folder, name, &text));
  const std::string path = folder.path_of(name);
  JsonValue json;
  ZERO_TRY(parse_json(text, path, &json));
  const JsonValue *const map = json.find("weight_map");
  ZERO_CHECK(map != nullptr && map->kind == JsonValue::Kind::object && !map->items.empty(), ZERO_E_CHECKPOINT,
             "%s has no \"weight_map\" with the file of each tensor", path.c_str());
  for (size_t i = 0; i < map->items.size(); ++i) {
    const JsonValue &file = map->items[i];
    ZERO_CHECK(file.kind == JsonValue::Kind::text, ZERO_E_CHECKPOINT, "%s: the file of tensor %.100s is no text", path.c_str(),
               map->keys[i].c_str());
    ZERO_TRY(check_file_name(file.text, path));
    out->emplace(map->keys[i], file.text);
  }
  return {};
}

Status read_header(const File &file, Header *out) {
  int64_t nbytes = 0;
  ZERO_TRY(file.size(&nbytes));
  std::byte first[kFirstNbytes];
  const auto length = static_cast<size_t>(std::min(nbytes, kFirstNbytes));
  ZERO_TRY(file.read_at(std::span(first).first(length), length, 0));
  int64_t json_nbytes = 0;
  ZERO_TRY(parse_header_length(std::span(first).first(length), nbytes, file.path(), &json_nbytes));
  std::vector<std::byte> json(static_cast<size_t>(json_nbytes));
  ZERO_TRY(file.read_at(json, json.size(), kFirstNbytes));
  return parse_header(json, nbytes, file.path(), out);
}

/// Finds the file or index to open for a folder.
Status main_file(const Folder &folder, std::string *out) {
  for (const char *name : {kIndexName, kModelName}) {
    bool there = false;
    ZERO_TRY(folder.has(name, &there));
    *out = name;
    if (there) return {};
  }
  std::vector<FolderEntry> entries;
  ZERO_TRY(folder.list(&entries));
  std::erase_if(entries, [](const FolderEntry &entry) { return !entry.name.ends_with(kSuffix); });
  ZERO_CHECK(!entries.empty(), ZERO_E_NOT_FOUND, "%s holds no %s and no file that ends with %s", folder.path().c_str(), kIndexName,
             kSuffix);
  ZERO_CHECK(entries.size() == 1, ZERO_E_INVALID_ARGUMENT, "%s holds %zu files that end with %s, but no %s: give the path of one",
             folder.path().c_str(), entries.size(), kSuffix, kIndexName);
  *out = entries.front().name;
  return {};
}

/// Ranges of one file, read in pieces that fit into a buffer and hold whole elements.
class RangeReader {
 public:
  RangeReader(const std::vector<PlainTensor> &tensors, StreamedFile *file, Transfers *transfers)
      : tensors_(tensors), file_(*file), transfers_(*transfers) {}

  void add(const PlainRange &range) {
    const int64_t most = static_cast<int64_t>(transfers_.buffer(0).size()) - Transfers::kAlignment;
    // No element has more than 8 bytes.
    for (int64_t at = 0; at < range.nbytes; at += most / 8 * 8) {
      pieces_.push_back({&range, at, std::min(range.nbytes - at, most / 8 * 8)});
    }
  }

  Status run(PlainSink &sink, Progress *progress, StreamCounts *counts) {
    for (size_t p = 0; p < static_cast<size_t>(Transfers::kBuffers); ++p) begin(p);
    for (size_t p = 0; p < pieces_.size(); ++p) {
      const Piece &piece = pieces_[p];
      const int number = static_cast<int>(p % Transfers::kBuffers);
      const int64_t began = now_ns();
      const Status read = transfers_.end(number);
      ZERO_CHECK(read.ok(), read.code(), "%s, where tensor %.100s lies", read.text(), entry_of(piece).name.c_str());
      const int64_t waited = now_ns();
      const auto skipped = static_cast<size_t>(place_of(piece) % Transfers::kAlignment);
      ZERO_TRY(sink.take(*piece.range, piece.at, transfers_.buffer(number).subspan(skipped, static_cast<size_t>(piece.nbytes))));
      counts->wait_ns += waited - began;
      counts->copy_ns += now_ns() - waited;
      counts->nbytes += piece.nbytes;
      begin(p + static_cast<size_t>(Transfers::kBuffers));
      if (progress != nullptr) ZERO_TRY(progress->advance(piece.nbytes));
    }
    return {};
  }

 private:
  struct Piece {
    const PlainRange *range;
    int64_t at;
    int64_t nbytes;
  };

  const Entry &entry_of(const Piece &piece) const { return tensors_[static_cast<size_t>(piece.range->tensor)].entry; }
  int64_t place_of(const Piece &piece) const { return entry_of(piece).offset + piece.range->offset + piece.at; }

  /// Reads from the unit that contains the begin of the piece.
  void begin(size_t p) {
    if (p >= pieces_.size()) return;
    const int64_t place = place_of(pieces_[p]);
    const int64_t skipped = place % Transfers::kAlignment;
    transfers_.begin_read(static_cast<int>(p % Transfers::kBuffers), &file_, static_cast<size_t>(skipped + pieces_[p].nbytes),
                          place - skipped);
  }

  const std::vector<PlainTensor> &tensors_;
  StreamedFile &file_;
  Transfers &transfers_;
  std::vector<Piece> pieces_;
};

}  // namespace

Status TensorFiles::open(const std::string &path, TensorFiles *out) {
  TensorFiles found;
  std::string main = name_in(path);
  if (path.ends_with(kSuffix) || path.ends_with(".json")) {
    ZERO_TRY(Folder::open(folder_of(path), &found.folder_));
  } else {
    ZERO_TRY(Folder::open(path, &found.folder_));
    ZERO_TRY(main_file(found.folder_, &main));
  }
  if (!main.ends_with(".json")) {
    ZERO_TRY(found.add_file(main));
    *out = std::move(found);
    return {};
  }
  std::map<std::string, std::string> index;
  ZERO_TRY(read_index(found.folder_, main, &index));
  std::map<std::string, int64_t> files;
  for (const auto &[tensor, file] : index) files.emplace(file, 0);
  for (auto &[file, number] : files) {
    number = static_cast<int64_t>(found.files_.size());
    ZERO_TRY(found.add_file(file));
  }
  for (const auto &[tensor, file] : index) {
    const int64_t at = found.find(tensor);
    ZERO_CHECK(at >= 0 && found.tensors_[static_cast<size_t>(at)].file == files[file], ZERO_E_CHECKPOINT,
               "%s says that %s holds tensor %.100s, but it %s",
               found.folder_.path_of(main).c_str(), file.c_str(), tensor.c_str(), "does not");
  }
  *out = std::move(found);
  return {};
}

Status TensorFiles::add_file(const std::string &name) {
  File file;
  ZERO_TRY(open_plain(folder_, name, &file));
  Header header;
  ZERO_TRY(read_header(file, &header));
  const auto number = static_cast<int64_t>(files_.size());
  for (Entry &entry : header.entries) {
    const auto [at, is_new] = by_name_.emplace(entry.name, static_cast<int64_t>(tensors_.size()));
    ZERO_CHECK(is_new, ZERO_E_CHECKPOINT, "tensor %.100s is in both %s and %s", entry.name.c_str(), file.path().c_str(),
               folder_.path_of(files_[static_cast<size_t>(tensors_[static_cast<size_t>(at->second)].file)]).c_str());
    tensors_.push_back({std::move(entry), number});
  }
  files_.push_back(name);
  file_nbytes_.push_back(header.file_nbytes);
  if (number == 0) metadata_ = std::move(header.metadata);
  return {};
}

int64_t TensorFiles::find(std::string_view name) const {
  const auto at = by_name_.find(name);
  return at == by_name_.end() ? -1 : at->second;
}

Status TensorFiles::check_ranges(std::span<const PlainRange> ranges) const {
  for (const PlainRange &range : ranges) {
    ZERO_CHECK(range.tensor >= 0 && range.tensor < static_cast<int64_t>(tensors_.size()), ZERO_E_INVALID_ARGUMENT,
               "tensor %lld is wanted of %zu",
               lld(range.tensor), tensors_.size());
    const Entry &entry = tensors_[static_cast<size_t>(range.tensor)].entry;
    const int64_t each = disk_type_nbytes(entry.type);
    const bool inside =
        range.offset >= 0 && range.nbytes >= 0 && range.offset <= entry.nbytes() && range.nbytes <= entry.nbytes() - range.offset;
    ZERO_CHECK(inside && range.offset % each == 0 && range.nbytes % each == 0, ZERO_E_INVALID_ARGUMENT,
               "%lld bytes from byte %lld on of tensor %.100s were requested, but it has %lld", lld(range.nbytes), lld(range.offset),
               entry.name.c_str(), lld(entry.nbytes()));
  }
  return {};
}

Status TensorFiles::read(std::span<const PlainRange> ranges, const StreamOptions &options, PlainSink &sink, Progress *progress) const {
  return TensorReader(*this, options).read(ranges, sink, progress);
}

TensorReader::TensorReader(const TensorFiles &files, const StreamOptions &options) : files_(files), options_(options) {}

TensorReader::~TensorReader() = default;

Status TensorReader::read(std::span<const PlainRange> ranges, PlainSink &sink, Progress *progress) {
  ZERO_TRY(files_.check_ranges(ranges));
  std::vector<const PlainRange *> order;
  for (const PlainRange &range : ranges) order.push_back(&range);
  const auto file_of = [&](const PlainRange *range) { return files_.tensors_[static_cast<size_t>(range->tensor)].file; };
  std::stable_sort(order.begin(), order.end(), [&](const PlainRange *a, const PlainRange *b) {
    const auto place = [&](const PlainRange *range) { return files_.tensors_[static_cast<size_t>(range->tensor)].entry.offset + range->offset; };
    return file_of(a) != file_of(b) ? file_of(a) < file_of(b) : place(a) < place(b);
  });
  if (transfers_ == nullptr) ZERO_TRY(Transfers::make(options_, &transfers_));
  for (size_t first = 0; first < order.size();) {
    size_t end = first;
    while (end < order.size() && file_of(order[end]) == file_of(order[first])) ++end;
    ZERO_TRY(read_file(file_of(order[first]), {order.data() + first, end - first}, sink, progress));
    first = end;
  }
  return {};
}

/// The file of the last read stays open.
Status TensorReader::open(int64_t file) {
  if (input_file_ == file) return {};
  input_file_ = -1;
  input_ = std::make_unique<StreamedFile>();
  ZERO_TRY(open_plain(files_.folder_, files_.files_[static_cast<size_t>(file)], &input_->file));
  int64_t nbytes = 0;
  ZERO_TRY(input_->file.size(&nbytes));
  ZERO_CHECK(nbytes == files_.file_nbytes_[static_cast<size_t>(file)], ZERO_E_CHECKPOINT, "%s has %lld bytes, but had %lld when it was opened",
             input_->file.path().c_str(), lld(nbytes), lld(files_.file_nbytes_[static_cast<size_t>(file)]));
  input_->direct = options_.direct && input_->file.set_direct(true);
  input_file_ = file;
  return {};
}

Status TensorReader::read_file(int64_t file, std::span<const PlainRange *const> ranges, PlainSink &sink, Progress *progress) {
  ZERO_TRY(open(file));
  RangeReader reader(files_.tensors_, input_.get(), transfers_.get());
  for (const PlainRange *range : ranges) reader.add(*range);
  Status status;
  {
    const TransfersEnded ended(transfers_.get());
    status = reader.run(sink, progress, &counts_);
  }
  counts_.direct = counts_.direct && input_->direct;
  return status;
}

bool is_of_saves(const std::string &name) {
  uint64_t step = 0;
  std::string id;
  int rank = 0;
  int ranks = 0;
  int used = 0;
  std::sscanf(name.c_str(), "state-%d-of-%d.safetensors%n", &rank, &ranks, &used);
  return name == kManifestName || (used > 0 && name.size() == static_cast<size_t>(used)) || parse_save_name(name, &step, &id);
}

Status is_plain(const std::string &path, bool *out) {
  *out = path.ends_with(kSuffix) || path.ends_with(".json");
  if (*out || is_of_saves(name_in(without_slashes(path)))) return {};
  Folder folder;
  const Status opened = Folder::open(path, &folder);
  if (opened.code() == ZERO_E_NOT_FOUND) return {};
  ZERO_TRY(opened);
  std::vector<FolderEntry> entries;
  ZERO_TRY(folder.list(&entries));
  const auto of_saves = [](const FolderEntry &entry) { return is_of_saves(entry.name); };
  if (std::any_of(entries.begin(), entries.end(), of_saves)) return {};
  *out = std::any_of(entries.begin(), entries.end(),
                     [](const FolderEntry &entry) { return entry.name.ends_with(kSuffix) || entry.name == kIndexName; });
  return {};
}

}  // namespace zero::checkpoint
