/// @file LineUp: bringing the devices of all ranks into line while no thread waits for a device. For ranks that are threads of one process.
/// Knows events and words; never what they are about.
#pragma once

#include "engine/ranks/peer_views.h"
#include "group/group.h"
#include "memory/device.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace zero {

class LineUp {
 public:
  /// A collective. `memory`: of this rank, for the others to look at. The device outlives this object's use.
  Task open(Group &group, const Device &device, std::shared_ptr<Mapping> memory);
  void close();
  bool is_open() const { return group_ != nullptr; }
  /// nullptr: not open.
  Group *group() const { return group_.get(); }
  /// Where each rank's memory lies, by rank.
  std::vector<const std::byte *> memory() const;

  /// A collective: what this rank's device is given from now on comes after what the devices of all ranks were given before. On the way
  /// sums[i] becomes the sum of all ranks' words[i]. Both spans must outlive the task.
  Task run(std::span<const int64_t> words, std::span<int64_t> sums);
  /// Without words.
  Task run();

 private:
  /// Taken by turns: one is set again only once all ranks have followed it.
  using Marks = std::array<std::shared_ptr<Device::Mark>, 2>;

  static Status make_marks(const Device &device, std::shared_ptr<Mapping> *out);
  const Device::Mark &mark_of(int64_t rank) const { return *(*reinterpret_cast<const Marks *>(marks_.base(rank)))[turn_]; }
  Status follow_all();

  const Device *device_ = nullptr;
  std::shared_ptr<Group> group_;  ///< of the host
  PeerViews memory_;
  PeerViews marks_;  ///< a Marks of each rank
  size_t turn_ = 0;
};

}  // namespace zero
