/// @file Marks in the work of devices, and who follows them.
#include "engine/ranks/line_up.h"

#include "group/collectives.h"
#include "group/collectives/agreement.h"

#include <utility>

namespace zero {

/// As memory that ranks share, so that they live for as long as any of them may look.
Status LineUp::make_marks(const Device &device, std::shared_ptr<Mapping> *out) {
  auto marks = std::make_unique<Marks>();
  for (std::shared_ptr<Device::Mark> &mark : *marks) ZERO_TRY(device.make_mark(&mark));
  Marks *made = marks.release();
  return Mapping::adopt(
      reinterpret_cast<std::byte *>(made), sizeof *made, [made] { delete made; }, out);
}

Task LineUp::open(Group &group, const Device &device, std::shared_ptr<Mapping> memory) {
  device_ = &device;
  turn_ = 0;
  std::shared_ptr<Mapping> mine;
  ZERO_CO_AWAIT(agree_on(group, make_marks(device, &mine), "zero_optimizer_seal"));
  std::shared_ptr<Group> made;
  ZERO_CO_AWAIT(split(group, 0, group.rank(), &made));
  ZERO_CO_AWAIT(marks_.open(*made, std::move(mine)));
  ZERO_CO_AWAIT(memory_.open(*made, std::move(memory)));
  group_ = std::move(made);
  co_return Status();
}

void LineUp::close() {
  marks_.close();
  memory_.close();
  group_.reset();
}

std::vector<const std::byte *> LineUp::memory() const {
  std::vector<const std::byte *> memory;
  for (int64_t rank = 0; rank < group_->size(); ++rank) memory.push_back(memory_.base(rank));
  return memory;
}

Task LineUp::run(std::span<const int64_t> words, std::span<int64_t> sums) {
  ZERO_CO_TRY(device_->set(mark_of(group_->rank())));
  ZERO_CO_AWAIT(all_reduce(*group_, words.data(), sums.data(), static_cast<int64_t>(words.size()), DType::i64, ReduceOp::sum));
  co_return follow_all();
}

Task LineUp::run() {
  ZERO_CO_TRY(device_->set(mark_of(group_->rank())));
  ZERO_CO_AWAIT(barrier(*group_));
  co_return follow_all();
}

Status LineUp::follow_all() {
  for (int64_t rank = 0; rank < group_->size(); ++rank) {
    if (rank != group_->rank()) ZERO_TRY(device_->follow(mark_of(rank)));
  }
  turn_ = 1 - turn_;
  return {};
}

}  // namespace zero
