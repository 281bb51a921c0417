/// @file Hierarchy: sums and gathers of groups that span hosts. The ranks of a block, which share a
/// host, sum complete subtrees of the fixed tree before data crosses hosts, and pass on inside the
/// block the data that has crossed. Between two hosts each element therefore travels once per
/// block.
///
/// A block exchanges data with the others in turns. While one turn's data crosses, the ranks of the
/// block exchange the next turn's: one round does both.
#include "group/collectives/pieces.h"

#include <algorithm>

namespace zero {
namespace {

/// Ranks in blocks of equal size: rank = block * size + place.
class Blocks {
 public:
  explicit Blocks(const Group &group)
      : size_(group.transport().capabilities().host_block),
        count_(group.size() / size_),
        own_(group.rank() / size_),
        place_(group.rank() % size_) {}

  int64_t size() const { return size_; }
  int64_t count() const { return count_; }
  int64_t own() const { return own_; }
  /// The block so many turns after, or before, the own one.
  int64_t after(int64_t turns) const { return (own_ + turns) % count_; }
  int64_t before(int64_t turns) const { return (own_ + count_ - turns % count_) % count_; }
  size_t rank(int64_t block, int64_t place) const { return static_cast<size_t>(block * size_ + place); }
  /// The rank of a block at this rank's own place: what crosses hosts goes between ranks of one
  /// place.
  size_t twin(int64_t block) const { return rank(block, place_); }
  size_t neighbour(int64_t place) const { return rank(own_, place); }

 private:
  int64_t size_;
  int64_t count_;
  int64_t own_;
  int64_t place_;
};

/// The chunk that all ranks work on together, in turns of the blocks.
class Turns {
 public:
  Turns(Group &group, const Cuts &cuts) : pieces_(group.size()), group_(group), blocks_(group), cuts_(cuts) {}

  int64_t count() const { return blocks_.count(); }
  Pieces &pieces() { return pieces_; }

 protected:
  void set_chunk(int64_t begin, int64_t step) {
    begin_ = begin;
    step_ = step;
  }
  void clear() {
    std::fill(pieces_.offers.begin(), pieces_.offers.end(), Offer{});
    std::fill(pieces_.arrivals.begin(), pieces_.arrivals.end(), Arrival{});
  }
  Range part_of(size_t rank) const { return chunk_of(cuts_[rank], begin_, step_); }
  Range part() const { return part_of(rank()); }
  size_t rank() const { return static_cast<size_t>(group_.rank()); }
  Range mine() const { return cuts_[rank()]; }

  Pieces pieces_;
  Group &group_;
  const Blocks blocks_;

 private:
  const Cuts &cuts_;
  int64_t begin_ = 0;
  int64_t step_ = 0;
};

/// In turn t a block sums the data for the block t + 1 after it, and sends the sum of the turn
/// before. Its own sum comes last. Weights are applied when a block sums its own contributions. The
/// sums of a chunk are in the group's scratch memory: count() made by this block, count() - 1 made
/// by others for this rank.
class ScatterTurns : public Turns {
 public:
  ScatterTurns(Group &group, const ReduceScatter &call)
      : Turns(group, *call.cuts),
        call_(call),
        sum_dtype_(dtype_nbytes(call.dtype) == 2 ? DType::f32 : call.dtype),
        element_(dtype_nbytes(call.dtype)),
        sum_element_(dtype_nbytes(sum_dtype_)) {
    // A round offers a piece to each neighbour and, in its other turns, a sum besides.
    const int64_t offered = (blocks_.size() - 1) * element_ + sum_element_;
    const int64_t most = static_cast<int64_t>(group.scratch().size()) / std::max(offered, (2 * count() - 1) * sum_element_);
    step_ = most >= kLine ? most / kLine * kLine : std::max<int64_t>(most, 1);
  }

  int64_t step() const { return step_; }
  void begin_chunk(int64_t begin) { set_chunk(begin, step_); }

