/// @file The cases and their independent reference: nothing here uses the library's arithmetic.
#include "tests/group/collective_cases.h"

#include "group/collectives.h"
#include "kernels/kernels.h"
#include "tests/half.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <span>
#include <thread>

namespace zero::test {
namespace {

constexpr DType kDTypes[] = {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i32, DType::i64, DType::u8};
constexpr ReduceOp kOps[] = {ReduceOp::sum, ReduceOp::avg, ReduceOp::min, ReduceOp::max, ReduceOp::prod};
constexpr OperationKind kReducing[] = {OperationKind::all_reduce, OperationKind::reduce_scatter, OperationKind::reduce};
constexpr OperationKind kMoving[] = {OperationKind::broadcast, OperationKind::all_gather, OperationKind::gather,
                                     OperationKind::scatter,   OperationKind::all_to_all, OperationKind::send};
constexpr size_t kGuardBytes = 64;
constexpr unsigned char kGuard = 0xa5;

bool is_float(DType dtype) { return dtype == DType::f32 || dtype == DType::f64 || dtype == DType::f16 || dtype == DType::bf16; }

uint64_t mix(uint64_t value) {
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9U;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebU;
  return value ^ (value >> 31);
}

/// Random bits of an element of a rank's data.
uint64_t bits_of(const CollectiveCase &c, int64_t rank, int64_t index) {
  const uint64_t seed = static_cast<uint64_t>(c.kind) * 31 + static_cast<uint64_t>(c.dtype) * 131 + static_cast<uint64_t>(c.op) * 17;
  return mix(seed * 0x9e3779b97f4a7c15U + mix(static_cast<uint64_t>(rank) << 40 | static_cast<uint64_t>(index)));
}

float bf16_to_float(uint16_t half) { return std::bit_cast<float>(static_cast<uint32_t>(half) << 16); }

uint16_t float_to_bf16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  return static_cast<uint16_t>((bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16);
}

template <class T>
void store(Bytes &bytes, int64_t index, T value) {
  std::memcpy(bytes.data() + static_cast<size_t>(index) * sizeof(T), &value, sizeof(T));
}

void store_float(Bytes &bytes, DType dtype, int64_t index, double value) {
  switch (dtype) {
    case DType::f64:
      return store(bytes, index, value);
    case DType::f16:
      return store(bytes, index, static_cast<Half>(static_cast<float>(value)));
    case DType::bf16:
      return store(bytes, index, float_to_bf16(static_cast<float>(value)));
    default:
      return store(bytes, index, static_cast<float>(value));
  }
}

void store_integer(Bytes &bytes, DType dtype, int64_t index, uint64_t value) {
  if (dtype == DType::i64) return store(bytes, index, value);
  if (dtype == DType::i32) return store(bytes, index, static_cast<uint32_t>(value));
  store(bytes, index, static_cast<uint8_t>(value));
}

/// A rank's element as stored in its dtype.
void store_element(Bytes &bytes, const CollectiveCase &c, int64_t at, int64_t rank, int64_t index) {
  const uint64_t bits = bits_of(c, rank, index);
  if (!is_float(c.dtype)) return store_integer(bytes, c.dtype, at, bits);
  const double unit = static_cast<double>(bits >> 11) * 0x1p-53;
  store_float(bytes, c.dtype, at, c.op == ReduceOp::prod ? 0.5 + unit : 4 * unit - 2);
}

double load_float(const Bytes &bytes, DType dtype) {
  if (dtype == DType::f64) return *reinterpret_cast<const double *>(bytes.data());
  if (dtype == DType::f16) return static_cast<double>(*reinterpret_cast<const Half *>(bytes.data()));
  if (dtype == DType::bf16) return bf16_to_float(*reinterpret_cast<const uint16_t *>(bytes.data()));
  return *reinterpret_cast<const float *>(bytes.data());
}

int64_t load_integer(const Bytes &bytes, DType dtype) {
  if (dtype == DType::i64) return *reinterpret_cast<const int64_t *>(bytes.data());
  if (dtype == DType::i32) return *reinterpret_cast<const int32_t *>(bytes.data());
  return *bytes.data();
}

template <class T>
T combine(ReduceOp op, T a, T b) {
  switch (op) {
    case ReduceOp::min:
      return a < b ? a : b;
    case ReduceOp::max:
      return a > b ? a : b;
    case ReduceOp::prod:
      return static_cast<T>(a * b);
    default:
      return static_cast<T>(a + b);
  }
}

/// T(lo, hi) = T(lo, mid) + T(mid, hi), mid = lo + the largest power of two below hi - lo.
template <class T>
T tree(std::span<const T> values, ReduceOp op, size_t lo, size_t hi) {
  if (hi - lo == 1) return values[lo];
  const size_t mid = lo + std::bit_floor(hi - lo - 1);
  return combine(op, tree(values, op, lo, mid), tree(values, op, mid, hi));
}

/// An element of every rank in all the types that trees need. Used again for element after element: sanitizers watch each allocation.
struct Elements {
  explicit Elements(int64_t size)
      : stored(sizeof(double)),
        floats(static_cast<size_t>(size)),
        singles(floats.size()),
        integers(floats.size()),
        wrapping(floats.size()) {}

