/// @file Launches kernels, and reads their results.
#include "engine/compute/device_kernels.h"

#include <zero/stats.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <iterator>
#include <utility>

namespace zero {
namespace {

namespace cuda = kernels::cuda;

int64_t code_of(DType dtype) { return static_cast<int64_t>(dtype); }
int64_t code_of(ReduceOp op) { return static_cast<int64_t>(op); }

cuda::Elements elements_of(const kernels::Elements &elements) { return {elements.data, elements.scales, code_of(elements.dtype)}; }

template <class T>
int64_t nbytes_of(const std::vector<T> &values) {
  return Arena::view_nbytes(static_cast<int64_t>(values.size() * sizeof(T)));
}

/// Converts a piece, without its arrays.
cuda::UpdateSegment piece_of(const UpdateJob &job) {
  const kernels::UpdateSegment &from = job.piece;
  cuda::UpdateSegment piece;
  piece.param = elements_of(from.param);
  piece.master = elements_of(from.master);
  piece.grad = elements_of(from.grad);
  for (int state = 0; state < kernels::kMaxStates; ++state) piece.state[state] = elements_of(from.state[state]);
  piece.average = elements_of(from.average);
  piece.count = job.skips ? 0 : from.count;
  piece.first = from.first;
  piece.source_count = std::ssize(from.sources);
  piece.divisor = from.divisor;
  piece.replica_count = std::ssize(from.replicas);
  piece.peers_offset = from.peers_offset;
  piece.scalars = job.set;
  piece.updates = job.updates;
  piece.recipe = job.set;
  piece.average_count = job.skips && from.average.data != nullptr ? from.count : 0;
  piece.norms = job.norms;
  piece.form = cuda::form_of(piece);
  return piece;
}

/// Leaves the step at 0: it is part of the run's state on the device.
cuda::Recipe recipe_of(const UpdateJob &job, int32_t algorithm) {
  cuda::Recipe recipe{job.scalars.hyper, job.scalars.seed, algorithm, job.scalars.clip_value, job.scalars.stochastic ? 1 : 0};
  recipe.hyper.step = 0;
  return recipe;
}

template <class T>
bool same_bytes(const std::vector<T> &a, const std::vector<T> &b) {
  return a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

}  // namespace

Status DeviceKernels::allocate(const MemorySource &source, int64_t sources_nbytes) {
  source_ = source;
  ZERO_TRY(device_.load_kernels());
  ZERO_TRY(Arena::create_private(source, ZERO_MEMORY_STAGING, sizeof(Told), &told_));
  ZERO_TRY(device_.alloc_pinned(sizeof(Told), &read_));
  return Arena::create_private(source, ZERO_MEMORY_STAGING, sources_nbytes, &sources_);
}

void DeviceKernels::release() {
  told_.release();
  read_.reset();
  sources_.release();
  hashes_.release();
  chunks_.release();
  jobs_.release();
  graphs_jobs_.clear();
  recipes_.release();
  ratios_.release();
  sum_.release();
  launches_.clear();
}

void DeviceKernels::note(Status status) const {
  if (status.ok()) return;
  const std::lock_guard lock(failure_mutex_);
  if (failure_.ok()) failure_ = std::move(status);
}

Status DeviceKernels::status() const {
  const std::lock_guard lock(failure_mutex_);
  return failure_;
}

Status DeviceKernels::settle() const {
  note(device_.wait());
  return status();
}

bool DeviceKernels::all_within(const void *values, DType dtype, int64_t count, float limit) const {
  note(table_.all_within(device_.index(), values, code_of(dtype), count, limit, beyond(), device_.stream()), "looking at values");
  return true;
}

void DeviceKernels::copy(void *out, const void *values, DType dtype, int64_t count, int64_t) const {
  move(out, values, count * dtype_nbytes(dtype));
}

bool DeviceKernels::copy_within(void *out, const void *values, DType dtype, int64_t count, float limit, int64_t) const {
  note(table_.copy_within(device_.index(), out, values, code_of(dtype), count, limit, beyond(), device_.stream()), "copying values");
  return true;
}

void DeviceKernels::clear(void *out, int64_t nbytes) const { note(device_.clear(out, nbytes)); }

void DeviceKernels::convert(void *out, DType out_dtype, const void *values, DType dtype, int64_t count, int64_t) const {
  if (out_dtype == dtype) return copy(out, values, dtype, count);
  note(table_.convert(device_.index(), out, code_of(out_dtype), values, code_of(dtype), count, device_.stream()), "converting values");
}

void DeviceKernels::scale(float *out, const float *values, int64_t count, float factor) const {
  note(table_.scale(device_.index(), out, values, count, factor, device_.stream()), "scaling values");
}

void DeviceKernels::add(void *sum, DType sum_dtype, const void *values, DType dtype, int64_t count, float factor) const {
  note(table_.add(device_.index(), sum, code_of(sum_dtype), values, code_of(dtype), count, factor, device_.stream()), "adding values");
}

void DeviceKernels::add_squares(const void *values, DType dtype, int64_t count, kernels::ExactSum &) const {
  note(table_.add_squares(device_.index(), values, code_of(dtype), count, told()->found.squares, device_.stream()), "adding squares");
}

void DeviceKernels::follow(float *masters, const void *values, DType dtype, int64_t count) const {
  note(table_.follow(device_.index(), masters, values, code_of(dtype), count, device_.stream()), "masters that follow");
}

void DeviceKernels::encode(const kernels::Elements &codes, const void *values, DType dtype, int64_t count, bool may_skip) const {
  const cuda::Elements out = elements_of(codes);
  const kernels::StepState *run = may_skip ? &told()->run : nullptr;
  note(table_.encode(device_.index(), &out, values, code_of(dtype), count, run, device_.stream()), "encoding values");
}

void DeviceKernels::decode(void *out, DType dtype, const kernels::Elements &codes, int64_t count) const {
  const cuda::Elements from = elements_of(codes);
  note(table_.decode(device_.index(), out, code_of(dtype), &from, count, device_.stream()), "decoding values");
}

void DeviceKernels::agree(float *masters, const kernels::Elements &codes, int64_t count, Lead lead) const {
  const cuda::Elements given = elements_of(codes);
  const int32_t masters_lead = lead == Lead::masters ? 1 : 0;
  note(table_.agree(device_.index(), masters, &given, count, masters_lead, device_.stream()), "masters and codes that agree");
}

Status DeviceKernels::prepare_hashes(int64_t count) const {
  const int64_t nbytes = count * static_cast<int64_t>(sizeof(kernels::Bytes) + sizeof(uint64_t));
  if (nbytes <= hashes_.nbytes()) return {};
  ZERO_TRY(settle());
  return Arena::create_private(source_, ZERO_MEMORY_WORKSPACE, nbytes, &hashes_);
}

Status DeviceKernels::hash(std::span<const kernels::Bytes> ranges, uint64_t *out) const {
  if (ranges.empty()) return status();
  ZERO_TRY(prepare_hashes(std::ssize(ranges)));
  auto *there = reinterpret_cast<kernels::Bytes *>(hashes_.data());
  auto *made = reinterpret_cast<uint64_t *>(there + ranges.size());
  move(there, ranges.data(), static_cast<int64_t>(ranges.size_bytes()));
  note(table_.hash(device_.index(), there, std::ssize(ranges), made, device_.stream()), "hashing memory");
  move(out, made, static_cast<int64_t>(ranges.size() * sizeof *made));
  return settle();
}

bool DeviceKernels::find(const void *memory, bool *out_on_device) const {
  const Status found = device_.find_any(memory, out_on_device);
  note(found);
  return found.ok();
}

void DeviceKernels::move(void *out, const void *from, int64_t nbytes) const { note(device_.copy(out, from, nbytes)); }

bool DeviceKernels::passed() const {
  int32_t &flag = read()->found.flag;
  note(device_.copy(&flag, beyond(), sizeof flag));
  clear(beyond(), sizeof flag);
  return settle().ok() && flag == 0;
}

void DeviceKernels::finish_squares(kernels::ExactSum &sum) const {
  auto &squares = read()->found.squares;
  note(device_.copy(squares, told()->found.squares, sizeof squares));
  clear(told()->found.squares, sizeof squares);
  if (settle().ok()) sum.merge(kernels::ExactSum::import_limbs(squares));
}

cuda::Reduce DeviceKernels::call_of(const Reduction &reduction, const void *const *sources) {
  const DType out_dtype = reduction.out_dtype == DType{} ? reduction.dtype : reduction.out_dtype;
  return {reduction.out,   code_of(out_dtype),    sources,           reduction.source_count, code_of(reduction.dtype),
          reduction.count, code_of(reduction.op), reduction.divisor, reduction.weights};
}

/// Copies sources on the host to the device first.
void DeviceKernels::reduce(const Reduction &reduction) const {
  std::array<const void *, cuda::kMostSources> sources;
  std::array<bool, cuda::kMostSources> there{};
  const int64_t nbytes = reduction.count * dtype_nbytes(reduction.dtype);
  int64_t room_nbytes = 0;
  for (size_t i = 0; i < static_cast<size_t>(reduction.source_count); ++i) {
    if (!find(reduction.sources[i], &there[i])) return;
    if (!there[i]) room_nbytes += Arena::view_nbytes(nbytes);
  }
  if (sources_.nbytes() < room_nbytes && settle().ok()) {
    note(Arena::create_private(source_, ZERO_MEMORY_STAGING, room_nbytes, &sources_));
  }
  if (!status().ok()) return;
  std::byte *room = sources_.data();
  for (size_t i = 0; i < static_cast<size_t>(reduction.source_count); ++i) {
    sources[i] = reduction.sources[i];
    if (there[i]) continue;
    move(room, reduction.sources[i], nbytes);
    sources[i] = room;
    room += Arena::view_nbytes(nbytes);
  }
  const cuda::Reduce call = call_of(reduction, sources.data());
  note(table_.reduce(device_.index(), &call, beyond(), device_.stream()), "reducing contributions");
}

/// Lists the chunks of jobs by algorithm: one launch for each algorithm, or for each matrix job.
void DeviceKernels::list_chunks(std::span<const UpdateJob> jobs, std::vector<cuda::Chunk> &chunks) {
  for (size_t first = 0; first < jobs.size(); ++first) {
    const kernels::Algorithm *algorithm = jobs[first].algorithm;
    const auto same = [&](const Launch &launch) { return launch.algorithm == algorithm; };
    if (!algorithm->matrix && std::any_of(launches_.begin(), launches_.end(), same)) continue;
    Launch launch{algorithm, first, std::ssize(chunks), 0};
    for (size_t index = first; index < (algorithm->matrix ? first + 1 : jobs.size()); ++index) {
      if (jobs[index].algorithm != algorithm) continue;
      for (int64_t begin = 0; begin < jobs[index].piece.count; begin += cuda::kChunk)
        chunks.push_back({begin, static_cast<int64_t>(index)});
    }
    launch.chunk_count = std::ssize(chunks) - launch.first_chunk;
    launches_.push_back(launch);
  }
}

Status DeviceKernels::prepare(std::span<const UpdateJob> jobs) {
  std::vector<cuda::Chunk> chunks;
  launches_.clear();
  list_chunks(jobs, chunks);
  size_t sources = 0;
  size_t replicas = 0;
  size_t sets = 0;
  for (const UpdateJob &job : jobs) {
    sources += job.piece.sources.size();
    replicas += job.piece.replicas.size();
    sets = std::max(sets, static_cast<size_t>(job.set) + 1);
  }
  next_ = {std::vector<cuda::UpdateSegment>(jobs.size()), std::vector<const void *>(sources), std::vector<cuda::Elements>(replicas)};
  sent_ = next_;
  next_recipes_.assign(sets, {});
  sent_recipes_.assign(sets, {});
  warm_ = false;
  graphs_read_jobs_ = false;
  const int64_t nbytes = nbytes_of(next_.pieces) + nbytes_of(next_.sources) + nbytes_of(next_.replicas);
  counts_apart_ = !jobs.empty() && jobs[0].updates != nullptr;
  const auto scalars_nbytes = static_cast<int64_t>((counts_apart_ ? jobs.size() : sets) * sizeof(cuda::Scalars));
  ZERO_TRY(Arena::create_private(source_, ZERO_MEMORY_WORKSPACE, nbytes, &jobs_));
  ZERO_TRY(Arena::create_private(source_, ZERO_MEMORY_WORKSPACE, nbytes_of(next_recipes_) + scalars_nbytes, &recipes_));
  ZERO_TRY(Arena::create_private(source_, ZERO_MEMORY_WORKSPACE, nbytes_of(chunks), &chunks_));
  const auto any = [this](bool kernels::Algorithm::*kind) {
    return std::any_of(launches_.begin(), launches_.end(), [kind](const Launch &launch) { return launch.algorithm->*kind; });
  };
  const auto ratios_nbytes = static_cast<int64_t>(any(&kernels::Algorithm::layerwise) ? jobs.size() * sizeof(double) : 0);
  const auto sum_nbytes = static_cast<int64_t>(any(&kernels::Algorithm::matrix) ? sizeof(cuda::DirectionSum) : 0);
  ZERO_TRY(Arena::create_private(source_, ZERO_MEMORY_WORKSPACE, ratios_nbytes, &ratios_));
  ZERO_TRY(Arena::create_private(source_, ZERO_MEMORY_WORKSPACE, sum_nbytes, &sum_));
  ZERO_TRY(device_.copy(chunks_.data(), chunks.data(), static_cast<int64_t>(chunks.size() * sizeof(cuda::Chunk))));
  return device_.wait();
}

/// Writes pieces that contain addresses of the device's tables.
void DeviceKernels::write_jobs(std::span<const UpdateJob> jobs, Jobs &out) const {
  const std::byte *sources = jobs_.data() + nbytes_of(out.pieces);
  const std::byte *replicas = sources + nbytes_of(out.sources);
  size_t source = 0;
  size_t replica = 0;
  for (size_t index = 0; index < jobs.size(); ++index) {
    cuda::UpdateSegment &piece = out.pieces[index];
    piece = piece_of(jobs[index]);
    if (counts_apart_) piece.scalars = static_cast<int64_t>(index);
    if (piece.norms != nullptr) piece.trust_ratio = reinterpret_cast<double *>(ratios_.data()) + index;
    piece.sources = reinterpret_cast<const void *const *>(sources) + source;
    piece.replicas = reinterpret_cast<const cuda::Elements *>(replicas) + replica;
    for (const void *address : jobs[index].piece.sources) out.sources[source++] = address;
    for (const kernels::Replica &rank : jobs[index].piece.replicas) out.replicas[replica++] = elements_of(rank.param);
  }
  std::fill(out.sources.begin() + static_cast<int64_t>(source), out.sources.end(), nullptr);
  std::fill(out.replicas.begin() + static_cast<int64_t>(replica), out.replicas.end(), cuda::Elements{});
}

bool DeviceKernels::same_jobs() const {
  return same_bytes(next_.pieces, sent_.pieces) && same_bytes(next_.sources, sent_.sources) && same_bytes(next_.replicas, sent_.replicas);
}

/// Keeps the current table for captured graphs, and allocates another one for later steps.
bool DeviceKernels::leave_jobs_to_graphs(std::span<const UpdateJob> jobs) {
  Arena made;
  const Status status = Arena::create_private(source_, ZERO_MEMORY_WORKSPACE, jobs_.nbytes(), &made);
  note(status);
  if (!status.ok()) return false;
  graphs_jobs_.push_back(std::exchange(jobs_, std::move(made)));
  graphs_read_jobs_ = false;
  write_jobs(jobs, next_);
  return true;
}

/// Waits before it reuses the host copies, so that earlier transfers have ended.
bool DeviceKernels::send_jobs() {
  if (!settle().ok()) return false;
  std::swap(sent_, next_);
  std::byte *at = jobs_.data();
  const auto send = [&](const auto &values) {
    move(at, values.data(), static_cast<int64_t>(values.size() * sizeof(values[0])));
    at += nbytes_of(values);
  };
  send(sent_.pieces);
  send(sent_.sources);
  send(sent_.replicas);
  return status().ok();
}

/// Sends recipes that have changed. Recipes are zero at first, on the device and on the host.
void DeviceKernels::refresh(std::span<const UpdateJob> jobs) {
  for (const UpdateJob &job : jobs) next_recipes_[static_cast<size_t>(job.set)] = recipe_of(job, table_.algorithm(job.algorithm->name));
  constexpr size_t kMost = cuda::kMostPut / sizeof(cuda::Recipe);
  auto *there = reinterpret_cast<cuda::Recipe *>(recipes_.data());
  for (size_t set = 0; set < next_recipes_.size(); set += kMost) {
    const auto nbytes = static_cast<int64_t>(std::min(kMost, next_recipes_.size() - set) * sizeof(cuda::Recipe));
    if (std::memcmp(&next_recipes_[set], &sent_recipes_[set], static_cast<size_t>(nbytes)) == 0) continue;
    note(table_.put(device_.index(), there + set, &next_recipes_[set], nbytes, device_.stream()), "telling hyper-parameters");
  }
  sent_recipes_ = next_recipes_;
}

bool DeviceKernels::captured() const {
  bool captured = false;
  note(device_.captures(device_.stream(), &captured));
  return captured;
}

kernels::cuda::Scalars *DeviceKernels::scalars() const {
  return reinterpret_cast<cuda::Scalars *>(recipes_.data() + nbytes_of(next_recipes_));
}

cuda::Update DeviceKernels::call_of(const Launch &launch) const {
  const auto *chunks = reinterpret_cast<const cuda::Chunk *>(chunks_.data());
  return {reinterpret_cast<const cuda::UpdateSegment *>(jobs_.data()), chunks + launch.first_chunk, launch.chunk_count, scalars()};
}

bool DeviceKernels::tell_jobs(std::span<const UpdateJob> jobs) {
  const bool is_captured = captured();
  write_jobs(jobs, next_);
  if (!warm_ || !same_jobs()) {
    if (is_captured) note(Status::error(ZERO_E_STATE, "the pieces of a captured step are not those of the step before it"));
    if (is_captured) return false;
    if (graphs_read_jobs_ && !leave_jobs_to_graphs(jobs)) return false;
    if (!send_jobs()) return false;
  }
  graphs_read_jobs_ = graphs_read_jobs_ || is_captured;
  if (!is_captured) refresh(jobs);
  warm_ = true;
  prepare_scalars();
  return true;
}

void DeviceKernels::prepare_scalars() const {
  constexpr const char *kWhat = "preparing an update";
  const kernels::StepState *run = &told()->run;
  const auto *recipes = reinterpret_cast<const cuda::Recipe *>(recipes_.data());
  if (counts_apart_) {
    const auto *pieces = reinterpret_cast<const cuda::UpdateSegment *>(jobs_.data());
    note(table_.prepare_each(device_.index(), run, recipes, pieces, std::ssize(sent_.pieces), scalars(), device_.stream()), kWhat);
  } else {
    note(table_.prepare(device_.index(), run, recipes, std::ssize(next_recipes_), scalars(), device_.stream()), kWhat);
  }
}

void DeviceKernels::add_norms(std::span<const UpdateJob> jobs) {
  jobs_told_ = !jobs.empty() && tell_jobs(jobs);
  if (!jobs_told_) return;
  for (const Launch &launch : launches_) {
    const cuda::Update call = call_of(launch);
    if (launch.algorithm->layerwise) note(table_.lamb_norms(device_.index(), &call, device_.stream()), "adding norms of tensors");
  }
}

void DeviceKernels::update(std::span<const UpdateJob> jobs) {
  if (jobs.empty()) return;
  if (!std::exchange(jobs_told_, false) && !tell_jobs(jobs)) return;
  if (ratios_.nbytes() > 0) {
    const auto *pieces = reinterpret_cast<const cuda::UpdateSegment *>(jobs_.data());
    note(table_.lamb_trust_ratios(device_.index(), pieces, std::ssize(jobs), device_.stream()), "finding trust ratios");
  }
  for (const Launch &launch : launches_) {
    const cuda::Update call = call_of(launch);
    if (launch.algorithm->matrix) {
      update_matrix(jobs[launch.first_job], sent_.pieces[launch.first_job].scalars, call);
    } else {
      note(table_.update(device_.index(), table_.algorithm(launch.algorithm->name), &call, device_.stream()), "an update");
    }
  }
  move_averages();
}

/// Moves the averages of tensors that have no gradient in this step, for all algorithms.
void DeviceKernels::move_averages() const {
  const auto moves = [](const cuda::UpdateSegment &piece) { return piece.average_count > 0; };
  if (!counts_apart_ || std::none_of(sent_.pieces.begin(), sent_.pieces.end(), moves)) return;
  const Launch &last = launches_.back();
  const cuda::Update call = call_of({nullptr, 0, 0, last.first_chunk + last.chunk_count});
  note(table_.move_averages(device_.index(), &call, device_.stream()), "moving averages");
}

void DeviceKernels::update_matrix(const UpdateJob &job, int64_t scalars_index, const cuda::Update &update) const {
  if (job.skips) return;
  const auto steps = static_cast<int64_t>(job.scalars.hyper.newton_schulz_steps);
  const cuda::Matrix call{
      update, scalars() + scalars_index, job.rows, job.columns, steps, job.workspace, reinterpret_cast<cuda::DirectionSum *>(sum_.data())};
  note(table_.muon(device_.index(), &call, device_.stream()), "an update of a matrix");
}

}  // namespace zero
