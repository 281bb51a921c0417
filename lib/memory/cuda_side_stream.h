/// @file CudaSideStream: a stream of a CUDA device beside that of a Device, and the memory that is
/// kept while such a stream may never end.
#pragma once

#include "core/side_stream.h"
#include "memory/cuda_module.h"

#include <functional>
#include <new>

namespace zero {

class CudaSideStream final : public SideStream {
 public:
  /// `leader` is the stream of the work that side streams wait for. Call wait_for_leader() only
  /// while it exists.
  CudaSideStream(const zero_cuda_table &cuda, int64_t device, void *leader) : cuda_(cuda), device_(device), leader_(leader) {}
  CudaSideStream(const CudaSideStream &) = delete;
  ~CudaSideStream() override;
  /// Call it once, before anything else. Errors: ZERO_E_DEVICE_FAILED.
  Status open();

  Status find(const void *memory, bool *out_here) const override;
  Status alloc(int64_t nbytes, std::shared_ptr<Mapping> *out) const override;
  Status within(const std::function<void()> &use) const override;
  void *stream() const override { return stream_; }
  Status wait_for_leader() override;
  Status mark() override;
  Status ended(bool *out) const override;
  void abandon() const override;
  void reclaim() const override;

 private:
  Status check(int32_t error, const char *what) const;

  const zero_cuda_table &cuda_;
  const int64_t device_;
  void *const leader_;
  void *stream_ = nullptr;
  void *turn_ = nullptr;    ///< event: the end of the leader's work so far
  void *marked_ = nullptr;  ///< event of mark()
};

bool is_abandoned(int64_t device);
void keep_until_reclaimed(int64_t device, std::function<void()> free);

/// Frees something of a device: at once, or if side streams of it are abandoned, after they have
/// been reclaimed, because freeing would wait for them. It is never freed if there is no memory to
/// record it.
template <class Free>
void give_back(int64_t device, const Free &free) noexcept {
  if (!is_abandoned(device)) return free();
  try {
    keep_until_reclaimed(device, free);
  } catch (const std::bad_alloc &) {
  }
}

/// Allocates zeroed memory of a device, which lives until its last holder releases it. Errors:
/// ZERO_E_OUT_OF_MEMORY.
Status allocate_on_device(const zero_cuda_table &cuda, int64_t device, int64_t nbytes, std::shared_ptr<Mapping> *out);

}  // namespace zero