  Bytes stored;  ///< of one rank
  std::vector<double> floats;
  std::vector<float> singles;
  std::vector<int64_t> integers;
  std::vector<uint64_t> wrapping;
};

void load_elements(Elements &elements, const CollectiveCase &c, int64_t index) {
  for (size_t rank = 0; rank < elements.floats.size(); ++rank) {
    store_element(elements.stored, c, 0, static_cast<int64_t>(rank), index);
    if (is_float(c.dtype)) {
      elements.floats[rank] = load_float(elements.stored, c.dtype);
      elements.singles[rank] = static_cast<float>(elements.floats[rank]);
    } else {
      elements.integers[rank] = load_integer(elements.stored, c.dtype);
      elements.wrapping[rank] = static_cast<uint64_t>(elements.integers[rank]);
    }
  }
}

template <class T>
T tree(const std::vector<T> &values, ReduceOp op) {
  return tree(std::span<const T>(values), op, 0, values.size());
}

/// Order of min and max is by signed value, sums and products wrap: both from the same 64 bits.
int64_t integer_tree(const Elements &elements, ReduceOp op) {
  if (op == ReduceOp::min || op == ReduceOp::max) return tree(elements.integers, op);
  return static_cast<int64_t>(tree(elements.wrapping, op));
}

/// The reduced element, stored at `at`; also compares the tree with a plain float64 sum.
void store_reduced(Bytes &bytes, const CollectiveCase &c, Elements &elements, int64_t at, int64_t index, Report *report) {
  load_elements(elements, c, index);
  const std::vector<double> &floats = elements.floats;
  const auto size = std::ssize(floats);
  if (!is_float(c.dtype)) {
    int64_t value = integer_tree(elements, c.op);
    if (c.op == ReduceOp::avg) value /= size;
    return store_integer(bytes, c.dtype, at, static_cast<uint64_t>(value));
  }
  double value = 0;
  if (c.dtype == DType::f64) {
    value = tree(floats, c.op);
    if (c.op == ReduceOp::avg) value /= static_cast<double>(size);
  } else {
    float single = tree(elements.singles, c.op);
    if (c.op == ReduceOp::avg) single /= static_cast<float>(size);
    value = single;
  }
  double exact = floats[0];
  double magnitude = std::fabs(floats[0]);
  for (size_t rank = 1; rank < floats.size(); ++rank) {
    exact = combine(c.op, exact, floats[rank]);
    magnitude = c.op == ReduceOp::prod ? magnitude * std::fabs(floats[rank]) : magnitude + std::fabs(floats[rank]);
  }
  if (c.op == ReduceOp::avg) exact /= static_cast<double>(size);
  // Each of at most size - 1 additions and one division errs by half a unit in the last place of a partial result, which no partial
  // exceeds.
  const double unit = c.dtype == DType::f64 ? 0x1p-53 : 0x1p-24;
  // The text is made only for a failure: this runs for every element.
  const bool near = std::fabs(value - exact) <= static_cast<double>(size) * 2 * unit * magnitude;
  if (!near) report->expect(false, "tree far from float64 in " + to_text(c));
  store_float(bytes, c.dtype, at, value);
}

class HostMemory final : public CaseMemory {
 public:
  void *alloc(int64_t nbytes) override { return ::operator new(static_cast<size_t>(nbytes)); }
  void free(void *data, int64_t) override { ::operator delete(data); }
  void write(void *to, const void *from, int64_t nbytes) override { std::memcpy(to, from, static_cast<size_t>(nbytes)); }
  void read(void *to, const void *from, int64_t nbytes) override { std::memcpy(to, from, static_cast<size_t>(nbytes)); }
};

/// Memory with guard bytes behind it.
class Guarded {
 public:
  Guarded(CaseMemory &memory, int64_t nbytes) : Guarded(memory, Bytes(), nbytes) {}
  Guarded(CaseMemory &memory, const Bytes &data) : Guarded(memory, data, static_cast<int64_t>(data.size())) {}
  Guarded(const Guarded &) = delete;
  ~Guarded() { memory_.free(data_, static_cast<int64_t>(all_nbytes_)); }

