/// @file Reading a file of a save.
#include "checkpoint/file_reader.h"

#include "core/clock.h"

#include <algorithm>
#include <cstring>
#include <tuple>
#include <utility>

namespace zero::checkpoint {

Status FileReader::prepare() {
  int64_t nbytes = 0;
  const std::string &path = file_.file.path();
  ZERO_TRY(file_.file.size(&nbytes));
  ZERO_CHECK(nbytes == report_.nbytes, ZERO_E_CHECKPOINT, "%s has %lld bytes, expected %lld: it was cut off, or is of another save",
             path.c_str(), lld(nbytes), lld(report_.nbytes));
  if (planned_.kind == FileKind::index) {
    head_nbytes_ = nbytes;
    return {};
  }
  expected_ = {planned_.entries, file_metadata(manifest_.description, planned_.kind, planned_.name)};
  std::string head;
  const Status status = format_header(&expected_, Order::by_size, &head);
  ZERO_CHECK(status.ok(), ZERO_E_CHECKPOINT, "%s: %s", path.c_str(), status.text());
  head_nbytes_ = expected_.data_offset;
  ZERO_CHECK(expected_.file_nbytes == nbytes, ZERO_E_CHECKPOINT, "%s has %lld bytes, but what the manifest describes has %lld",
             path.c_str(), lld(nbytes), lld(expected_.file_nbytes));
  return {};
}

Status FileReader::read(std::span<const FilePart> parts, std::span<const Wanted> wanted, BlockSink *sink, Progress *progress,
                        StreamCounts *counts) {
  ZERO_TRY(place(parts, wanted));
  make_chunks(sink == nullptr);
  const auto begin = [&](size_t c) {
    if (c >= chunks_.size()) return;
    transfers_.begin_read(static_cast<int>(c % Transfers::kBuffers), &file_, static_cast<size_t>(chunks_[c].end - chunks_[c].begin),
                          chunks_[c].begin);
  };
  for (size_t c = 0; c < static_cast<size_t>(Transfers::kBuffers); ++c) begin(c);
  for (size_t c = 0; c < chunks_.size(); ++c) {
    const Chunk &chunk = chunks_[c];
    const int number = static_cast<int>(c % Transfers::kBuffers);
    const int64_t began = now_ns();
    ZERO_TRY(transfers_.end(number));
    const int64_t came = now_ns();
    const std::span<const std::byte> bytes = transfers_.buffer(number).first(static_cast<size_t>(chunk.end - chunk.begin));
    ZERO_TRY(check_blocks(chunk, bytes));
    ZERO_TRY(take_header(chunk, bytes));
    ZERO_TRY(hand_out(chunk, bytes, wanted, sink));
    begin(c + static_cast<size_t>(Transfers::kBuffers));
    counts->wait_ns += came - began;
    counts->copy_ns += now_ns() - came;
    counts->nbytes += chunk.end - chunk.begin;
    if (progress != nullptr) ZERO_TRY(progress->advance(chunk.end - chunk.begin));
  }
  counts->direct = counts->direct && file_.direct;
  return {};
}

Status FileReader::place(std::span<const FilePart> parts, std::span<const Wanted> wanted) {
  using Key = std::tuple<int64_t, int64_t, int64_t>;
  std::vector<std::pair<Key, size_t>> by_key;
  for (size_t e = 0; e < planned_.sources.size(); ++e) {
    const EntrySource &source = planned_.sources[e];
    by_key.push_back({{source.section, source.tensor, source.slot}, e});
  }
  std::sort(by_key.begin(), by_key.end());
  for (const FilePart &part : parts) {
    const Wanted &want = wanted[static_cast<size_t>(part.wanted)];
    const Key key(want.section, want.tensor, want.slot);
    const auto at = std::lower_bound(by_key.begin(), by_key.end(), std::pair<Key, size_t>{key, 0});
    ZERO_CHECK(at != by_key.end() && at->first == key, ZERO_E_INTERNAL, "%s is in the plan of a load, but no entry is read from it",
               planned_.name.c_str());
    const int64_t begin = expected_.entries[at->second].offset + part.entry_offset;
    placed_.push_back({begin, begin + part.nbytes, part.wanted, part.wanted_offset});
  }
  std::sort(placed_.begin(), placed_.end(), [](const Placed &a, const Placed &b) { return a.begin < b.begin; });
  return {};
}

void FileReader::make_chunks(bool all) {
  if (all) return add_chunks(0, block_count(report_.nbytes));
  int64_t first = 0;
  int64_t end = block_count(head_nbytes_);
  for (const Placed &part : placed_) {
    const int64_t part_first = part.begin / kBlockNbytes;
    const int64_t part_end = block_count(part.end);
    if (part_first > end) {
      add_chunks(first, end);
      first = part_first;
    }
    end = std::max(end, part_end);
  }
  add_chunks(first, end);
}

void FileReader::add_chunks(int64_t first_block, int64_t end_block) {
  const int64_t most = static_cast<int64_t>(transfers_.buffer(0).size()) / kBlockNbytes;
  for (int64_t block = first_block; block < end_block; block += most) {
    chunks_.push_back({block * kBlockNbytes, std::min(std::min(block + most, end_block) * kBlockNbytes, report_.nbytes)});
  }
}

Status FileReader::check_blocks(const Chunk &chunk, std::span<const std::byte> bytes) const {
  for (int64_t begin = chunk.begin; begin < chunk.end; begin += kBlockNbytes) {
    const int64_t end = std::min(begin + kBlockNbytes, chunk.end);
    const int64_t number = begin / kBlockNbytes;
    const uint64_t found = block_hash(bytes.subspan(static_cast<size_t>(begin - chunk.begin), static_cast<size_t>(end - begin)), number);
    const uint64_t expected = report_.block_hashes[static_cast<size_t>(number)];
    ZERO_CHECK(found == expected, ZERO_E_CHECKPOINT,
               "%s is damaged: block %lld (bytes %lld .. %lld, %s) has the hash %016llx, expected %016llx", file_.file.path().c_str(),
               lld(number), lld(begin), lld(end - 1), where(begin, end).c_str(), static_cast<unsigned long long>(found),
               static_cast<unsigned long long>(expected));
  }
  return {};
}

/// Names the content of a range of the file, for texts.
std::string FileReader::where(int64_t begin, int64_t end) const {
  if (begin < head_nbytes_) return planned_.kind == FileKind::index ? "the index" : "the header";
  for (const Entry &entry : expected_.entries) {
    if (entry.offset < end && entry.offset + entry.nbytes() > begin) return "tensor " + entry.name.substr(0, 200);
  }
  return "no tensor";
}

Status FileReader::take_header(const Chunk &chunk, std::span<const std::byte> bytes) {
  if (chunk.begin >= head_nbytes_) return {};
  const int64_t nbytes = std::min(chunk.end, head_nbytes_) - chunk.begin;
  head_.insert(head_.end(), bytes.begin(), bytes.begin() + nbytes);
  if (static_cast<int64_t>(head_.size()) < head_nbytes_) return {};
  return planned_.kind == FileKind::index ? check_index() : check_header();
}

Status FileReader::check_header() const {
  const std::string &path = file_.file.path();
  int64_t json_nbytes = 0;
  ZERO_TRY(parse_header_length(head_, report_.nbytes, path, &json_nbytes));
  ZERO_CHECK(json_nbytes + 8 == head_nbytes_, ZERO_E_CHECKPOINT, "%s has a header of %lld bytes, but what the manifest describes has %lld",
             path.c_str(), lld(json_nbytes + 8), lld(head_nbytes_));
  Header found;
  ZERO_TRY(parse_header(std::span(head_).subspan(8), report_.nbytes, path, &found));
  for (const auto &[key, value] : expected_.metadata) {
    const auto at = found.metadata.find(key);
    ZERO_CHECK(at != found.metadata.end() && at->second == value, ZERO_E_CHECKPOINT,
               "%s says %s is \"%.100s\", expected \"%.100s\": it is of %s",
               path.c_str(), key.c_str(), at == found.metadata.end() ? "" : at->second.c_str(), value.c_str(), "another save or place");
  }
  ZERO_CHECK(found.entries.size() == expected_.entries.size(), ZERO_E_CHECKPOINT, "%s has %zu tensors, but the manifest describes %zu",
             path.c_str(), found.entries.size(), expected_.entries.size());
  for (size_t e = 0; e < found.entries.size(); ++e) {
    ZERO_CHECK(found.entries[e] == expected_.entries[e], ZERO_E_CHECKPOINT,
               "%s: tensor %.100s is not what the manifest describes (%s, with type, shape and place)", path.c_str(),
               found.entries[e].name.c_str(), expected_.entries[e].name.c_str());
  }
  return {};
}

Status FileReader::check_index() const {
  const std::string expected = index_text(manifest_.description);
  const std::string_view found(reinterpret_cast<const char *>(head_.data()), head_.size());
  ZERO_CHECK(found == expected, ZERO_E_CHECKPOINT, "%s is not the index of the model files that the manifest describes",
             file_.file.path().c_str());
  return {};
}

Status FileReader::hand_out(const Chunk &chunk, std::span<const std::byte> bytes, std::span<const Wanted> wanted, BlockSink *sink) {
  while (first_placed_ < placed_.size() && placed_[first_placed_].end <= chunk.begin) ++first_placed_;
  for (size_t p = first_placed_; p < placed_.size() && placed_[p].begin < chunk.end; ++p) {
    const Placed &part = placed_[p];
    const int64_t begin = std::max(part.begin, chunk.begin);
    const int64_t end = std::min(part.end, chunk.end);
    if (begin >= end) continue;
    ZERO_TRY(sink->take(wanted[static_cast<size_t>(part.wanted)], part.wanted_offset + begin - part.begin,
                        bytes.subspan(static_cast<size_t>(begin - chunk.begin), static_cast<size_t>(end - begin))));
  }
  return {};
}

}  // namespace zero::checkpoint
