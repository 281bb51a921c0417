/// @file Random trainings as data: what decides their bits (a program), and what must not (a way). Knows no handle and makes no call.
#pragma once

#include <zero/zero.h>

#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace zero::test::fuzz {

class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}
  /// 0 .. n - 1.
  int64_t below(int64_t n) { return static_cast<int64_t>(engine_() % static_cast<uint64_t>(n)); }
  bool one_in(int64_t n) { return below(n) == 0; }
  uint64_t word() { return engine_(); }
  template <class T>
  T of(std::initializer_list<T> choices) {
    return choices.begin()[below(static_cast<int64_t>(choices.size()))];
  }

 private:
  std::mt19937_64 engine_;
};

/// A key of a config and its value, of one of three types.
struct Setting {
  Setting(int32_t of_key, int64_t value) : key(of_key), type(1), integer(value) {}
  Setting(int32_t of_key, double value) : key(of_key), type(2), number(value) {}
  Setting(int32_t of_key, std::string value) : key(of_key), type(3), text(std::move(value)) {}

  int32_t key;
  int32_t type;  ///< as in zero_key_bounds
  int64_t integer = 0;
  double number = 0;
  std::string text;
};
using Settings = std::vector<Setting>;

struct Tensor {
  int32_t dtype = ZERO_DTYPE_F32;
  std::vector<int64_t> shape;
  int64_t count = 1;
  int64_t tied_to = -1;
  bool frozen = false;
  bool coded = false;   ///< asks for 8-bit parameters
  bool shares = false;  ///< is tied, or another one is to it
  int32_t grad_dtype = ZERO_DTYPE_F32;
  bool initialised = false;  ///< by init_param; otherwise first values are written
  Settings settings;
};

/// Elements of a tensor's gradient that a rank gives.
struct Piece {
  int64_t id;
  int64_t begin;
  int64_t count;
};

struct MicroStep {
  int32_t kind = -1;  ///< a zero_micro_step; -1: the step is one without a call
  /// @name By rank
  /// @{
  std::vector<double> weights;  ///< empty: not set
  std::vector<std::vector<Piece>> pieces;
  /// @}
  bool alike = false;          ///< all ranks give the same pieces
  int64_t poisoned_rank = -1;  ///< whose first element is no number, or too large to be added up
  float poison = 0;
};

/// Something done between steps, alike on all ranks.
struct Edit {
  enum class Kind { write, init, set_f64, set_i64, sync_buffers } kind;
  int64_t id = 0;     ///< tensor, or set
  int64_t which = 0;  ///< slot by its index, or initialiser
  int32_t key = 0;
  double value = 0;
  uint64_t seed = 0;
};

enum class Finish {
  step,            ///< whole or in parts, as the way likes
  read_gradients,  ///< in parts, with all gradients read
  dropped          ///< reduced and gathered without apply
};

struct Step {
  std::vector<Edit> edits;
  std::vector<MicroStep> micro_steps;
  Finish finish = Finish::step;
  std::vector<int64_t> looked_at;  ///< tensors whose values are acquired afterwards
};

/// What decides the bits.
struct Program {
  uint64_t seed = 0;
  int64_t ranks = 1;
  std::string algorithm;
  bool weighted = false;
  bool clips_norm = false;
  bool stochastic = false;  ///< rounds so, as far as ways are drawn
  Settings settings;
  std::vector<Settings> sets;
  std::vector<Tensor> tensors;
  int64_t module_buffers = 0;
  std::vector<Step> steps;

  int64_t size() const { return static_cast<int64_t>(tensors.size()); }
  const Tensor &tensor(int64_t id) const { return tensors[static_cast<size_t>(id)]; }
  int64_t holder(int64_t id) const { return tensor(id).tied_to < 0 ? id : tensor(id).tied_to; }
  std::string text() const;
};

/// What must not decide them.
struct Way {
  uint64_t seed = 0;
  int64_t stage = 0;
  bool one_copy = false;
  bool overlaps = false;
  bool norm = false;  ///< the norm is computed
  bool reorders = false;
  bool gathers_in_order = false;
  int64_t noise = 0;            ///< one in so many places has calls that must not matter; 0: none
  int64_t remakes_before = -1;  ///< step before which all is saved into another optimizer, of the next way
  bool hooked = false;          ///< memory comes from the caller
  bool splits = false;          ///< the group is split from another one
  Settings settings;

  std::string text() const;
};

/// ranks: 0 for any number.
Program random_program(uint64_t seed, int64_t ranks = 0);
Way random_way(uint64_t seed, const Program &program);

std::string text_of(const Settings &settings);

/// Programs to run: those that ZERO_FUZZ_SEED and ZERO_FUZZ_PROGRAMS name, or as many as tests/sizes.h says, `few` where all is slow.
struct Seeds {
  uint64_t first = 1;
  int64_t count = 0;
};
Seeds seeds_to_run(int64_t few);

}  // namespace zero::test::fuzz
