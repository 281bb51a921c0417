/// @file Host kernels against what memory allows: each row moves the bytes that its formula needs, beside a loop of the same kind of
/// traffic that computes next to nothing (limits.h), interleaved in one run; matrices beside as many fma in registers. usage:
/// kernels_benchmark [options of Google Benchmark]
/// [--elements=N] [--threads=1,2]
#include "engine/compute/host_kernels.h"
#include "kernels/convert.h"
#include "kernels/muon.h"
#include "kernels/update.h"
#include "limits.h"
#include "options.h"
#include "ratio_table.h"
#include "staggered.h"

namespace {

using namespace zero;
using bench::RatioTable;
using bench::Row;

constexpr int kRepeats = 9;

/// The arrays that all rows share, in memory as optimizers have it.
struct Arrays {
  explicit Arrays(int64_t elements) : count(elements), memory(kArrays, kElementNbytes * elements) {
    for (float **array : {&param, &grad, &peer_grad, &first, &second, &out, &first_out, &second_out}) *array = memory.take<float>(count);
    for (std::byte **array : {&param16, &grad16, &remainder, &first16, &second16}) *array = memory.take<std::byte>(2 * count);
    for (std::byte **array : {&first8, &second8}) *array = memory.take<std::byte>(count);
    for (float **array : {&first_scales, &second_scales}) *array = memory.take<float>(count / kLine);
    for (int64_t i = 0; i < count; ++i) param[i] = grad[i] = peer_grad[i] = (static_cast<float>(i % 1021) - 510.5F) * 1e-4F;
    for (int64_t i = 0; i < count; ++i) first[i] = second[i] = 1e-4F;
    grads[0] = grad;
    grads[1] = peer_grad;
    replicas[0].param = whole_replicas[0].param = {out};
    whole_replicas[0].state[0] = {first_out};
    whole_replicas[0].state[1] = {second_out};
    kernels::narrow(kernels::active(), param16, DType::bf16, param, count);
    kernels::narrow(kernels::active(), grad16, DType::bf16, grad, count);
    std::fill_n(remainder, 2 * count, std::byte{0});
    for (std::byte *moments : {first16, second16}) kernels::narrow(kernels::active(), moments, DType::bf16, first, count);
  }

  static constexpr int64_t kArrays = 17;
  static constexpr int64_t kElementNbytes = 8 * 4 + 5 * 2 + 2 * 1 + 1;  // of eight in fp32, five in 16 and two in 8 bits, and of scales

  int64_t count;
  bench::Staggered memory;
  float *param, *grad, *peer_grad, *first, *second, *out, *first_out, *second_out;
  std::byte *param16, *grad16, *remainder, *first16, *second16, *first8, *second8;
  float *first_scales, *second_scales;
  const void *grads[2];
  kernels::Replica replicas[1], whole_replicas[1];
};

/// The rows of one number of threads.
class Rows {
 public:
  Rows(RatioTable &table, const Arrays &arrays, int64_t threads) : table_(table), arrays_(arrays), threads_(threads) {}

  void add_limits() {
    const Arrays &a = arrays_;
    add("limit: r g,p,m,v w p,m,v", "", 28, [a = &a](Range r) {
      float *modified[] = {a->param + r.begin, a->first + r.begin, a->second + r.begin};
      bench::move_modified(a->grad + r.begin, modified, 3, r.count());
    });
    add("limit: r g,p,m w p,m", "", 20, [a = &a](Range r) {
      float *modified[] = {a->param + r.begin, a->first + r.begin};
      bench::move_modified(a->grad + r.begin, modified, 2, r.count());
    });
    add("limit: r g,p w p", "", 12, [a = &a](Range r) {
      float *modified[] = {a->param + r.begin};
      bench::move_modified(a->grad + r.begin, modified, 1, r.count());
    });
    for (const int64_t sources : {1, 2, 4}) {
      add("limit: r " + std::to_string(sources) + " w 1", "", static_cast<double>(4 + 4 * sources), [a = &a, sources](Range r) {
        const float *from[] = {a->param + r.begin, a->grad + r.begin, a->first + r.begin, a->second + r.begin};
        bench::move_written(a->out + r.begin, from, sources, r.count());
      });
    }
    add("limit: r 1", "", 4, [a = &a](Range r) { benchmark::DoNotOptimize(bench::move_read(a->param + r.begin, r.count())); });
  }

