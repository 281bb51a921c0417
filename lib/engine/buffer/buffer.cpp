/// @file Sharded buffers: cuts, memory, and the collectives on them.
#include "engine/buffer/buffer.h"

#include "core/descriptor_room.h"
#include "core/hash.h"
#include "core/number_text.h"
#include "engine/config/shard_weights.h"
#include "engine/layout/params.h"
#include "engine/storage/ranged_io.h"
#include "group/collectives/agreement.h"

#include <new>

namespace zero {
namespace {

Status make_cuts(const Group &group, const Config &config, int64_t count, Cuts *out, uint64_t *out_hash) {
  std::vector<int64_t> numbers;
  ZERO_TRY(parse_shard_weights(config.str(ZERO_KEY_SHARD_WEIGHTS), group.size(), &numbers));
  const Weights weights(numbers);
  for (int64_t rank = 0; rank < group.size(); ++rank) out->push_back(weights.shard({0, count}, rank));
  *out_hash = hash_of(numbers.data(), numbers.size() * sizeof(int64_t));
  return {};
}

}  // namespace

Buffer::Buffer(std::shared_ptr<Group> group, const AllocatorHook &hook, DType dtype, int64_t count)
    : group_(std::move(group)), dtype_(dtype), count_(count), hook_(hook) {}

Buffer::~Buffer() {
  if (shard_.mapping() != nullptr) group_->transport().unshare(*shard_.mapping());
}

/// Allocates only after the ranks have compared their arguments, so that a mismatch is reported
/// first.
Task Buffer::create(std::shared_ptr<Group> group, Config config, DType dtype, int64_t count, std::shared_ptr<Buffer> *out) {
  ZERO_CO_CHECK(count >= 0 && count <= kMostElements, ZERO_E_INVALID_ARGUMENT, "count is %lld, but must be in 0 .. %s", lld(count),
                bound_text(kMostElements).c_str());
  const CallerScope scope(*group, Caller::buffer_create);
  Fingerprint fingerprint;
  fingerprint.kind = OperationKind::seal;
  fingerprint.dtype = static_cast<int32_t>(dtype);
  fingerprint.count = count;
  Cuts cuts;
  ZERO_CO_TRY(make_cuts(*group, config, count, &cuts, &fingerprint.detail));
  ZERO_CO_AWAIT(all_gather_words(*group, fingerprint, {}, {}));
  const uint64_t number = group->next_number();

  std::shared_ptr<Buffer> buffer(new (std::nothrow) Buffer(group, config.hook, dtype, count));
  Status allocated = Status::error(ZERO_E_OUT_OF_MEMORY, "cannot allocate a buffer");
  if (buffer != nullptr) {
    buffer->number_ = number;
    buffer->cuts_ = std::move(cuts);
    allocated = buffer->allocate();
  }
  ZERO_CO_AWAIT(agree_on(*group, std::move(allocated), "zero_buffer_create"));
  if (group->size() > 1) {
    std::vector<PeerMemory> peers;
    // The other ranks wait for this one in share().
    const Status shared = co_await group->transport().share(buffer->shard_.mapping(), &peers, group->deadline_ms());
    if (!shared.ok()) {
      group->fail(shared);
      co_return shared;
    }
  }
  *out = std::move(buffer);
  co_return Status();
}

Status Buffer::allocate() {
  const MemorySource source{&hook_, &accounting_, group_->transport().capabilities().within_process};
  const int64_t nbytes = own().count() * dtype_nbytes(dtype_);
  if (group_->size() == 1) return Arena::create_private(source, ZERO_MEMORY_BUFFER, nbytes, &shard_);
  if (const int64_t to_meet = group_->transport().capabilities().descriptors_to_meet; to_meet > 0) {
    const std::string what = "rank " + std::to_string(group_->rank()) + " has too few file descriptors to share a buffer among " +
                             std::to_string(group_->size()) + " ranks, not all of which are threads of its process";
    ZERO_TRY(check_descriptors(to_meet + 1, what.c_str()));
  }
  return Arena::create_shared(source, ZERO_MEMORY_BUFFER, nbytes, &shard_);
}

Buffer::Shard Buffer::shard() const { return {own().empty() ? nullptr : shard_.data(), own().begin, own().count()}; }

Task Buffer::whole_acquire(void **out_data) {
  ZERO_CO_CHECK(!whole_acquired_, ZERO_E_STATE, "the whole buffer is acquired already; call zero_buffer_whole_release first");
  const CallerScope scope(*group_, Caller::buffer_whole_acquire);
  Arena whole;
  Status allocated = Arena::create_private({&hook_, &accounting_}, ZERO_MEMORY_BUFFER, count_ * dtype_nbytes(dtype_), &whole);
  ZERO_CO_AWAIT(agree_on(*group_, std::move(allocated), "zero_buffer_whole_acquire"));
  ZERO_CO_AWAIT(all_gather(*group_, shard_.data(), whole.data(), cuts_, dtype_, number_));
  whole_ = std::move(whole);
  whole_acquired_ = true;
  *out_data = whole_.data();
  co_return Status();
}

Status Buffer::whole_release() {
  ZERO_CHECK(whole_acquired_, ZERO_E_STATE, "the whole buffer is not acquired; zero_buffer_whole_acquire comes first");
  whole_.release();
  whole_acquired_ = false;
  return {};
}

Task Buffer::reduce_scatter(const void *data, int64_t count, ReduceOp op) {
  ZERO_CO_CHECK(count == count_, ZERO_E_INVALID_ARGUMENT, "count is %lld, but the buffer has %s", lld(count),
                count_text(count_, "element").c_str());
  const CallerScope scope(*group_, Caller::buffer_reduce_scatter);
  ZERO_CO_AWAIT(
      zero::reduce_scatter(*group_, {.whole = data, .out = shard_.data(), .cuts = &cuts_, .dtype = dtype_, .op = op, .what = number_}));
  co_return Status();
}

Task Buffer::read(int64_t offset, void *data, int64_t count) {
  ZERO_CO_TRY(check_range(offset, count));
  const CallerScope scope(*group_, Caller::buffer_read);
  ZERO_CO_AWAIT(read_range(*group_, {&cuts_, shard_.data(), dtype_, kRead | number_}, {offset, offset + count}, data));
  co_return Status();
}

Task Buffer::write(int64_t offset, const void *data, int64_t count) {
  ZERO_CO_TRY(check_range(offset, count));
  const CallerScope scope(*group_, Caller::buffer_write);
  ZERO_CO_AWAIT(write_range(*group_, {&cuts_, shard_.data(), dtype_, kWrite | number_}, {offset, offset + count}, data));
  co_return Status();
}

Status Buffer::check_range(int64_t offset, int64_t count) const {
  ZERO_CHECK(offset >= 0 && count >= 0 && offset <= count_ && count <= count_ - offset, ZERO_E_INVALID_ARGUMENT,
             "offset %lld and count %lld are given, but the buffer has %s", lld(offset), lld(count), count_text(count_, "element").c_str());
  return {};
}

}  // namespace zero
