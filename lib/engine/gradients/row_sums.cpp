/// @file RowSums: packets of rows between ranks. Each rank sends every owner the rows that it was
/// given of the owner's cut; the owner sums them in the fixed tree, with zeros for ranks that lack
/// a row. The form is that of Renggli et al., "SparCML", 2019.
#include "engine/gradients/row_sums.h"

#include <algorithm>
#include <cstring>

namespace zero {
namespace {

constexpr int64_t kRowNbytes = sizeof(int64_t);   ///< its number, in a packet
constexpr int64_t kToldNbytes = sizeof(int64_t);  ///< the size of a packet

/// The number by which calls are compared: sums and gathers of one bucket must match neither each
/// other nor those of another bucket.
uint64_t number_of(int64_t bucket, uint64_t what) { return 4 * static_cast<uint64_t>(bucket) + what; }
constexpr uint64_t kGathers = 2;

/// Packets take memory on the progress thread, where no caller's hook may run.
constexpr AllocatorHook kNoHook{};

}  // namespace

Status RowSums::open(const MemorySource &source) {
  source_ = source;
  source_.hook = &kNoHook;
  summed_.resize(plan_.buckets().size());
  for (int64_t bucket = 0; bucket < plan_.bucket_count(); ++bucket) {
    if (plan_.bucket(bucket).rows.count == 0) continue;
    summed_[static_cast<size_t>(bucket)].resize(static_cast<size_t>(rows_in(bucket, plan_.bucket(bucket).own).count()));
  }
  return {};
}

void RowSums::close() {
  sent_.release();
  received_.release();
  summed_.clear();
}

void RowSums::end_step(bool /*applied*/) {
  for (std::vector<uint8_t> &rows : summed_) std::fill(rows.begin(), rows.end(), uint8_t{0});
}

/// Elements behind the last row, of less than a line, are one row more.
Range RowSums::part_of(int64_t bucket, int64_t row, Range cut) const {
  const PlannedBucket &home = plan_.bucket(bucket);
  const int64_t begin = row * home.rows.width;
  return intersect(row < home.rows.count ? Range{begin, begin + home.rows.width} : Range{begin, home.flat.count()}, cut);
}

Range RowSums::rows_in(int64_t bucket, Range cut) const {
  const PlannedRows &rows = plan_.bucket(bucket).rows;
  if (cut.empty()) return {};
  return {std::min(cut.begin / rows.width, rows.count), std::min((cut.end - 1) / rows.width, rows.count) + 1};
}

/// `first`: the row that marks begin with.
int64_t RowSums::packed_nbytes(int64_t bucket, Range cut, RowMarks marks, int64_t first, int64_t element) const {
  int64_t nbytes = 0;
  const Range rows = rows_in(bucket, cut);
  for (int64_t row = rows.begin; row < rows.end; ++row) {
    if (marks[static_cast<size_t>(row - first)] != 0) nbytes += kRowNbytes + part_of(bucket, row, cut).count() * element;
  }
  return nbytes;
}

/// Returns the end of what was packed.
std::byte *RowSums::pack(int64_t bucket, Range cut, RowMarks marks, int64_t first, const std::byte *whole, int64_t element,
                         std::byte *to) const {
  const Range rows = rows_in(bucket, cut);
  for (int64_t row = rows.begin; row < rows.end; ++row) {
    if (marks[static_cast<size_t>(row - first)] == 0) continue;
    const Range part = part_of(bucket, row, cut);
    std::memcpy(to, &row, kRowNbytes);
    std::memcpy(to + kRowNbytes, whole + part.begin * element, static_cast<size_t>(part.count() * element));
    to += kRowNbytes + part.count() * element;
  }
  return to;
}

Status RowSums::need(Arena &arena, int64_t nbytes) const {
  if (nbytes <= arena.nbytes()) return {};
  const int64_t grown = std::max(nbytes, 2 * arena.nbytes());
  arena.release();
  return Arena::create_private(source_, ZERO_MEMORY_WORKSPACE, grown, &arena);
}

/// arriving_[r] = the bytes that rank r is going to send to this one. `sent`, by rank, must outlive
/// the task.
Task RowSums::tell(Group &group, std::span<const int64_t> sent, uint64_t what) {
  arriving_.assign(sent.size(), 0);
  std::vector<Offer> offers;
  std::vector<Receive> receives;
  for (size_t rank = 0; rank < sent.size(); ++rank) {
    offers.push_back({&sent[rank], sizeof sent[rank]});
    receives.push_back({&arriving_[rank], sizeof arriving_[rank]});
  }
  co_return co_await exchange(group, offers, receives, what);
}

/// Sends packets of the announced sizes to all ranks; those of the others are at packets_
/// afterwards. A rank without memory leaves no peer waiting.
Task RowSums::move(Group &group, std::span<const Offer> offers, uint64_t what) {
  int64_t nbytes = 0;
  for (const int64_t arriving : arriving_) nbytes += arriving;
  if (const Status room = need(received_, nbytes); !room.ok()) {
    group.fail(room);
    co_return room;
  }
  std::vector<Receive> receives;
  packets_.clear();
  std::byte *at = received_.data();
  for (const int64_t arriving : arriving_) {
    receives.push_back({at, arriving});
    packets_.push_back({at, at + arriving});
    at += arriving;
  }
  co_return co_await exchange(group, offers, receives, what);
}

Task RowSums::sum(Group &group, int64_t bucket, Contribution given, ReduceScatter call) {
  call.whole = given.data;
  const int64_t element = dtype_nbytes(call.dtype);
  const uint64_t what = number_of(bucket, call.what);
  std::vector<int64_t> nbytes(call.cuts->size());
  int64_t all = 0;
  for (size_t rank = 0; rank < nbytes.size(); ++rank) {
    if (static_cast<int64_t>(rank) != group.rank()) nbytes[rank] = packed_nbytes(bucket, (*call.cuts)[rank], given.rows, 0, element);
    all += nbytes[rank];
  }
  if (const Status room = need(sent_, all); !room.ok()) {
    group.fail(room);
    co_return room;
  }
  std::vector<Offer> offers;
  std::byte *to = sent_.data();
  for (size_t rank = 0; rank < nbytes.size(); ++rank) {
    offers.push_back({to, nbytes[rank]});
    if (nbytes[rank] > 0) to = pack(bucket, (*call.cuts)[rank], given.rows, 0, given.data, element, to);
  }
  ZERO_CO_AWAIT(tell(group, nbytes, what));
  ZERO_CO_AWAIT(move(group, offers, what));
  group.count_direct(OperationKind::reduce_scatter, all / element, all + (group.size() - 1) * kToldNbytes);
  if (!add_up(group, bucket, given.rows, call) && call.out_finite != nullptr) *call.out_finite = false;
  co_return Status();
}

/// False where a sum is not finite.
bool RowSums::add_up(const Group &group, int64_t bucket, RowMarks given, const ReduceScatter &call) {
  const Range own = plan_.bucket(bucket).own;
  const int64_t element = dtype_nbytes(call.dtype);
  const int64_t out_element = dtype_nbytes(result_dtype(call));
  std::vector<const std::byte *> sources(packets_.size());
  std::vector<const void *> at(packets_.size());
  const Range rows = rows_in(bucket, own);
  bool finite = true;
  for (int64_t row = rows.begin; row < rows.end; ++row) {
    const Range part = part_of(bucket, row, own);
    bool any = false;
    for (size_t rank = 0; rank < sources.size(); ++rank) {
      sources[rank] = nullptr;
      if (static_cast<int64_t>(rank) == group.rank()) {
        if (given[static_cast<size_t>(row)] != 0) sources[rank] = static_cast<const std::byte *>(call.whole) + part.begin * element;
      } else {
        sources[rank] = take(packets_[rank], row, part.count() * element);
      }
      any = any || sources[rank] != nullptr;
    }
    std::byte *to = static_cast<std::byte *>(call.out) + (part.begin - own.begin) * out_element;
    if (any) {
      finite &= add_row(group, part.count(), sources, at, call, to);
      summed_[static_cast<size_t>(bucket)][static_cast<size_t>(row - rows.begin)] = 1;
    } else {
      std::memset(to, 0, static_cast<size_t>(part.count() * out_element));
    }
  }
  return finite;
}

/// The elements of a row in the packet of a rank that comes to it next, otherwise nullptr.
const std::byte *RowSums::take(Packet &packet, int64_t row, int64_t nbytes) {
  int64_t next = -1;
  if (packet.at < packet.end) std::memcpy(&next, packet.at, kRowNbytes);
  if (next != row) return nullptr;
  const std::byte *elements = packet.at + kRowNbytes;
  packet.at = elements + nbytes;
  return elements;
}

/// As many elements at a time as there are zeros. `at`: room for as many addresses as there are
/// sources.
bool RowSums::add_row(const Group &group, int64_t count, std::span<const std::byte *const> sources, std::span<const void *> at,
                      const ReduceScatter &call, std::byte *to) const {
  const int64_t element = dtype_nbytes(call.dtype);
  const int64_t out_element = dtype_nbytes(result_dtype(call));
  const int64_t step = kZerosNbytes / element;
  bool finite = true;
  for (int64_t begin = 0; begin < count; begin += step) {
    for (size_t rank = 0; rank < at.size(); ++rank) at[rank] = sources[rank] == nullptr ? kZeros.data() : sources[rank] + begin * element;
    finite &= group.reducer()->reduce({to + begin * out_element, at.data(), std::ssize(at), std::min(step, count - begin), call.dtype,
                                       call.op, call.divisor, call.out_dtype, 0, call.weights});
  }
  return finite;
}

Task RowSums::gather(Group &group, int64_t bucket, const SlotPlace &place) {
  const int64_t element = dtype_nbytes(place.dtype);
  const Range own = plan_.bucket(bucket).own;
  const RowMarks marks = summed_[static_cast<size_t>(bucket)];
  const int64_t first = rows_in(bucket, own).begin;
  const int64_t packed = packed_nbytes(bucket, own, marks, first, element);
  const std::vector<int64_t> nbytes(static_cast<size_t>(group.size()), packed);
  if (const Status room = need(sent_, packed); !room.ok()) {
    group.fail(room);
    co_return room;
  }
  pack(bucket, own, marks, first, place.at(0), element, sent_.data());
  const std::vector<Offer> offers(nbytes.size(), Offer{sent_.data(), packed});
  ZERO_CO_AWAIT(tell(group, nbytes, number_of(bucket, kGathers)));
  ZERO_CO_AWAIT(move(group, offers, number_of(bucket, kGathers)));
  const int64_t all = (group.size() - 1) * packed;
  group.count_direct(OperationKind::all_gather, all / element, all + (group.size() - 1) * kToldNbytes);
  for (int64_t rank = 0; rank < group.size(); ++rank) {
    if (rank != group.rank()) scatter(bucket, plan_.bucket_cut(bucket, rank), packets_[static_cast<size_t>(rank)], place);
  }
  co_return Status();
}

/// A rank's cut becomes what its packet has, and zero elsewhere.
void RowSums::scatter(int64_t bucket, Range cut, Packet packet, const SlotPlace &place) const {
  const int64_t element = dtype_nbytes(place.dtype);
  if (!cut.empty()) std::memset(place.at(cut.begin), 0, static_cast<size_t>(cut.count() * element));
  while (packet.at < packet.end) {
    int64_t row = 0;
    std::memcpy(&row, packet.at, kRowNbytes);
    const Range part = part_of(bucket, row, cut);
    std::memcpy(place.at(part.begin), take(packet, row, part.count() * element), static_cast<size_t>(part.count() * element));
  }
}

}  // namespace zero
