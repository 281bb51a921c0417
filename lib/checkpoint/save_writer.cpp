/// @file Writing the files of a rank.
#include "checkpoint/save_writer.h"

#include "checkpoint/await_entry.h"
#include "checkpoint/transfers.h"
#include "core/clock.h"

#include <algorithm>
#include <cstring>
#include <thread>
#include <utility>

namespace zero::checkpoint {

struct SaveWriter::Output {
  PlannedFile plan;
  Header header;
  std::string head;  ///< bytes before the data; of the index all
  StreamedFile file;
  bool created = false;

  int64_t nbytes() const { return header.file_nbytes; }
};

namespace {

/// The bytes of a file, from its beginning to its end, whole blocks at a time.
class FileBytes {
 public:
  FileBytes(const std::string &head, const Header &header, const PlannedFile &plan, BlockSource &source)
      : head_(head), header_(header), plan_(plan), source_(source) {}

  /// The next bytes; fewer than `out` has room for at the end of the file.
  Status fill(std::span<std::byte> out, size_t *out_nbytes) {
    size_t done = 0;
    while (done < out.size() && at_ < header_.file_nbytes) {
      size_t put = 0;
      ZERO_TRY(fill_run(out.subspan(done), &put));
      done += put;
      at_ += static_cast<int64_t>(put);
    }
    *out_nbytes = done;
    return {};
  }

 private:
  /// From one place: the head, or one entry.
  Status fill_run(std::span<std::byte> out, size_t *out_nbytes) {
    const auto head_nbytes = static_cast<int64_t>(head_.size());
    if (at_ < head_nbytes) {
      *out_nbytes = std::min(out.size(), static_cast<size_t>(head_nbytes - at_));
      std::memcpy(out.data(), head_.data() + at_, *out_nbytes);
      return {};
    }
    while (header_.entries[entry_].offset + header_.entries[entry_].nbytes() <= at_) ++entry_;
    const Entry &entry = header_.entries[entry_];
    const int64_t offset = at_ - entry.offset;
    *out_nbytes = std::min(out.size(), static_cast<size_t>(entry.nbytes() - offset));
    return source_.copy(plan_.sources[entry_], offset, out.first(*out_nbytes));
  }

