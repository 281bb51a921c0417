/// @file One rank's part in a program: its optimizer, its gradients, and the facts that must be the same in every way.
#pragma once

#include "tests/fuzz/calls.h"

#include <cstddef>

namespace zero::test::fuzz {

/// What a rank saw: must not depend on the way.
struct Fact {
  std::string what;
  uint64_t value;
  bool told;  ///< in this way; the norm is computed only where it was asked for

  std::string text() const { return what + " " + std::to_string(value) + (told ? "" : " (untold)"); }
  bool agrees(const Fact &other) const { return what == other.what && (!told || !other.told || value == other.value); }
};
using Facts = std::vector<Fact>;

class Training {
 public:
  /// agreed: draws what all ranks do alike in this way.
  Training(const Program &program, const Way &way, int64_t rank, zero_group *group, Calls &calls, Facts &facts);
  Training(const Training &) = delete;
  ~Training() { release(); }

  /// @name The program, in this order. Other trainings may do theirs in between.
  /// @{
  /// false: refused.
  bool start();
  void take_step(int64_t number);
  void end();
  /// @}

 private:
  friend class Noise;

  /// @name building.cpp
  /// @{
  /// false: refused, which is a fact.
  bool build();
  bool add_all();
  void write_first_values();
  void write_first_value(int64_t id, int32_t source);
  /// `stepped`: a step was made before.
  void save_and_remake(bool stepped);
  void release_params();
  void release();
  /// @}

  /// @name training.cpp
  /// @{
  void edit(const Step &step);
  bool write(const Edit &edit);
  void sync_buffers(uint64_t seed);
  void set(const Edit &edit);
  void init(int64_t id, int64_t initialiser, uint64_t seed);
  void begin(int32_t source);
  void look(int64_t id);
  void scribble(const MicroStep &micro);
  void take_micro_step(const MicroStep &micro);
  void give(const MicroStep &micro, Piece piece, bool acquired, std::vector<int64_t> &adds);
  std::vector<Piece> in_some_order(std::vector<Piece> pieces);
  void finish(Finish finish);
  void update_views();
  void read_all();
  std::vector<std::byte> read(int64_t id, int32_t slot, int64_t dtype, int64_t count);
  void tell(const std::string &what, uint64_t value, bool told = true) { facts_.push_back({place_ + what, value, told}); }
  void tell(const std::string &what, const std::vector<std::byte> &bytes);
  void tell_result(const zero_step_result &result);
  /// @}

  std::string name(const char *call, int64_t id) const { return std::string(call) + " " + std::to_string(id); }
  /// Whether a parameter that is acquired is to be released before a step.
  bool buffers(int64_t id) const { return way_.stage == 3 || (program_.tensor(id).coded && program_.tensor(id).count >= 256); }
  bool buffers_any() const;

  const Program &program_;
  Way way_;
  const int64_t rank_;
  zero_group *const group_;
  Calls &calls_;
  Facts &facts_;
  Random agreed_;
  zero_optimizer *optimizer_ = nullptr;
  std::string place_;  ///< in the program
  bool built_ = false;

  /// @name What calls have made of the optimizer
  /// @{
  std::vector<int64_t> acquired_;  ///< by holder
  bool begun_ = false;
  bool edited_ = false;
  bool reduced_ = false;
  bool acquiring_ = false;
  bool started_ = false;      ///< gradients of the step were given on this rank
  bool in_step_ = false;      ///< on all ranks
  bool alike_ = false;        ///< all ranks gave the same pieces of them, so that nobody waits for reductions that others hold back
  bool given_ = false;        ///< of the micro-step
  int64_t micro_steps_ = 0;   ///< so far
  std::vector<Piece> ready_;  ///< in the micro-step
  /// @}
};

/// Reproducible values in (-1, 1), none of which is zero in any dtype.
std::vector<float> values_at(uint64_t seed, uint64_t stream, int64_t begin, int64_t count);
std::vector<std::byte> encoded(const std::vector<float> &values, int64_t dtype);
zero_config *new_config(const Settings &settings);
uint64_t hash_of(const std::vector<std::byte> &bytes);

/// Calls that must not matter: what is refused, what only looks, and what comes to the same.
class Noise {
 public:
  explicit Noise(Training &training) : t_(training) {}
  /// At a place between two calls of the program; `between_steps`: nothing of a step was given.
  void make(bool between_steps);
  /// While an operation is under way.
  void meanwhile();
  /// Where parameters were written and begin has not come.
  void refuse_edited();

 private:
  void refuse_alone();
  void refuse_together(bool meets);
  void refuse_acquired(int64_t id);
  void refuse_reduced();
  void look_alone();
  void pass_together(bool between_steps);
  void group_work();

  Training &t_;
};

}  // namespace zero::test::fuzz
