/// @file Packing rows, and sending packets of sizes that only the sender knows.
#include "engine/storage/row_packets.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace zero {
namespace {

constexpr int64_t kRowNbytes = sizeof(int64_t);   ///< its number, in a packet
constexpr int64_t kToldNbytes = sizeof(int64_t);  ///< the size of a packet

/// Packets take memory on the progress thread, where no caller's hook may run.
constexpr AllocatorHook kNoHook{};

}  // namespace

void RowPackets::open(const MemorySource &source) {
  source_ = source;
  source_.hook = &kNoHook;
}

void RowPackets::close() {
  sent_.release();
  received_.release();
}

Range RowPackets::part_of(int64_t bucket, int64_t row, Range cut) const {
  const PlannedBucket &home = plan_.bucket(bucket);
  const int64_t begin = row * home.rows.width;
  return intersect(row < home.rows.count ? Range{begin, begin + home.rows.width} : Range{begin, home.flat.count()}, cut);
}

Range RowPackets::rows_in(int64_t bucket, Range cut) const {
  const PlannedRows &rows = plan_.bucket(bucket).rows;
  if (cut.empty()) return {};
  return {std::min(cut.begin / rows.width, rows.count), std::min((cut.end - 1) / rows.width, rows.count) + 1};
}

int64_t RowPackets::packed_nbytes(int64_t bucket, Range cut, RowMarks marks, int64_t element) const {
  int64_t nbytes = 0;
  const Range rows = rows_in(bucket, cut);
  for (int64_t row = rows.begin; row < rows.end; ++row) {
    if (marks[static_cast<size_t>(row)] != 0) nbytes += kRowNbytes + part_of(bucket, row, cut).count() * element;
  }
  return nbytes;
}

/// Returns the end of what was packed. `whole` begins with the bucket.
std::byte *RowPackets::pack(int64_t bucket, Range cut, RowMarks marks, const std::byte *whole, int64_t element, std::byte *to) const {
  const Range rows = rows_in(bucket, cut);
  for (int64_t row = rows.begin; row < rows.end; ++row) {
    if (marks[static_cast<size_t>(row)] == 0) continue;
    const Range part = part_of(bucket, row, cut);
    std::memcpy(to, &row, kRowNbytes);
    std::memcpy(to + kRowNbytes, whole + part.begin * element, static_cast<size_t>(part.count() * element));
    to += kRowNbytes + part.count() * element;
  }
  return to;
}

Status RowPackets::need(Arena &arena, int64_t nbytes) const {
  if (nbytes <= arena.nbytes()) return {};
  const int64_t grown = std::max(nbytes, 2 * arena.nbytes());
  arena.release();
  return Arena::create_private(source_, ZERO_MEMORY_WORKSPACE, grown, &arena);
}

Task RowPackets::scatter(Group &group, int64_t bucket, RowMarks marks, const std::byte *whole, int64_t element, uint64_t what) {
  const Cuts cuts = plan_.bucket_cuts(bucket);
  std::vector<Offer> offers(cuts.size());
  int64_t all = 0;
  for (size_t rank = 0; rank < cuts.size(); ++rank) {
    if (static_cast<int64_t>(rank) != group.rank()) offers[rank].nbytes = packed_nbytes(bucket, cuts[rank], marks, element);
    all += offers[rank].nbytes;
  }
  if (const Status room = need(sent_, all); !room.ok()) {
    group.fail(room);
    co_return room;
  }
  std::byte *to = sent_.data();
  for (size_t rank = 0; rank < cuts.size(); ++rank) {
    offers[rank].data = to;
    if (offers[rank].nbytes > 0) to = pack(bucket, cuts[rank], marks, whole, element, to);
  }
  co_return co_await send(group, std::move(offers), OperationKind::reduce_scatter, element, what);
}

Task RowPackets::share(Group &group, int64_t bucket, RowMarks marks, const SlotPlace &place, uint64_t what) {
  const int64_t element = dtype_nbytes(place.dtype);
  const Range own = plan_.bucket(bucket).own;
  const int64_t nbytes = packed_nbytes(bucket, own, marks, element);
  if (const Status room = need(sent_, nbytes); !room.ok()) {
    group.fail(room);
    co_return room;
  }
  pack(bucket, own, marks, place.at(0), element, sent_.data());
  std::vector<Offer> offers(static_cast<size_t>(group.size()), Offer{sent_.data(), nbytes});
  offers[static_cast<size_t>(group.rank())].nbytes = 0;
  co_return co_await send(group, std::move(offers), OperationKind::all_gather, element, what);
}

/// Announces the sizes of packets, then sends them; those of the other ranks are at packets_
/// afterwards. A rank without memory leaves no peer waiting.
Task RowPackets::send(Group &group, std::vector<Offer> offers, OperationKind kind, int64_t element, uint64_t what) {
  std::vector<int64_t> sent;
  int64_t all = 0;
  for (const Offer &offer : offers) sent.push_back(offer.nbytes);
  for (const int64_t nbytes : sent) all += nbytes;
  arriving_.assign(offers.size(), 0);
  std::vector<Offer> told;
  std::vector<Receive> receives;
  for (size_t rank = 0; rank < offers.size(); ++rank) {
    told.push_back({&sent[rank], kToldNbytes});
    receives.push_back({&arriving_[rank], kToldNbytes});
  }
  ZERO_CO_AWAIT(exchange(group, told, receives, what));
  int64_t nbytes = 0;
  for (const int64_t arriving : arriving_) nbytes += arriving;
  if (const Status room = need(received_, nbytes); !room.ok()) {
    group.fail(room);
    co_return room;
  }
  receives.clear();
  packets_.clear();
  std::byte *at = received_.data();
  for (const int64_t arriving : arriving_) {
    receives.push_back({at, arriving});
    packets_.push_back({at, at + arriving});
    at += arriving;
  }
  ZERO_CO_AWAIT(exchange(group, offers, receives, what));
  group.count_direct(kind, all / element, all + (group.size() - 1) * kToldNbytes);
  co_return Status();
}

const std::byte *RowPackets::take(int64_t rank, int64_t row, int64_t nbytes) {
  Packet &packet = packets_[static_cast<size_t>(rank)];
  int64_t next = -1;
  if (packet.at < packet.end) std::memcpy(&next, packet.at, kRowNbytes);
  if (next != row) return nullptr;
  const std::byte *elements = packet.at + kRowNbytes;
  packet.at = elements + nbytes;
  return elements;
}

void RowPackets::unpack(int64_t bucket, int64_t rank, const SlotPlace &place, std::span<uint8_t> marks) {
  const Range cut = plan_.bucket_cut(bucket, rank);
  const Packet &packet = packets_[static_cast<size_t>(rank)];
  while (packet.at < packet.end) {
    int64_t row = 0;
    std::memcpy(&row, packet.at, kRowNbytes);
    const Range part = part_of(bucket, row, cut);
    const int64_t nbytes = part.count() * dtype_nbytes(place.dtype);
    std::memcpy(place.at(part.begin), take(rank, row, nbytes), static_cast<size_t>(nbytes));
    if (!marks.empty()) marks[static_cast<size_t>(row)] = 1;
  }
}

}  // namespace zero
