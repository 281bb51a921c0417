/// @file Writing the files of a rank.
#include "checkpoint/save_writer.h"

#include "checkpoint/await_entry.h"
#include "checkpoint/file_writer.h"
#include "core/clock.h"

#include <new>
#include <utility>

namespace zero::checkpoint {

struct SaveWriter::Output {
  PlannedFile plan;
  NewFile file;
  bool created = false;
};

namespace {

/// Entries of a planned file, from the caller's source.
class PlannedBytes final : public EntryBytes {
 public:
  PlannedBytes(const PlannedFile &plan, BlockSource &source) : plan_(plan), source_(source) {}
  Status copy(size_t entry, int64_t offset, std::span<std::byte> out) override { return source_.copy(plan_.sources[entry], offset, out); }

 private:
  const PlannedFile &plan_;
  BlockSource &source_;
};

}  // namespace

Status create_save(const Folder &saves, const std::string &name, bool sync) {
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

SaveWriter::SaveWriter(const SaveDescription &description, const std::vector<int64_t> &files, const StreamOptions &options)
    : options_(options) {
  const FilePlan plan(description);
  for (const int64_t number : files) {
    Output output{plan.file(description, number), {}, false};
    NewFile &file = output.file;
    if (output.plan.kind == FileKind::index) {
      file.head = index_text(description);
      file.header.file_nbytes = static_cast<int64_t>(file.head.size());
    } else {
      file.header = {output.plan.entries, file_metadata(description, output.plan.kind, output.plan.name)};
      if (prepared_.ok()) prepared_ = format_header(&file.header, Order::by_size, &file.head);
    }
    outputs_.push_back(std::move(output));
  }
}

SaveWriter::~SaveWriter() = default;

Status SaveWriter::open(const Folder &saves, const std::string &name, int64_t retry_ms) {
  ZERO_TRY(prepared_);
  return open_with_retries(saves, name, retry_ms, &folder_);
}

Status SaveWriter::preallocate() {
  ZERO_TRY(Transfers::make(options_, &transfers_));
  for (Output &output : outputs_) {
    const Status status = create_file(folder_, output.plan.name, options_, &output.file);
    output.created = output.file.file.file.valid();
    ZERO_TRY(status);
  }
  return {};
}

Status SaveWriter::write(BlockSource &source, Progress *progress) {
  for (Output &output : outputs_) {
    PlannedBytes bytes(output.plan, source);
    FileReport report{output.plan.file, output.file.nbytes(), {}};
    const Status status = write_file(&output.file, bytes, options_, transfers_.get(), progress, &report.block_hashes, &counts_);
    if (!status.ok()) {
      transfers_.reset();  // ends transfers in progress before a file is closed
      return status;
    }
    reports_.push_back(std::move(report));
  }
  transfers_.reset();
  if (!options_.sync) return {};
  const int64_t before = now_ns();
  ZERO_TRY(folder_.sync());
  counts_.sync_ns += now_ns() - before;
  return {};
}

void SaveWriter::remove() noexcept {
  transfers_.reset();
  for (Output &output : outputs_) {
    try {
      if (output.file.file.file.valid()) static_cast<void>(output.file.file.file.close());
      if (std::exchange(output.created, false)) static_cast<void>(folder_.unlink(output.plan.name));
    } catch (const std::bad_alloc &) {
      // The file is part of an uncommitted save; the next sweep of the run removes it.
    }
  }
}

}  // namespace zero::checkpoint
