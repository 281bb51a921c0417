/// @file A run for tests of saves: tensors of all kinds, whose bytes follow from name, step and place, and the steps of its ranks one after
/// the other, with the votes that an engine has between them.
#pragma once

#include "checkpoint/save_reader.h"
#include "checkpoint/save_writer.h"
#include "checkpoint/saves.h"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace zero::tests {

struct SampleShape {
  int64_t ranks = 2;
  bool model = true;       ///< parameters lie in model files
  bool extras = true;      ///< user tensors ONE and EACH, module buffers
  int64_t scale = 1;       ///< multiplies the tensors' sizes
  bool minimal = false;    ///< one tensor with two slots, for enumerations
};

inline constexpr const char *kSampleRun = "00112233445566778899aabbccddeeff";

/// Cuts in lines of 256 elements, as even as they come; tensors below 256 elements belong to one rank.
checkpoint::SaveDescription sample_description(const SampleShape &shape, uint64_t step, const std::string &run_id = kSampleRun);

/// The bytes of an entry of `rank` (of a copy) as the run has them at `step`: from byte `offset` of the slot on.
void sample_bytes(uint64_t step, const std::string &name, int64_t copy, int64_t offset, std::span<std::byte> out);

class SampleSource final : public checkpoint::BlockSource {
 public:
  explicit SampleSource(const checkpoint::SaveDescription &description) : description_(description) {}
  Status copy(const checkpoint::EntrySource &entry, int64_t offset, std::span<std::byte> out) override;

 private:
  const checkpoint::SaveDescription &description_;
};

struct SampleSaved {
  Status status;
  std::string name;
  bool committed = false;  ///< acknowledged on all ranks
  bool maybe = false;      ///< may be committed although the status is an error
};

struct SampleOptions {
  checkpoint::StreamOptions stream{.staging_nbytes = 2 << 20};
  int64_t keep = 0;
  bool rotate = true;
  bool threads = false;  ///< ranks work at the same time
  std::function<void(int rank)> as_rank;  ///< told before each rank's part
  std::function<void()> acknowledged;     ///< told when all ranks know
};

/// A save of all ranks; after a failure they clean up as engines do.
SampleSaved save_sample(const Folder &saves, const checkpoint::SaveDescription &description, const std::vector<int64_t> &model_writers,
                        const SampleOptions &options);
/// The same, of a new description.
SampleSaved save_sample(const Folder &saves, const SampleShape &shape, uint64_t step, const SampleOptions &options = {});

/// Reads everything in pieces for `ranks` ranks, and compares each byte. ZERO_E_INTERNAL when one differs.
Status compare_sample(const Folder &saves, const std::string &name, const checkpoint::Manifest &manifest, int64_t ranks,
                      const checkpoint::StreamOptions &options = {.staging_nbytes = 2 << 20});

}  // namespace zero::tests