  void add_updates() {
    const Arrays &a = arrays_;
    const kernels::Elements param{a.param}, grad{a.grad}, first{a.first}, second{a.second};
    add_update("adamw f32", "limit: r g,p,m,v w p,m,v", 28, "adamw", {.param = param, .grad = grad, .state = {first, second}});
    add_update("adamw bf16, f32 master", "limit: r g,p,m,v w p,m,v", 28, "adamw",
               {.param = {a.param16, DType::bf16}, .master = param, .grad = {a.grad16, DType::bf16}, .state = {first, second}});
    add_update("adamw bf16, f32 master and gradients", "limit: r g,p,m,v w p,m,v", 30, "adamw",
               {.param = {a.param16, DType::bf16}, .master = param, .grad = grad, .state = {first, second}});
    add_update("adamw bf16, 16-bit remainder", "limit: r g,p,m,v w p,m,v", 26, "adamw",
               {.param = {a.param16, DType::bf16},
                .master = {a.remainder, DType::u16},
                .grad = {a.grad16, DType::bf16},
                .state = {first, second}});
    add_update("adamw f32, clipped", "limit: r g,p,m,v w p,m,v", 28, "adamw", {.param = param, .grad = grad, .state = {first, second}},
               0.5F);
    add_update("adamw f32, average", "limit: r g,p,m,v w p,m,v", 36, "adamw",
               {.param = param, .grad = grad, .state = {first, second}, .average = {a.out}});
    add_update("adamw f32, sum of 2, 2 replicas", "limit: r g,p,m,v w p,m,v", 36, "adamw",
               {.param = param, .grad = grad, .state = {first, second}, .sources = a.grads, .replicas = a.replicas});
    add_update("adamw f32, sum of 2, all on 2 ranks", "limit: r g,p,m,v w p,m,v", 44, "adamw",
               {.param = param, .grad = grad, .state = {first, second}, .sources = a.grads, .replicas = a.whole_replicas});
    add_update("sgd momentum f32", "limit: r g,p,m w p,m", 20, "sgd", {.param = param, .grad = grad, .state = {first}});
    add_update("lion f32", "limit: r g,p,m w p,m", 20, "lion", {.param = param, .grad = grad, .state = {first}});
    add_update("adagrad f32", "limit: r g,p,m w p,m", 20, "adagrad", {.param = param, .grad = grad, .state = {second}});
    add_update("adamw f32, bf16 moments", "limit: r g,p,m w p,m", 20, "adamw",
               {.param = param, .grad = grad, .state = {{a.first16, DType::bf16}, {a.second16, DType::bf16}}});
    add_update("adamw bf16 alone", "limit: r g,p,m,v w p,m,v", 24, "adamw",
               {.param = {a.param16, DType::bf16}, .grad = {a.grad16, DType::bf16}, .state = {first, second}});
    add_update("adamw bf16, stochastic", "limit: r g,p,m w p,m", 14, "adamw",
               {.param = {a.param16, DType::bf16},
                .grad = {a.grad16, DType::bf16},
                .state = {{a.first16, DType::bf16}, {a.second16, DType::bf16}}},
               1, true);
    add_update(
        "adamw f32, 8-bit moments", "limit: r g,p,m w p,m", 12 + 4 * (1 + 4.0 / kLine), "adamw",
        {.param = param, .grad = grad, .state = {{a.first8, DType::f8e4m3, a.first_scales}, {a.second8, DType::f8ue5m3, a.second_scales}}});
  }