  const std::string &head_;
  const Header &header_;
  const PlannedFile &plan_;
  BlockSource &source_;
  int64_t at_ = 0;
  size_t entry_ = 0;
};

void add_hashes(std::span<const std::byte> bytes, int64_t first_block, std::vector<uint64_t> *out) {
  for (size_t at = 0; at < bytes.size(); at += static_cast<size_t>(kBlockNbytes)) {
    const size_t nbytes = std::min(bytes.size() - at, static_cast<size_t>(kBlockNbytes));
    out->push_back(block_hash(bytes.subspan(at, nbytes), first_block++));
  }
}

/// What the padding of a direct write reads lies behind the bytes.
void clear_tail(std::span<std::byte> buffer, size_t nbytes) {
  const auto end = static_cast<size_t>(round_up(static_cast<int64_t>(nbytes), Transfers::kAlignment));
  std::memset(buffer.data() + nbytes, 0, end - nbytes);
}

}  // namespace

Status create_save(const Folder &saves, const std::string &name, bool sync) {
  const SignalsBlocked blocked;
  ZERO_TRY(saves.make(name));
  if (sync) ZERO_TRY(saves.sync());
  return {};
}

std::vector<int64_t> SaveWriter::files_of(const SaveDescription &description, std::span<const int64_t> model_writers, int64_t rank) {
  const FilePlan plan(description);
  std::vector<int64_t> files;
  for (size_t f = 0; f < model_writers.size(); ++f) {
    if (model_writers[f] == rank) files.push_back(static_cast<int64_t>(f));
  }
  if (rank == 0 && plan.index_file() >= 0) files.push_back(plan.index_file());
  files.push_back(plan.state_file(rank));
  if (rank == 0 && plan.extra_file() >= 0) files.push_back(plan.extra_file());
  return files;
}

SaveWriter::SaveWriter(const SaveDescription &description, std::vector<int64_t> files, const StreamOptions &options)
    : options_(options) {
  const FilePlan plan(description);
  for (const int64_t file : files) {
    Output output{plan.file(description, file), {}, {}, {}, false};
    if (output.plan.kind == FileKind::index) {
      output.head = index_text(description);
      output.header.file_nbytes = static_cast<int64_t>(output.head.size());
    } else {
      output.header = {output.plan.entries, file_metadata(description, output.plan.kind, output.plan.name)};
      if (prepared_.ok()) prepared_ = format_header(&output.header, Order::by_size, &output.head);
    }
    nbytes_ += output.nbytes();
    outputs_.push_back(std::move(output));
  }
}

SaveWriter::~SaveWriter() = default;

Status SaveWriter::open(const Folder &saves, const std::string &name, int64_t patience_ms) {
  ZERO_TRY(prepared_);
  const SignalsBlocked blocked;
  return open_with_patience(saves, name, patience_ms, &folder_);
}

Status SaveWriter::preallocate() {
  const SignalsBlocked blocked;
  ZERO_TRY(Transfers::make(options_, &transfers_));
  for (Output &output : outputs_) {
    ZERO_TRY(folder_.create_file(output.plan.name, &output.file.file));
    output.created = true;
    output.file.direct = options_.direct && output.file.file.set_direct(true);
    ZERO_TRY(output.file.file.allocate(output.nbytes()));
  }
  return {};
}

Status SaveWriter::write(BlockSource &source, Progress *progress) {
  const SignalsBlocked blocked;
  for (Output &output : outputs_) {
    const Status status = write_one(output, source, progress);
    if (status.ok()) continue;
    // No buffer is freed and no file closed under the thread.
    for (int number = 0; number < Transfers::kBuffers; ++number) static_cast<void>(transfers_->end(number));
    return status;
  }
  transfers_.reset();
  if (!options_.sync) return {};
  const int64_t before = now_ns();
  ZERO_TRY(folder_.sync(&counts_.folder_synced));
  counts_.sync_ns += now_ns() - before;
  return {};
}

Status SaveWriter::write_one(Output &output, BlockSource &source, Progress *progress) {
  FileReport report{output.plan.file, output.nbytes(), {}};
  report.block_hashes.reserve(static_cast<size_t>(block_count(report.nbytes)));
  FileBytes bytes(output.head, output.header, output.plan, source);
  int number = 0;
  for (int64_t offset = 0; offset < report.nbytes; number = (number + 1) % Transfers::kBuffers) {
    const int64_t began = now_ns();
    ZERO_TRY(transfers_->end(number));
    const int64_t waited = now_ns();
    const std::span<std::byte> buffer = transfers_->buffer(number);
    size_t nbytes = 0;
    ZERO_TRY(bytes.fill(buffer, &nbytes));
    add_hashes(buffer.first(nbytes), offset / kBlockNbytes, &report.block_hashes);
    clear_tail(buffer, nbytes);
    transfers_->begin_write(number, &output.file, nbytes, offset);
    offset += static_cast<int64_t>(nbytes);
    counts_.wait_ns += waited - began;
    counts_.copy_ns += now_ns() - waited;
    if (progress != nullptr) ZERO_TRY(progress->advance(static_cast<int64_t>(nbytes)));
  }
  ZERO_TRY(finish(output));
  counts_.nbytes += report.nbytes;
  reports_.push_back(std::move(report));
  return {};
}

/// Waits for what is under way, takes the padding away, syncs and closes.
Status SaveWriter::finish(Output &output) {
  const int64_t began = now_ns();
  for (int number = 0; number < Transfers::kBuffers; ++number) ZERO_TRY(transfers_->end(number));
  counts_.wait_ns += now_ns() - began;
  File &file = output.file.file;
  if (output.nbytes() % Transfers::kAlignment != 0) ZERO_TRY(file.truncate(output.nbytes()));
  counts_.direct = counts_.direct && output.file.direct;
  const int64_t before = now_ns();
  if (options_.sync) ZERO_TRY(file.sync());
  ZERO_TRY(file.close());
  counts_.sync_ns += now_ns() - before;
  return {};
}

void SaveWriter::remove() noexcept {
  const SignalsBlocked blocked;
  transfers_.reset();
  for (Output &output : outputs_) {
    if (output.file.file.valid()) static_cast<void>(output.file.file.close());
    if (std::exchange(output.created, false)) static_cast<void>(folder_.unlink(output.plan.name));
  }
}

}  // namespace zero::checkpoint