  void offer(int64_t turn) {
    clear();
    const int64_t target = blocks_.after(turn + 1);
    for (int64_t place = 0; place < blocks_.size(); ++place) {
      const Range theirs = part_of(blocks_.rank(target, place));
      pieces_.offers[blocks_.neighbour(place)] = {at(call_.whole, theirs.begin, element_), theirs.count() * element_};
      pieces_.arrivals[blocks_.neighbour(place)].nbytes = part_of(blocks_.twin(target)).count() * element_;
    }
    if (turn == 0) return;
    const int64_t last_target = blocks_.after(turn);
    const int64_t count = part_of(blocks_.twin(last_target)).count();
    pieces_.offers[blocks_.twin(last_target)] = {made_for(last_target), count * sum_element_, 0, sum_element_};
    pieces_.arrivals[blocks_.twin(blocks_.before(turn))].nbytes = part().count() * sum_element_;
  }

  void take(int64_t turn) {
    sum_neighbours(blocks_.after(turn + 1));
    if (turn == 0 || part().empty()) return;
    const int64_t source = blocks_.before(turn);
    const Arrival &arrival = pieces_.arrivals[blocks_.twin(source)];
    group_.reducer()->copy(made_by(source), arrival.data, arrival.nbytes, arrival.nbytes);
  }

  /// The blocks' sums become this rank's part. False when an element of it is not finite.
  bool sum_blocks() {
    if (part().empty()) return true;
    for (int64_t block = 0; block < count(); ++block) pieces_.sources[static_cast<size_t>(block)] = made_by(block);
    const DType out_dtype = call_.out_dtype == DType{} ? call_.dtype : call_.out_dtype;
    const int64_t out_element = dtype_nbytes(out_dtype);
    return group_.reducer()->reduce({.out = at(call_.out, part().begin - mine().begin, out_element),
                                     .sources = pieces_.sources.data(),
                                     .source_count = count(),
                                     .count = part().count(),
                                     .dtype = sum_dtype_,
                                     .op = call_.op,
                                     .divisor = call_.divisor,
                                     .out_dtype = out_dtype == sum_dtype_ ? DType{} : out_dtype,
                                     .total_nbytes = mine().count() * out_element});
  }

 private:
  void sum_neighbours(int64_t target) {
    const Range theirs = part_of(blocks_.twin(target));
    if (theirs.empty()) return;
    for (int64_t place = 0; place < blocks_.size(); ++place) {
      const size_t neighbour = blocks_.neighbour(place);
      const void *own = at(call_.whole, theirs.begin, element_);
      pieces_.sources[static_cast<size_t>(place)] = neighbour == rank() ? own : pieces_.arrivals[neighbour].data;
    }
    group_.reducer()->reduce({.out = made_for(target),
                              .sources = pieces_.sources.data(),
                              .source_count = blocks_.size(),
                              .count = theirs.count(),
                              .dtype = call_.dtype,
                              .op = call_.op == ReduceOp::avg ? ReduceOp::sum : call_.op,
                              .divisor = 1,
                              .out_dtype = sum_dtype_ == call_.dtype ? DType{} : sum_dtype_,
                              .weights = call_.weights == nullptr ? nullptr : call_.weights + blocks_.neighbour(0)});
  }

  std::byte *scratch(int64_t index) const { return group_.scratch().data() + index * step_ * sum_element_; }
  std::byte *made_for(int64_t block) const { return scratch(block); }
  /// For the own block, this is the sum that it made for itself.
  std::byte *made_by(int64_t block) const {
    if (block == blocks_.own()) return made_for(block);
    return scratch(count() + block - (block > blocks_.own() ? 1 : 0));
  }

  const ReduceScatter &call_;
  const DType sum_dtype_;
  const int64_t element_;
  const int64_t sum_element_;
  int64_t step_ = 0;
};

/// In turn t a block passes on inside what it got from the block t after it, while the one of the
/// block after that arrives.
class GatherTurns : public Turns {
 public:
  GatherTurns(Group &group, const void *mine, void *whole, const Cuts &cuts, DType dtype)
      : Turns(group, cuts), mine_(mine), whole_(whole), element_(dtype_nbytes(dtype)), nbytes_(whole_count(cuts) * element_) {}