  void add_moves() {
    const Arrays &a = arrays_;
    for (const int64_t sources : {2, 4}) {
      const std::string limit = "limit: r " + std::to_string(sources) + " w 1";
      add_whole("sum of " + std::to_string(sources) + " f32", limit, static_cast<double>(4 + 4 * sources),
                [this, sources] { sum(sources); });
    }
    add_whole("sum of 2 bf16", "limit: r 2 w 1", 6, [this] { sum_halves(); });
    const HostKernels on(threads_);
    add_whole("bf16 to f32", "limit: r 1 w 1", 6,
              [a = &a, on] { on.convert(a->out, DType::f32, a->grad16, DType::bf16, a->count, 4 * a->count); });
    add_whole("f32 to bf16", "limit: r 1 w 1", 6,
              [a = &a, on] { on.convert(a->out, DType::bf16, a->param, DType::f32, a->count, 2 * a->count); });
    add_whole("add f32 to f32", "limit: r g,p w p", 12, [a = &a, on] { on.add(a->param, DType::f32, a->grad, DType::f32, a->count, 1); });
    add_whole("add bf16 to f32", "limit: r g,p w p", 10,
              [a = &a, on] { on.add(a->param, DType::f32, a->grad16, DType::bf16, a->count, 1); });
    add_whole("copy and all_within f32", "limit: r 1 w 1", 8,
              [a = &a, on] { on.copy_within(a->out, a->grad, DType::f32, a->count, kLargestFinite, 4 * a->count); });
    add_whole("copy and all_within bf16", "limit: r 1 w 1", 4,
              [a = &a, on] { on.copy_within(a->out, a->grad16, DType::bf16, a->count, kLargestFinite, 2 * a->count); });
    add_whole("all_within f32", "limit: r 1", 4, [a = &a, on] { on.all_within(a->param, DType::f32, a->count); });
    add_whole("all_within bf16", "limit: r 1", 2, [a = &a, on] { on.all_within(a->param16, DType::bf16, a->count); });
    add_whole("squares f32", "limit: r 1", 4, [a = &a, on] { add_squares(on, a->grad, DType::f32, a->count); });
    add_whole("squares bf16", "limit: r 1", 2, [a = &a, on] { add_squares(on, a->grad16, DType::bf16, a->count); });
  }

  /// A matrix per thread, as the engine updates them; times as multiples of the limit's.
  void add_matrices() {
    constexpr int64_t kSide = 1024;
    constexpr int64_t kProductFma = kSide * kSide * kSide;
    constexpr int64_t kMuonFma = 5 * (3 + 1) * kProductFma / 2;  // of five steps: muon.h
    matrices_.resize(static_cast<size_t>(threads_), Matrices(kSide));
    for (const auto &[name, count] : {std::pair("limit: fma of a product", kProductFma), {"limit: fma of muon", kMuonFma}}) {
      add_matrix(name, "", [count](Matrices &) { benchmark::DoNotOptimize(bench::multiply_add(count)); });
    }
    const kernels::Table &table = kernels::active();
    add_matrix("product of 1024 x 1024", "limit: fma of a product", [&table](Matrices &m) {
      table.multiply(m.momentum.data(), m.param.data(), m.grad.data(), kSide, kSide, kSide, m.workspace.data());
    });
    add_matrix("symmetric product of 1024 x 1024", "limit: fma of a product", [&table](Matrices &m) {
      table.multiply_symmetric(m.momentum.data(), m.param.data(), m.param.data(), kSide, kSide, m.workspace.data());
    });
    add_matrix("muon f32, 1024 x 1024", "limit: fma of muon", [&table](Matrices &m) { m.update(table, kSide); });
  }

 private:
  /// What one thread works on.
  struct Matrices {
    std::vector<float> param, grad, momentum, workspace;

    explicit Matrices(int64_t side)
        : param(static_cast<size_t>(side * side), 0.5F),
          grad(param.size(), 0.25F),
          momentum(param.size(), 0.25F),
          workspace(static_cast<size_t>(kernels::muon_workspace(side, side))) {}
    void update(const kernels::Table &table, int64_t side) {
      kernels::UpdateScalars scalars;
      scalars.hyper = {.lr = 1e-3, .momentum = 0.95, .nesterov = 1, .epsilon = 1e-7, .weight_decay = 0.1, .newton_schulz_steps = 5};
      kernels::UpdateSegment piece{.param = {param.data()}, .grad = {grad.data()}, .state = {{momentum.data()}}};
      piece.count = side * side;
      kernels::muon(table, piece, side, side, scalars, workspace.data());
    }
  };

  void add_matrix(const std::string &name, const std::string &limit, std::function<void(Matrices &)> work) {
    add_whole(name, limit, 0, [this, work = std::move(work)] {
      parallel_pieces(threads_, [&](int64_t thread) { work(matrices_[static_cast<size_t>(thread)]); });
    });
  }