  void *data() const { return data_; }
  bool holds(const Bytes &expected) const {
    Bytes all(all_nbytes_);
    memory_.read(all.data(), data_, static_cast<int64_t>(all.size()));
    const auto guard = all.begin() + static_cast<std::ptrdiff_t>(all_nbytes_ - kGuardBytes);
    return std::equal(all.begin(), guard, expected.begin(), expected.end()) &&
           std::all_of(guard, all.end(), [](unsigned char byte) { return byte == kGuard; });
  }

 private:
  Guarded(CaseMemory &memory, Bytes data, int64_t nbytes)
      : memory_(memory), all_nbytes_(static_cast<size_t>(nbytes) + kGuardBytes), data_(memory.alloc(static_cast<int64_t>(all_nbytes_))) {
    data.resize(all_nbytes_, kGuard);
    memory_.write(data_, data.data(), static_cast<int64_t>(data.size()));
  }

  CaseMemory &memory_;
  const size_t all_nbytes_;
  void *const data_;
};

Bytes concatenate_shares(const CollectiveCase &c, int64_t size) {
  Bytes whole;
  for (int64_t rank = 0; rank < size; ++rank) {
    const Range share = even_share(c.count, rank, size);
    const Bytes part = data_of(c, rank, share.begin, share.end);
    whole.insert(whole.end(), part.begin(), part.end());
  }
  return whole;
}

void run_reducing(Group &group, const CollectiveCase &c, CaseMemory &memory, Report *report) {
  const int64_t element = dtype_nbytes(c.dtype);
  const Range whole{0, c.count};
  const Range share = even_share(c.count, group.rank(), group.size());
  Range mine = c.kind == OperationKind::reduce_scatter ? share : whole;
  if (c.kind == OperationKind::reduce && group.rank() != c.root) mine = {0, 0};
  const Bytes given = data_of(c, group.rank(), 0, c.count);
  const Guarded send(memory, given);
  const bool in_place = bits_of(c, 0, c.count) % 3 == 0 && mine == whole;
  const Guarded recv(memory, in_place ? given : Bytes(static_cast<size_t>(mine.count() * element), kGuard));
  const void *source = in_place ? recv.data() : send.data();
  Status status;
  if (c.kind == OperationKind::all_reduce) {
    status = group.queue()->run(all_reduce(group, source, recv.data(), c.count, c.dtype, c.op));
  } else if (c.kind == OperationKind::reduce) {
    status = group.queue()->run(reduce(group, source, recv.data(), c.count, c.dtype, c.op, c.root));
  } else {
    const Cuts cuts = even_cuts(c.count, group.size());
    status = group.queue()->run(reduce_scatter(group, {source, recv.data(), &cuts, c.dtype, c.op}));
  }
  report->expect(status.ok(), to_text(c) + ": " + status.text());
  report->expect(recv.holds(reduced(c, group.size(), mine, report)), to_text(c) + ": wrong bits in recv");
  report->expect(send.holds(given), to_text(c) + ": send changed");
}

Status run_moving_call(Group &group, const CollectiveCase &c, const void *send, void *recv) {
  switch (c.kind) {
    case OperationKind::broadcast:
      return group.queue()->run(broadcast(group, recv, c.count, c.dtype, c.root));
    case OperationKind::all_gather: {
      const Cuts cuts = even_cuts(c.count, group.size());
      return group.queue()->run(all_gather(group, send, recv, cuts, c.dtype));
    }
    case OperationKind::gather:
      return group.queue()->run(gather(group, send, recv, c.count, c.dtype, c.root));
    case OperationKind::scatter:
      return group.queue()->run(scatter(group, send, recv, c.count, c.dtype, c.root));
    default:
      return group.queue()->run(all_to_all(group, send, recv, c.count, c.dtype));
  }
}

void run_ring(Group &group, const CollectiveCase &c, CaseMemory &memory, Report *report) {
  const int64_t next = (group.rank() + 1) % group.size();
  const int64_t previous = (group.rank() + group.size() - 1) % group.size();
  const Guarded send(memory, data_of(c, group.rank(), 0, c.count));
  const Guarded recv(memory, c.count * dtype_nbytes(c.dtype));
  const auto sending = group.send_queue(next)->submit(group.send(send.data(), c.count, c.dtype, next));
  const auto receiving = group.recv_queue(previous)->submit(group.recv(recv.data(), c.count, c.dtype, previous));
  Backoff backoff;
  while (!sending->done() || !receiving->done()) {
    group.send_queue(next)->progress();
    group.recv_queue(previous)->progress();
    if (!sending->done() || !receiving->done()) backoff.pause();
  }
  report->expect(sending->status().ok(), to_text(c) + ": send: " + sending->status().text());
  report->expect(receiving->status().ok(), to_text(c) + ": recv: " + receiving->status().text());
  report->expect(recv.holds(data_of(c, previous, 0, c.count)), to_text(c) + ": wrong bits received");
}

void run_moving(Group &group, const CollectiveCase &c, CaseMemory &memory, Report *report) {
  const int64_t rank = group.rank();
  const int64_t size = group.size();
  const bool is_root = rank == c.root;
  const Range share = even_share(c.count, rank, size);
  Bytes given;
  Bytes expected;
  switch (c.kind) {
    case OperationKind::broadcast:
      expected = data_of(c, c.root, 0, c.count);
      break;
    case OperationKind::all_gather:
    case OperationKind::gather:
      given = data_of(c, rank, share.begin, share.end);
      if (is_root || c.kind == OperationKind::all_gather) expected = concatenate_shares(c, size);
      break;
    case OperationKind::scatter:
      if (is_root) given = data_of(c, c.root, 0, c.count);
      expected = data_of(c, c.root, share.begin, share.end);
      break;
    default:
      given = data_of(c, rank, 0, c.count);
      for (int64_t peer = 0; peer < size; ++peer) {
        const int64_t block = c.count / size;
        const Bytes part = data_of(c, peer, rank * block, (rank + 1) * block);
        expected.insert(expected.end(), part.begin(), part.end());
      }
  }
  const Guarded send(memory, given);
  const bool gives_recv = c.kind == OperationKind::broadcast && is_root;
  const Guarded recv(memory, gives_recv ? expected : Bytes(expected.size(), kGuard));
  const Status status = run_moving_call(group, c, send.data(), recv.data());
  report->expect(status.ok(), to_text(c) + ": " + status.text());
  report->expect(recv.holds(expected), to_text(c) + ": wrong bits in recv");
  report->expect(send.holds(given), to_text(c) + ": send changed");
}

/// Sizes of the whole: none, one, odd, fewer than ranks, and so large that staging must be used several times.
std::vector<int64_t> sizes_for(int64_t ranks) { return {0, 1, ranks - 1, 3, 257, 1001, 20011}; }

class KernelReducer final : public Reducer {
 public:
  bool reduce(const Reduction &reduction) const override { return kernels::active().reduce(reduction); }
  void copy(void *out, const void *values, int64_t nbytes, int64_t /*total_nbytes*/) const override {
    if (nbytes > 0) std::memcpy(out, values, static_cast<size_t>(nbytes));
  }
};

}  // namespace

void Report::expect(bool holds, const std::string &what) {
  if (holds) return;
  if (++failures <= 5) text += what + "\n";
}

Bytes data_of(const CollectiveCase &c, int64_t rank, int64_t begin, int64_t end) {
  Bytes bytes(static_cast<size_t>((end - begin) * dtype_nbytes(c.dtype)));
  for (int64_t index = begin; index < end; ++index) store_element(bytes, c, index - begin, rank, index);
  return bytes;
}

Bytes reduced(const CollectiveCase &c, int64_t size, Range range, Report *report) {
  Bytes bytes(static_cast<size_t>(range.count() * dtype_nbytes(c.dtype)));
  Elements elements(size);
  for (int64_t index = range.begin; index < range.end; ++index) store_reduced(bytes, c, elements, index - range.begin, index, report);
  return bytes;
}

std::vector<CollectiveCase> collective_cases(int64_t size) {
  std::vector<CollectiveCase> cases;
  for (const DType dtype : kDTypes) {
    for (const int64_t count : sizes_for(size)) {
      const int64_t root = (count + static_cast<int64_t>(dtype)) % size;
      for (const OperationKind kind : kReducing) {
        for (const ReduceOp op : kOps) cases.push_back({kind, dtype, op, count, root});
      }
      for (const OperationKind kind : kMoving) {
        const int64_t divisible = kind == OperationKind::all_to_all ? count / size * size : count;
        if (kind != OperationKind::send || size > 1) cases.push_back({kind, dtype, ReduceOp::sum, divisible, root});
      }
    }
  }
  return cases;
}

std::string to_text(const CollectiveCase &c) {
  return std::string(operation_name(c.kind)) + "(" + dtype_name(c.dtype) + ", " + reduce_name(c.op) + ", count " + std::to_string(c.count) +
         ", root " + std::to_string(c.root) + ")";
}

CaseMemory &host_memory() {
  static HostMemory memory;
  return memory;
}

void run_collective_case(Group &group, const CollectiveCase &c, Report *report, CaseMemory &memory) {
  ++report->cases;
  switch (c.kind) {
    case OperationKind::all_reduce:
    case OperationKind::reduce_scatter:
    case OperationKind::reduce:
      return run_reducing(group, c, memory, report);
    case OperationKind::send:
      return run_ring(group, c, memory, report);
    default:
      return run_moving(group, c, memory, report);
  }
}

void run_split_cases(Group &group, Report *report) { run_split_cases_in(group, report, host_memory()); }

void run_split_cases_in(Group &group, Report *report, CaseMemory &memory) {
  std::shared_ptr<Group> child;
  const int64_t color = group.rank() % 2;
  const int64_t key = color == 0 ? -group.rank() : group.rank();
  const Status status = group.queue()->run(split(group, color, key, &child));
  report->expect(status.ok(), std::string("split: ") + status.text());
  if (child == nullptr) return;
  const int64_t members = color == 0 ? (group.size() + 1) / 2 : group.size() / 2;
  const int64_t place = color == 0 ? members - 1 - group.rank() / 2 : group.rank() / 2;
  report->expect(child->size() == members && child->rank() == place, "split: wrong rank or size");
  Report in_child;
  const auto run_all_of = [&memory](Group &of, DType dtype, Report *to) {
    Every every(5);
    for (const CollectiveCase &c : collective_cases(of.size())) {
      if (c.dtype == dtype && every.next()) run_collective_case(of, c, to, memory);
    }
  };
  std::thread both([&] { run_all_of(*child, DType::f32, &in_child); });
  run_all_of(group, DType::bf16, report);
  both.join();
  report->cases += in_child.cases;
  report->expect(in_child.failures == 0, in_child.text);
}

void run_message_behind_sum(Group &group, Report *report) {
  ++report->cases;
  const int64_t last = group.size() - 1;
  const int64_t count = group.transport().capabilities().round_nbytes;
  std::vector<float> values(static_cast<size_t>(count), 1.0F);
  const auto sum = group.queue()->submit(all_reduce(group, values.data(), values.data(), count, DType::f32, ReduceOp::sum));
  float word = group.rank() == last ? 7.0F : 5.0F;
  Status status;
  if (group.rank() == 0 && last > 0) status = group.recv_queue(last)->run(group.recv(&word, 1, DType::f32, last));
  report->expect(status.ok(), std::string("recv behind a sum: ") + status.text());
  status = group.queue()->wait(sum);
  const bool right = std::count(values.begin(), values.end(), static_cast<float>(group.size())) == count;
  report->expect(status.ok() && right, std::string("a sum before a message: ") + status.text());
  if (group.rank() == last && last > 0) status = group.send_queue(0)->run(group.send(&word, 1, DType::f32, 0));
  report->expect(status.ok(), std::string("send behind a sum: ") + status.text());
  report->expect(group.rank() != 0 || word == 7.0F, "wrong message behind a sum");
}

std::shared_ptr<const Reducer> test_reducer() { return std::make_shared<KernelReducer>(); }

}  // namespace zero::test
