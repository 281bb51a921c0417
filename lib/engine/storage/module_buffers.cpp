/// @file Registering, laying out and synchronising module buffers.
#include "engine/storage/module_buffers.h"

#include "core/choice.h"
#include "core/number_text.h"
#include "engine/layout/params.h"
#include "group/collectives.h"

#include <algorithm>

namespace zero {
namespace {

bool is_float(DType dtype) { return dtype == DType::f32 || dtype == DType::f64 || dtype == DType::f16 || dtype == DType::bf16; }

constexpr const char *rule_name(int32_t rule) {
  switch (rule) {
    case ZERO_SYNC_AVERAGE:
      return "averaged";
    case ZERO_SYNC_BROADCAST:
      return "broadcast";
    default:
      return "not synchronised";
  }
}

}  // namespace

Status ModuleBuffers::add(const char *name, int32_t dtype, const int64_t *shape, int64_t ndim, int32_t rule, int64_t *out_id) {
  ZERO_TRY(check_tensor_name(name));
  const std::string shown = quoted_name(name);
  const auto type = static_cast<DType>(dtype);
  ZERO_TRY(check_choice(kArrayDtypes, dtype, (shown + ": dtype").c_str()));
  int64_t count = 0;
  ZERO_TRY(check_tensor_shape(shown.c_str(), shape, ndim, &count));
  ZERO_CHECK(rule >= ZERO_SYNC_NONE && rule <= ZERO_SYNC_BROADCAST, ZERO_E_INVALID_ARGUMENT,
             "%s: rule is %d, but must be a zero_sync (0 .. 2)", shown.c_str(), rule);
  ZERO_CHECK(rule != ZERO_SYNC_AVERAGE || is_float(type), ZERO_E_UNSUPPORTED,
             "%s: rule is ZERO_SYNC_AVERAGE, which needs f32, f64, f16 or bf16, but the dtype is %s; use ZERO_SYNC_BROADCAST",
             shown.c_str(), dtype_name(type));
  ZERO_CHECK(!has(name), ZERO_E_INVALID_ARGUMENT, "a module buffer with the name %s was added before; names must be unique", shown.c_str());
  int64_t before = 0;
  for (const ModuleBuffer &buffer : buffers_) before += buffer.count;
  ZERO_CHECK(count <= kMostElements - before, ZERO_E_INVALID_ARGUMENT, "%s: all module buffers together have more than %s elements",
             shown.c_str(), bound_text(kMostElements).c_str());
  buffers_.push_back({name, type, std::vector<int64_t>(shape, shape + ndim), count, rule});
  *out_id = size() - 1;
  return {};
}

bool ModuleBuffers::has(std::string_view name) const {
  return std::any_of(buffers_.begin(), buffers_.end(), [name](const ModuleBuffer &buffer) { return buffer.name == name; });
}

Status ModuleBuffers::check_id(int64_t id) const { return check_index(id, size(), "id", "module buffers"); }

std::string ModuleBuffers::text() const {
  std::string text;
  for (size_t id = 0; id < buffers_.size(); ++id) {
    const ModuleBuffer &buffer = buffers_[id];
    text += "module buffer " + std::to_string(id) + " " + quoted_name(buffer.name) + " " + dtype_name(buffer.dtype) + "[";
    for (size_t i = 0; i < buffer.shape.size(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(buffer.shape[i]);
    text += std::string("] ") + rule_name(buffer.rule) + "\n";
  }
  return text;
}

Status ModuleBuffers::allocate(const MemorySource &source) {
  if (buffers_.empty()) return {};
  std::vector<ModuleBuffer *> order;
  int64_t nbytes = 0;
  for (ModuleBuffer &buffer : buffers_) {
    if (buffer.count == 0) continue;
    order.push_back(&buffer);
    nbytes += Arena::view_nbytes(buffer.nbytes());
  }
  std::stable_sort(order.begin(), order.end(), [](const ModuleBuffer *a, const ModuleBuffer *b) {
    return a->rule != b->rule ? a->rule < b->rule : a->dtype < b->dtype;
  });
  ZERO_TRY(Arena::create_private(source, ZERO_MEMORY_MODULE_BUFFER, nbytes, &arena_));
  for (ModuleBuffer *buffer : order) {
    const int64_t taken = Arena::view_nbytes(buffer->nbytes());
    buffer->data = arena_.take(taken);
    const bool joins = !runs_.empty() && runs_.back().rule == buffer->rule && runs_.back().dtype == buffer->dtype;
    if (!joins) runs_.push_back({buffer->rule, buffer->dtype, buffer->data, 0});
    runs_.back().nbytes += taken;
  }
  return {};
}

void ModuleBuffers::release() {
  for (ModuleBuffer &buffer : buffers_) buffer.data = nullptr;
  runs_.clear();
  arena_.release();
}

int64_t ModuleBuffers::formula_nbytes() const {
  int64_t nbytes = 0;
  for (const ModuleBuffer &buffer : buffers_) nbytes += buffer.nbytes();
  return nbytes;
}

/// Padding between buffers is zero on every rank and stays so.
Task ModuleBuffers::sync(Group &group) const {
  if (group.size() == 1) co_return Status();
  for (const Run &run : runs_) {
    if (run.rule == ZERO_SYNC_AVERAGE) {
      ZERO_CO_AWAIT(all_reduce(group, run.data, run.data, run.nbytes / dtype_nbytes(run.dtype), run.dtype, ReduceOp::avg));
    }
    if (run.rule == ZERO_SYNC_BROADCAST) ZERO_CO_AWAIT(broadcast(group, run.data, run.nbytes, DType::u8, 0));
  }
  co_return Status();
}

}  // namespace zero