  std::string titled(const std::string &name) const { return name.empty() ? name : name + ", " + std::to_string(threads_) + "t"; }

  void add_whole(const std::string &name, const std::string &limit, double nbytes, std::function<void()> work) {
    table_.add({titled(name), titled(limit), std::move(work), nullptr, nbytes, static_cast<double>(arrays_.count)});
  }
  /// A row whose work is cut on lines among the threads, as the engine cuts it.
  void add(const std::string &name, const std::string &limit, double nbytes, std::function<void(Range)> work) {
    add_whole(name, limit, nbytes, [this, work = std::move(work)] { HostKernels(threads_).over_lines(arrays_.count, work); });
  }

  void add_update(const std::string &name, const std::string &limit, double nbytes, const char *algorithm,
                  const kernels::UpdateSegment &piece, float grad_factor = 1, bool stochastic = false) {
    kernels::UpdateScalars scalars;
    scalars.hyper = {.lr = 1e-3, .momentum = 0.9, .beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8, .weight_decay = 0.01, .step = 100};
    scalars.grad_factor = grad_factor;
    scalars.average_decay = 0.999;
    scalars.stochastic = stochastic;
    scalars.streams = true;
    add(name, limit, nbytes, [piece, scalars, algorithm = kernels::find_algorithm(algorithm)](Range range) {
      kernels::update(kernels::active(), *algorithm, part_of(piece, range), scalars);
    });
  }
  static kernels::Elements part_of(kernels::Elements elements, Range range) {
    if (elements.data == nullptr) return elements;
    elements.data = static_cast<std::byte *>(elements.data) + range.begin * dtype_nbytes(elements.dtype);
    if (elements.scales != nullptr) elements.scales += range.begin / kLine;
    return elements;
  }
  static kernels::UpdateSegment part_of(kernels::UpdateSegment piece, Range range) {
    for (kernels::Elements *elements : {&piece.param, &piece.master, &piece.grad, &piece.state[0], &piece.state[1], &piece.average}) {
      *elements = part_of(*elements, range);
    }
    piece.peers_offset = range.begin;
    piece.count = range.count();
    return piece;
  }

  void sum(int64_t sources) const {
    const void *from[] = {arrays_.param, arrays_.grad, arrays_.first, arrays_.second};
    HostReducer(threads_).reduce({arrays_.out, from, sources, arrays_.count, DType::f32, ReduceOp::sum, 1, {}, 4 * arrays_.count});
  }

  void sum_halves() const {
    const void *from[] = {arrays_.param16, arrays_.grad16};
    HostReducer(threads_).reduce({arrays_.out, from, 2, arrays_.count, DType::bf16, ReduceOp::sum, 1, {}, 2 * arrays_.count});
  }
  static void add_squares(const HostKernels &on, const void *values, DType dtype, int64_t count) {
    kernels::ExactSum sum;
    on.add_squares(values, dtype, count, sum);
    benchmark::DoNotOptimize(sum);
  }

  RatioTable &table_;
  const Arrays &arrays_;
  const int64_t threads_;
  std::vector<Matrices> matrices_;
};

}  // namespace

int main(int argc, char **argv) {
  const std::vector<char *> left = bench::begin_interleaved(argc, argv);
  bench::Options options(static_cast<int>(left.size()), const_cast<char **>(left.data()), "[--elements=N] [--threads=1,2]");
  const int64_t elements = options.number("elements", int64_t{1} << 26) / kLine * kLine;
  const std::vector<int64_t> threads = options.numbers("threads", usable_cores() > 1 ? "1,2" : "1");
  options.finish();
  const Arrays arrays(elements);
  std::printf("%lld elements, %lld cores, kernels %s; rates as shares of the limit's rate\n", static_cast<long long>(elements),
              static_cast<long long>(usable_cores()), kernels::active().target);
  RatioTable table(kRepeats);
  std::vector<std::unique_ptr<Rows>> rows;
  for (const int64_t count : threads) {
    rows.push_back(std::make_unique<Rows>(table, arrays, count));
    rows.back()->add_limits();
    rows.back()->add_updates();
    rows.back()->add_moves();
    rows.back()->add_matrices();
  }
  table.run();
  return 0;
}
