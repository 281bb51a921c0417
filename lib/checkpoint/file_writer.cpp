/// @file Streaming new files.
#include "checkpoint/file_writer.h"

#include "checkpoint/manifest.h"
#include "core/clock.h"

#include <algorithm>
#include <cstring>

namespace zero::checkpoint {
namespace {

/// The bytes of a file, from its beginning to its end.
class FileBytes {
 public:
  FileBytes(const NewFile &file, EntryBytes &bytes) : file_(file), bytes_(bytes) {}

  /// Gives the next bytes. At the end of the file they are fewer than `out` has room for.
  Status fill(std::span<std::byte> out, size_t *out_nbytes) {
    size_t done = 0;
    while (done < out.size() && at_ < file_.nbytes()) {
      size_t put = 0;
      ZERO_TRY(fill_run(out.subspan(done), &put));
      done += put;
      at_ += static_cast<int64_t>(put);
    }
    *out_nbytes = done;
    return {};
  }

 private:
  /// Gives bytes of one source: the head, or one entry.
  Status fill_run(std::span<std::byte> out, size_t *out_nbytes) {
    const auto head_nbytes = static_cast<int64_t>(file_.head.size());
    if (at_ < head_nbytes) {
      *out_nbytes = std::min(out.size(), static_cast<size_t>(head_nbytes - at_));
      std::memcpy(out.data(), file_.head.data() + at_, *out_nbytes);
      return {};
    }
    const std::vector<Entry> &entries = file_.header.entries;
    while (entries[entry_].offset + entries[entry_].nbytes() <= at_) ++entry_;
    const int64_t offset = at_ - entries[entry_].offset;
    *out_nbytes = std::min(out.size(), static_cast<size_t>(entries[entry_].nbytes() - offset));
    return bytes_.copy(entry_, offset, out.first(*out_nbytes));
  }

  const NewFile &file_;
  EntryBytes &bytes_;
  int64_t at_ = 0;
  size_t entry_ = 0;
};

void add_hashes(std::span<const std::byte> bytes, int64_t first_block, std::vector<uint64_t> *out) {
  for (size_t at = 0; at < bytes.size(); at += static_cast<size_t>(kBlockNbytes)) {
    const size_t nbytes = std::min(bytes.size() - at, static_cast<size_t>(kBlockNbytes));
    out->push_back(block_hash(bytes.subspan(at, nbytes), first_block++));
  }
}

/// Clears the rest of the last unit, because direct writes have whole units.
void clear_tail(std::span<std::byte> buffer, size_t nbytes) {
  const auto end = static_cast<size_t>(round_up(static_cast<int64_t>(nbytes), Transfers::kAlignment));
  std::memset(buffer.data() + nbytes, 0, end - nbytes);
}

/// Waits for transfers, removes the padding, syncs and closes.
Status finish(NewFile *file, bool sync, Transfers *transfers, StreamCounts *counts) {
  const int64_t began = now_ns();
  ZERO_TRY(transfers->end_all());
  const int64_t before = now_ns();
  counts->wait_ns += before - began;
  if (file->nbytes() % Transfers::kAlignment != 0) ZERO_TRY(file->file.file.truncate(file->nbytes()));
  if (sync) ZERO_TRY(file->file.file.sync());
  ZERO_TRY(file->file.file.close());
  counts->sync_ns += now_ns() - before;
  counts->nbytes += file->nbytes();
  counts->direct = counts->direct && file->file.direct;
  return {};
}

}  // namespace

Status create_file(const Folder &folder, const std::string &name, const StreamOptions &options, NewFile *out) {
  ZERO_TRY(folder.create_file(name, &out->file.file));
  out->file.direct = options.direct && out->file.file.set_direct(true);
  return out->file.file.allocate(out->nbytes());
}

Status write_file(NewFile *file, EntryBytes &bytes, const StreamOptions &options, Transfers *transfers, Progress *progress,
                  std::vector<uint64_t> *out_hashes, StreamCounts *counts) {
  if (out_hashes != nullptr) out_hashes->reserve(static_cast<size_t>(block_count(file->nbytes())));
  FileBytes all(*file, bytes);
  int number = 0;
  for (int64_t offset = 0; offset < file->nbytes(); number = (number + 1) % Transfers::kBuffers) {
    const int64_t began = now_ns();
    ZERO_TRY(transfers->end(number));
    const int64_t waited = now_ns();
    const std::span<std::byte> buffer = transfers->buffer(number);
    size_t nbytes = 0;
    ZERO_TRY(all.fill(buffer, &nbytes));
    if (out_hashes != nullptr) add_hashes(buffer.first(nbytes), offset / kBlockNbytes, out_hashes);
    clear_tail(buffer, nbytes);
    const int64_t filled = now_ns();
    transfers->begin_write(number, &file->file, nbytes, offset);
    offset += static_cast<int64_t>(nbytes);
    counts->wait_ns += waited - began;
    counts->copy_ns += filled - waited;
    if (progress != nullptr) ZERO_TRY(progress->advance(static_cast<int64_t>(nbytes)));
  }
  return finish(file, options.sync, transfers, counts);
}

}  // namespace zero::checkpoint
