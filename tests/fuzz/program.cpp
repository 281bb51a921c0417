/// @file Drawing programs and ways.
#include "tests/fuzz/program.h"

#include "tests/algorithms.h"
#include "tests/sizes.h"

#include <cmath>
#include <cstdlib>

namespace zero::test::fuzz {
namespace {

int64_t random_count(Random &random, int64_t ranks) {
  switch (random.below(8)) {
    case 0:
      return random.below(3);
    case 1:
      return random.below(ranks + 1);
    case 2:
      return 256 * (1 + random.below(4)) + random.below(3) - 1;
    case 3:
      return 2000 + random.below(3000);
    default:
      return 1 + random.below(600);
  }
}

std::vector<int64_t> random_shape(Random &random, int64_t ranks, bool matrix) {
  if (matrix) return {1 + random.below(24), 1 + random.below(40)};
  const int64_t count = random_count(random, ranks);
  if (count == 1 && random.one_in(2)) return {};
  if (count % 2 == 0 && random.one_in(3)) return {2, count / 2};
  if (count == 0 && random.one_in(2)) return {3, 0, 5};
  return {count};
}

/// How tensors are kept; goes into the optimizer's config or that of one tensor.
void draw_precision(Random &random, const std::string &algorithm, Settings &settings, bool coded) {
  const bool narrow = algorithm != "sgd" && algorithm != "custom" && algorithm != "muon";
  if (random.one_in(3)) settings.push_back({ZERO_KEY_GRAD_DTYPE, random.of<int64_t>({ZERO_DTYPE_F32, ZERO_DTYPE_BF16, ZERO_DTYPE_F16})});
  if (coded) settings.push_back({ZERO_KEY_PARAM_DTYPE, int64_t{ZERO_DTYPE_F8_E4M3}});
  if (!coded && random.one_in(2)) settings.push_back({ZERO_KEY_MASTER, int64_t{ZERO_MASTER_NONE}});
  if (narrow && random.one_in(3))
    settings.push_back({ZERO_KEY_FIRST_MOMENT_DTYPE, random.of<int64_t>({ZERO_DTYPE_BF16, ZERO_DTYPE_F8_E4M3})});
  if (narrow && random.one_in(3))
    settings.push_back({ZERO_KEY_SECOND_MOMENT_DTYPE, random.of<int64_t>({ZERO_DTYPE_BF16, ZERO_DTYPE_F8_UE5M3})});
}

void draw_loss_scale(Random &random, Settings &settings) {
  if (random.one_in(3)) settings.push_back({ZERO_KEY_LOSS_SCALE, random.of({0.5, 8.0, 1024.0})});
  if (!random.one_in(3)) return;
  settings.push_back({ZERO_KEY_LOSS_SCALE_DYNAMIC, int64_t{1}});
  settings.push_back({ZERO_KEY_LOSS_SCALE_WINDOW, 1 + random.below(3)});
  settings.push_back({ZERO_KEY_LOSS_SCALE_HYSTERESIS, 1 + random.below(2)});
  if (random.one_in(2)) settings.push_back({ZERO_KEY_LOSS_SCALE_MIN, 0.25});
}

std::string name_of(Random &random, const Names &names) { return names[static_cast<size_t>(random.below(std::ssize(names)))]; }

void draw_settings(Random &random, Program &program) {
  Settings &settings = program.settings;
  Names names = all_names();
  names.insert(names.end(), {"adamw", "sgd", "custom"});  // the most usual ones twice
  program.algorithm = name_of(random, names);
  settings.push_back({ZERO_KEY_ALGORITHM, program.algorithm});
  const bool custom = program.algorithm == "custom";
  if (custom) settings.push_back({ZERO_KEY_CUSTOM_SLOTS, random.below(3)});
  const int64_t divisor = random.below(3);
  program.weighted = divisor == ZERO_DIVISOR_WEIGHTS;
  settings.push_back({ZERO_KEY_DIVISOR, divisor});
  if (!custom) settings.push_back({ZERO_KEY_LR, 0.01});
  if (program.algorithm == "sgd" && random.one_in(2)) settings.push_back({ZERO_KEY_MOMENTUM, 0.9});
  if (program.algorithm == "sgd" && random.one_in(3)) settings.push_back({ZERO_KEY_NESTEROV, 1.0});  // without momentum refused
  if (random.one_in(8)) settings.push_back({ZERO_KEY_NONFINITE, int64_t{ZERO_NONFINITE_PROPAGATE}});
  if (!custom && random.one_in(3)) {
    program.clips_norm = true;
    settings.push_back({ZERO_KEY_CLIP_NORM, random.of({0.5, 20.0})});
  } else if (!custom && random.one_in(4)) {
    settings.push_back({ZERO_KEY_CLIP_VALUE, 0.02});
  }
  draw_loss_scale(random, settings);
  program.stochastic = random.one_in(3);
  if (program.stochastic) settings.push_back({ZERO_KEY_ROUNDING, int64_t{ZERO_ROUNDING_STOCHASTIC}});
  if (random.one_in(2)) settings.push_back({ZERO_KEY_SEED, random.below(1000)});
  if (random.one_in(3)) settings.push_back({ZERO_KEY_UNFILLED, int64_t{ZERO_UNFILLED_UNTOUCHED}});
  if (random.one_in(2)) settings.push_back({ZERO_KEY_ACCUMULATE_DTYPE, int64_t{ZERO_DTYPE_F32}});
  if (!custom && random.one_in(3)) settings.push_back({ZERO_KEY_AVERAGE, int64_t{1}});
  if (!custom && random.one_in(3)) draw_precision(random, program.algorithm, settings, false);
}

void draw_sets(Random &random, Program &program) {
  if (program.algorithm == "custom") return;
  for (int64_t i = random.below(3); i > 0; --i) {
    Settings set;
    if (program.algorithm == "muon" || random.one_in(3)) set.push_back({ZERO_KEY_ALGORITHM, name_of(random, elementwise_names())});
    set.push_back({ZERO_KEY_LR, 0.002 * static_cast<double>(i)});
    program.sets.push_back(std::move(set));
  }
}

int64_t number_in(const Settings &settings, int32_t key, int64_t otherwise) {
  for (const Setting &setting : settings) {
    if (setting.key == key) return setting.integer;
  }
  return otherwise;
}

void tie(Tensor &tensor, int64_t to, Program &program) {
  Tensor &other = program.tensors[static_cast<size_t>(to)];
  const int64_t holder = other.tied_to;
  if (holder >= 0) return tie(tensor, holder, program);
  other.shares = true;
  tensor = other;
  tensor.tied_to = to;
  tensor.settings = {{ZERO_KEY_TIED_TO, to}};
}

Tensor random_tensor(Random &random, Program &program, bool some_initialised) {
  Tensor tensor;
  const bool custom = program.algorithm == "custom";
  if (!program.tensors.empty() && random.one_in(7)) {
    tie(tensor, random.below(program.size()), program);
    return tensor;
  }
  const int64_t set = program.sets.empty() ? 0 : random.below(static_cast<int64_t>(program.sets.size()) + 1);
  tensor.shape = random_shape(random, program.ranks, program.algorithm == "muon" && set == 0);
  for (const int64_t extent : tensor.shape) tensor.count *= extent;
  if (!custom) tensor.dtype = random.of<int32_t>({ZERO_DTYPE_F32, ZERO_DTYPE_F32, ZERO_DTYPE_BF16, ZERO_DTYPE_F16});
  if (set > 0 || random.one_in(2)) tensor.settings.push_back({ZERO_KEY_SET, set});
  tensor.frozen = random.one_in(8);
  if (tensor.frozen) tensor.settings.push_back({ZERO_KEY_FROZEN, int64_t{1}});
  const int64_t master = number_in(program.settings, ZERO_KEY_MASTER, ZERO_MASTER_F32);
  tensor.coded = !custom && master == ZERO_MASTER_F32 && random.one_in(5);
  if (tensor.coded) tensor.settings.push_back({ZERO_KEY_PARAM_DTYPE, int64_t{ZERO_DTYPE_F8_E4M3}});
  if (!tensor.coded && tensor.dtype == ZERO_DTYPE_BF16 && random.one_in(3))
    tensor.settings.push_back({ZERO_KEY_MASTER, int64_t{ZERO_MASTER_REMAINDER}});
  if (!custom && random.one_in(5)) tensor.settings.push_back({ZERO_KEY_GRAD_DTYPE, int64_t{ZERO_DTYPE_F32}});
  const int64_t grad = number_in(tensor.settings, ZERO_KEY_GRAD_DTYPE, number_in(program.settings, ZERO_KEY_GRAD_DTYPE, 0));
  tensor.grad_dtype = grad != 0 ? static_cast<int32_t>(grad) : tensor.dtype;
  tensor.initialised = some_initialised && (random.one_in(2) || (tensor.frozen && tensor.coded));
  return tensor;
}

std::vector<Piece> random_pieces(Random &random, const Program &program) {
  std::vector<Piece> pieces;
  for (int64_t id = program.size() - 1; id >= 0; --id) {
    const Tensor &tensor = program.tensor(id);
    if (tensor.frozen || random.one_in(9)) continue;
    if (random.one_in(8) && tensor.count > 2) {
      const int64_t begin = random.below(tensor.count);
      pieces.push_back({id, begin, 1 + random.below(tensor.count - begin)});
    } else {
      pieces.push_back({id, 0, tensor.count});
    }
  }
  return pieces;
}

MicroStep random_micro_step(Random &random, const Program &program, int32_t kind) {
  MicroStep micro;
  micro.kind = kind;
  micro.alike = random.one_in(2);
  for (int64_t rank = 0; rank < program.ranks; ++rank)
    micro.pieces.push_back(micro.alike && rank > 0 ? micro.pieces[0] : random_pieces(random, program));
  if (program.weighted && !random.one_in(4)) {
    for (int64_t rank = 0; rank < program.ranks; ++rank) micro.weights.push_back(random.of({0.0, 1.0, 2.0, 3.5}));
    micro.weights[0] = 1.5;
  }
  if (random.one_in(8)) {
    micro.poisoned_rank = random.below(program.ranks + 1);  // ranks: all of them
    micro.poison = random.of({INFINITY, -INFINITY, NAN, 3e38F, 65504.0F});
  }
  return micro;
}

Edit random_edit(Random &random, const Program &program) {
  Edit edit{random.of({Edit::Kind::write, Edit::Kind::write, Edit::Kind::init, Edit::Kind::set_f64, Edit::Kind::set_f64,
                       Edit::Kind::set_i64, Edit::Kind::sync_buffers})};
  edit.id = random.below(program.size());
  edit.which = random.below(6);
  edit.seed = random.word() >> 8;
  if (edit.kind == Edit::Kind::init) {
    edit.id = program.holder(edit.id);
    edit.which %= 3;
  }
  if (edit.kind == Edit::Kind::set_f64) {
    edit.id = random.below(static_cast<int64_t>(program.sets.size()) + 1);
    // What a set lacks is refused alike everywhere.
    edit.key = random.of<int32_t>({ZERO_KEY_LR, ZERO_KEY_LR, ZERO_KEY_WEIGHT_DECAY, ZERO_KEY_BETA1, ZERO_KEY_EPSILON, ZERO_KEY_MOMENTUM,
                                   ZERO_KEY_AVERAGE_DECAY, ZERO_KEY_LOSS_SCALE});
    edit.value = random.of({0.0, 0.003, 0.5, 0.9, -1.0});
  }
  if (edit.kind == Edit::Kind::set_i64) {
    edit.key = random.of<int32_t>({ZERO_KEY_STEP_COUNT, ZERO_KEY_SKIPPED_COUNT, ZERO_KEY_GROWTH_COUNT, ZERO_KEY_OVERFLOW_COUNT});
    edit.value = static_cast<double>(random.below(6) - 1);
  }
  return edit;
}

Step random_step(Random &random, const Program &program) {
  static const std::vector<std::vector<int32_t>> kMicroSteps = {{-1},   {-1},   {-1},         {0}, {1, 0}, {1, 1, 0},
                                                                {2, 0}, {2, 2}, {1, 2, 1, 0}, {1}, {2, 1}};
  Step step;
  if (random.one_in(2)) {
    for (int64_t i = random.below(4); i > 0; --i) step.edits.push_back(random_edit(random, program));
  }
  for (const int32_t kind : kMicroSteps[static_cast<size_t>(random.below(std::ssize(kMicroSteps)))])
    step.micro_steps.push_back(random_micro_step(random, program, kind));
  if (random.one_in(4)) step.finish = Finish::read_gradients;
  if (random.one_in(9)) step.finish = Finish::dropped;
  for (int64_t id = 0; id < program.size(); ++id) {
    if (random.one_in(3)) step.looked_at.push_back(id);
  }
  return step;
}

}  // namespace

Program random_program(uint64_t seed, int64_t ranks) {
  Random random(seed * 0x9e3779b97f4a7c15 + 1);
  Program program;
  program.seed = seed;
  program.ranks = ranks > 0 ? ranks : 1 + random.below(4);
  draw_settings(random, program);
  draw_sets(random, program);
  const bool some_initialised = random.one_in(3);
  for (int64_t i = 1 + random.below(random.one_in(4) ? 30 : 8); i > 0; --i)
    program.tensors.push_back(random_tensor(random, program, some_initialised));
  program.module_buffers = random.below(3);
  for (int64_t i = 1 + random.below(5); i > 0; --i) program.steps.push_back(random_step(random, program));
  return program;
}

Way random_way(uint64_t seed, const Program &program) {
  Random random(seed * 0x9e3779b97f4a7c15 + 7);
  Way way;
  way.seed = seed;
  way.stage = random.below(4);
  way.one_copy = (way.stage == 1 || way.stage == 2) && random.one_in(3);
  way.norm = random.one_in(2);
  way.overlaps = random.one_in(2);
  way.reorders = random.one_in(3);
  way.gathers_in_order = random.one_in(3);
  way.noise = random.of<int64_t>({0, 1, 3, 6});
  way.hooked = random.one_in(4);
  way.splits = random.one_in(4);
  if (random.one_in(3)) way.remakes_before = random.below(static_cast<int64_t>(program.steps.size()));
  way.settings = {{ZERO_KEY_STAGE, way.stage},
                  {ZERO_KEY_BUCKET_BYTES, random.of<int64_t>({0, 1024, 4096, 65'536, 26'214'400})},
                  {ZERO_KEY_OVERLAP, int64_t{way.overlaps ? 1 : 0}},
                  {ZERO_KEY_THREADS, 1 + random.below(3)},
                  {ZERO_KEY_ONE_COPY, int64_t{way.one_copy ? 1 : 0}},
                  {ZERO_KEY_GRAD_NORM, int64_t{way.norm ? 1 : 0}},
                  {ZERO_KEY_PREFETCH_BYTES, random.of<int64_t>({0, 2048, 16'777'216})},
                  {ZERO_KEY_VERIFY_EVERY, random.of<int64_t>({0, 0, 1, 2})},
                  {ZERO_KEY_TRACE_EVENTS, random.of<int64_t>({0, 7, 1000})}};
  // It is among what decides places of elements, which stochastic rounding and the last bit of a norm depend on.
  const auto gathers_below = random.of<int64_t>({0, 0, 300, 100'000});
  if (!program.stochastic && !program.clips_norm && !way.norm) way.settings.push_back({ZERO_KEY_GATHER_BELOW, gathers_below});
  if (!random.one_in(3)) return way;
  std::string weights;
  for (int64_t rank = 0; rank < program.ranks; ++rank) weights += (rank > 0 ? "," : "") + std::to_string(rank == 0 ? 1 : random.below(4));
  way.settings.push_back({ZERO_KEY_SHARD_WEIGHTS, weights});
  return way;
}

std::string text_of(const Settings &settings) {
  std::string text;
  for (const Setting &each : settings) {
    text += " " + std::to_string(each.key) + "=";
    text += each.type == 1 ? std::to_string(each.integer) : each.type == 2 ? std::to_string(each.number) : each.text;
  }
  return text;
}

std::string Program::text() const {
  std::string text = "program " + std::to_string(seed) + " of " + std::to_string(ranks) + " ranks, config" + text_of(settings) + "\n";
  for (const Settings &set : sets) text += "  set" + text_of(set) + "\n";
  for (const Tensor &each : tensors) {
    text += "  tensor of " + std::to_string(each.count) + " elements, dtype " + std::to_string(each.dtype) + text_of(each.settings) + "\n";
  }
  return text;
}

std::string Way::text() const {
  return "way " + std::to_string(seed) + (reorders ? " reorders" : "") + (gathers_in_order ? " gathers in order" : "") +
         (hooked ? " hooked" : "") + (splits ? " splits" : "") + " noise " + std::to_string(noise) + " remakes before " +
         std::to_string(remakes_before) + ", config" + text_of(settings) + "\n";
}

Seeds seeds_to_run(int64_t few) {
  const char *seed = std::getenv("ZERO_FUZZ_SEED");
  const char *count = std::getenv("ZERO_FUZZ_PROGRAMS");
  Seeds seeds{1, full_tests() ? 2000 : few_tests() ? few : 60};
  if (seed != nullptr) seeds.first = std::strtoull(seed, nullptr, 10);
  if (count != nullptr) seeds.count = std::strtoll(count, nullptr, 10);
  return seeds;
}

}  // namespace zero::test::fuzz
