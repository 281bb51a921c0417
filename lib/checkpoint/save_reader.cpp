/// @file Reading ranges of a save, file by file.
#include "checkpoint/save_reader.h"

#include "checkpoint/await_entry.h"
#include "checkpoint/file_reader.h"
#include "checkpoint/transfers.h"

#include <algorithm>
#include <utility>

namespace zero::checkpoint {

SaveReader::SaveReader(const Manifest &manifest, const StreamOptions &options)
    : manifest_(manifest), options_(options), plan_(manifest.description) {}

SaveReader::~SaveReader() = default;

Status SaveReader::open(const Folder &saves, const std::string &name, int64_t retry_ms) {
  retry_ms_ = retry_ms;
  ZERO_TRY(open_with_retries(saves, name, retry_ms, &folder_));
  return Transfers::make(options_, &transfers_);
}

Status SaveReader::read(std::span<const Wanted> wanted, BlockSink &sink, Progress *progress) {
  std::vector<FilePart> parts;
  ZERO_TRY(plan_reads(manifest_, wanted, &parts));
  std::stable_sort(parts.begin(), parts.end(), [](const FilePart &a, const FilePart &b) { return a.file < b.file; });
  for (size_t first = 0; first < parts.size();) {
    size_t end = first;
    while (end < parts.size() && parts[end].file == parts[first].file) ++end;
    ZERO_TRY(read_file(parts[first].file, {parts.data() + first, end - first}, wanted, &sink, progress));
    first = end;
  }
  return {};
}

Status SaveReader::verify(Progress *progress) {
  ZERO_TRY(prove_cover(manifest_));
  for (int64_t file = 0; file < plan_.file_count(); ++file) ZERO_TRY(verify_file(file, progress));
  return {};
}

Status SaveReader::verify_file(int64_t file, Progress *progress) {
  return read_file(file, {}, {}, nullptr, progress);
}

Status SaveReader::read_file(int64_t file, std::span<const FilePart> parts, std::span<const Wanted> wanted, BlockSink *sink,
                             Progress *progress) {
  StreamedFile input;
  const std::string name = plan_.name(file);
  const Status opened = open_with_retries(folder_, name, retry_ms_, &input.file);
  ZERO_CHECK(opened.ok(), opened.code(), "%s; the manifest names this file", opened.text());
  input.direct = options_.direct && input.file.set_direct(true);
  FileReader reader(manifest_, plan_.file(manifest_.description, file), &input, transfers_.get());
  const TransfersEnded ended(transfers_.get());
  ZERO_TRY(reader.prepare());
  return reader.read(parts, wanted, sink, progress, &counts_);
}

}  // namespace zero::checkpoint