  int64_t step() const { return chunk_elements(group_, element_, 2); }
  void begin_chunk(int64_t begin) { set_chunk(begin, step()); }

  void offer(int64_t turn) {
    clear();
    const int64_t block = blocks_.after(turn);
    const Range held = part_of(blocks_.twin(block));
    const Offer own{at(mine_, part().begin - mine().begin, element_), part().count() * element_};
    const Offer passed_on = turn == 0 ? own : Offer{at(whole_, held.begin, element_), held.count() * element_};
    for (int64_t place = 0; place < blocks_.size(); ++place) {
      pieces_.offers[blocks_.neighbour(place)] = passed_on;
      pieces_.arrivals[blocks_.neighbour(place)].nbytes = part_of(blocks_.rank(block, place)).count() * element_;
    }
    if (turn + 1 == count()) return;
    const size_t next = blocks_.twin(blocks_.after(turn + 1));
    pieces_.offers[blocks_.twin(blocks_.before(turn + 1))] = own;
    pieces_.arrivals[next].nbytes = part_of(next).count() * element_;
  }

  void take(int64_t turn) {
    const int64_t block = blocks_.after(turn);
    for (int64_t place = 0; place < blocks_.size(); ++place) {
      if (blocks_.neighbour(place) != rank()) keep(blocks_.neighbour(place), blocks_.rank(block, place));
    }
    if (turn + 1 == count()) return;
    const size_t next = blocks_.twin(blocks_.after(turn + 1));
    keep(next, next);
  }

  void keep_own() {
    void *own = at(whole_, mine().begin, element_);
    if (own != mine_) group_.reducer()->copy(own, mine_, mine().count() * element_, nbytes_);
  }

 private:
  /// Puts what came from one rank in the place of the one that owns it.
  void keep(size_t from, size_t owner) {
    const Arrival &arrival = pieces_.arrivals[from];
    if (arrival.nbytes == 0) return;
    group_.reducer()->copy(at(whole_, part_of(owner).begin, element_), arrival.data, arrival.nbytes, nbytes_);
  }

  const void *const mine_;
  void *const whole_;
  const int64_t element_;
  const int64_t nbytes_;
};

/// All turns of one chunk.
template <class Kind>
Task run_turns(Group &group, Kind &turns) {
  for (int64_t turn = 0; turn < turns.count(); ++turn) {
    turns.offer(turn);
    Round round(group, turns.pieces().offers, turns.pieces().arrivals);
    ZERO_CO_AWAIT(round);
    turns.take(turn);
  }
  co_return Status();
}

}  // namespace

bool pays_by_hosts(const Group &group, const Cuts &cuts, DType dtype) {
  // Smaller data arrives sooner if all ranks exchange it in one round.
  constexpr int64_t kAtOnceNbytes = 1024;
  return group.transport().capabilities().host_block > 1 && longest(cuts) * dtype_nbytes(dtype) > kAtOnceNbytes;
}

Task reduce_scatter_by_hosts(Group &group, ReduceScatter call) {
  ScatterTurns turns(group, call);
  bool finite = true;
  for (int64_t begin = 0; begin < longest(*call.cuts); begin += turns.step()) {
    turns.begin_chunk(begin);
    ZERO_CO_AWAIT(run_turns(group, turns));
    finite &= turns.sum_blocks();
    Quiet quiet(group);  // before the scratch memory is written again
    ZERO_CO_AWAIT(quiet);
  }
  if (call.out_finite != nullptr && !finite) *call.out_finite = false;
  co_return Status();
}

Task all_gather_by_hosts(Group &group, const void *mine, void *whole, const Cuts &cuts, DType dtype) {
  GatherTurns turns(group, mine, whole, cuts, dtype);
  for (int64_t begin = 0; begin < longest(cuts); begin += turns.step()) {
    turns.begin_chunk(begin);
    ZERO_CO_AWAIT(run_turns(group, turns));
  }
  turns.keep_own();
  Quiet quiet(group);
  ZERO_CO_AWAIT(quiet);
  co_return Status();
}

}  // namespace zero
