/// @file Lists the saved things, and finds their bytes.
#include "engine/checkpoint/saved_things.h"

#include "core/choice.h"
#include "core/number_text.h"
#include "core/utf8.h"
#include "engine/checkpoint/carried_sections.h"

#include <zero/checkpoint.h>

#include <algorithm>
#include <cstring>

namespace zero {
namespace {

using checkpoint::EntrySource;
using checkpoint::Placement;
using checkpoint::SaveDescription;
using checkpoint::SavedSlot;
using checkpoint::SavedTensor;
using checkpoint::Scope;
using checkpoint::Section;

constexpr size_t kMostTextNbytes = 65'536;
constexpr size_t kMostPrefixNbytes = 255;
constexpr const char *kData = "data";  ///< the slot of a buffer

constexpr Choice kScopes[] = {{ZERO_SCOPE_ONE, "ZERO_SCOPE_ONE"}, {ZERO_SCOPE_EACH, "ZERO_SCOPE_EACH"}};

Status check_utf8(const char *what, const std::string &text, size_t least, size_t most) {
  ZERO_CHECK(text.size() >= least && text.size() <= most, ZERO_E_INVALID_ARGUMENT, "%s has %zu bytes, but must have %zu to %zu", what,
             text.size(), least, most);
  const size_t valid = valid_nbytes(text.data(), text.size());
  ZERO_CHECK(valid == text.size(), ZERO_E_INVALID_ARGUMENT, "%s is not UTF-8: byte %zu is 0x%02x", what, valid,
             static_cast<unsigned char>(text[valid]));
  return {};
}

/// A buffer whose values may differ between ranks is saved once per rank.
Scope scope_of(const ModuleBuffer &buffer) { return buffer.rule == ZERO_SYNC_BROADCAST ? Scope::one : Scope::each; }

Section describe_buffer(const SavedThings::SavedBuffer &thing, int64_t ranks, const Cuts &cuts) {
  Section section;
  section.kind = "buffer";
  section.rank_count = ranks;
  SavedTensor tensor;
  tensor.name = thing.name;
  tensor.shape = {thing.buffer->count()};
  SavedSlot slot;
  slot.name = kData;
  slot.type = checkpoint::disk_type_of(thing.buffer->dtype());
  tensor.slots.push_back(std::move(slot));
  section.tensors.push_back(std::move(tensor));
  section.cuts.push_back(0);
  for (const Range &cut : cuts) section.cuts.push_back(std::max(cut.end, section.cuts.back()));
  return section;
}

}  // namespace

Status SavedThings::check_name(const char *what, const std::string &name) const {
  const auto has_name = [&name](const auto &thing) { return thing.name == name; };
  ZERO_CHECK(std::none_of(buffers_.begin(), buffers_.end(), has_name) && std::none_of(tensors_.begin(), tensors_.end(), has_name),
             ZERO_E_INVALID_ARGUMENT, "%s %s was added before; names must be unique in a checkpoint", what, quoted_name(name).c_str());
  return {};
}

/// The ranks must have the same numbers in both groups, so that a rank's own file holds its shard.
Status SavedThings::check_group(const char *what, const Group &group) const {
  ZERO_CHECK(group.size() == group_->size() && group.rank() == group_->rank(), ZERO_E_UNSUPPORTED,
             "%s is rank %lld of %lld in its group, but rank %lld of %lld in the group of the checkpoint; both must have the same ranks",
             what, lld(group.rank()), lld(group.size()), lld(group_->rank()), lld(group_->size()));
  return {};
}

Status SavedThings::add_optimizer(const std::string &prefix, std::shared_ptr<Optimizer> optimizer) {
  ZERO_TRY(check_utf8("prefix", prefix, 0, kMostPrefixNbytes));
  ZERO_TRY(check_group("the optimizer", *optimizer->group()));
  for (const SavedOptimizer &other : optimizers_) {
    ZERO_CHECK(other.prefix != prefix, ZERO_E_INVALID_ARGUMENT, "prefix is \"%s\", which another optimizer of this checkpoint has",
               prefix.c_str());
    ZERO_CHECK(&other.state.optimizer() != optimizer.get(), ZERO_E_INVALID_ARGUMENT, "this optimizer was added before, with prefix \"%s\"",
               other.prefix.c_str());
  }
  optimizers_.push_back({prefix, SavedState(std::move(optimizer))});
  return {};
}

Status SavedThings::add_buffer(const char *name, std::shared_ptr<Buffer> buffer) {
  ZERO_TRY(check_tensor_name(name));
  ZERO_TRY(check_name("a buffer or tensor named", name));
  ZERO_TRY(check_group("the buffer", *buffer->group()));
  buffers_.push_back({name, std::move(buffer)});
  return {};
}

Status SavedThings::add_tensor(const char *name, int32_t dtype, const int64_t *shape, int64_t ndim, void *data, int32_t scope) {
  int64_t count = 0;
  ZERO_TRY(check_tensor_name(name));
  ZERO_TRY(check_choice(kArrayDtypes, dtype, "dtype"));
  ZERO_TRY(check_tensor_shape(quoted_name(name).c_str(), shape, ndim, &count));
  ZERO_TRY(check_choice(kScopes, scope, "scope"));
  ZERO_CHECK(data != nullptr || count == 0, ZERO_E_INVALID_ARGUMENT, "data is NULL, but tensor %s has %s", quoted_name(name).c_str(),
             count_text(count, "element").c_str());
  ZERO_TRY(check_name("a buffer or tensor named", name));
  std::vector<int64_t> dims;
  if (ndim > 0) dims.assign(shape, shape + ndim);
  tensors_.push_back({name, static_cast<DType>(dtype), std::move(dims), count, scope == ZERO_SCOPE_ONE ? Scope::one : Scope::each,
                      static_cast<std::byte *>(data)});
  return {};
}

Status SavedThings::set_text(const char *key, const char *text) {
  ZERO_TRY(check_utf8("key", key, 1, kMostPrefixNbytes));
  if (text == nullptr) {
    texts_.erase(key);
    return {};
  }
  ZERO_TRY(check_utf8("text", text, 0, kMostTextNbytes));
  texts_[key] = text;
  return {};
}

Status SavedThings::get_text(const char *key, std::string *out) const {
  ZERO_TRY(check_utf8("key", key, 1, kMostPrefixNbytes));
  const auto found = texts_.find(key);
  ZERO_CHECK(found != texts_.end(), ZERO_E_NOT_FOUND, "key \"%s\" has no text in this checkpoint", key);
  *out = found->second;
  return {};
}

std::vector<SavedThings::Extra> SavedThings::extras() const {
  std::vector<Extra> extras;
  for (const SavedOptimizer &each : optimizers_) {
    const ModuleBuffers &buffers = each.state.module_buffers();
    for (int64_t id = 0; id < buffers.size(); ++id) {
      const ModuleBuffer &buffer = buffers[id];
      extras.push_back({each.prefix + buffer.name + ":buffer", buffer.dtype, buffer.shape, buffer.count, scope_of(buffer), buffer.data});
    }
  }
  extras.insert(extras.end(), tensors_.begin(), tensors_.end());
  return extras;
}

std::string SavedThings::text() const {
  std::string text;
  for (const SavedOptimizer &each : optimizers_) text += "an optimizer with prefix \"" + each.prefix + "\"\n";
  for (const SavedBuffer &each : buffers_)
    text += "buffer " + quoted_name(each.name) + " of " + count_text(each.buffer->count(), "element") + "\n";
  for (const Extra &extra : extras()) {
    text += "tensor " + quoted_name(extra.name) + " " + dtype_name(extra.dtype) + (extra.scope == Scope::one ? " one" : " each");
    for (const int64_t extent : extra.shape) text += " " + std::to_string(extent);
    text += "\n";
  }
  return text;
}

void SavedThings::describe(bool model_files, SaveDescription *out) const {
  for (const SavedOptimizer &each : optimizers_) {
    Section section;
    section.prefix = each.prefix;
    each.state.describe(model_files, &section);
    out->sections.push_back(std::move(section));
  }
  for (const SavedBuffer &each : buffers_) out->sections.push_back(describe_buffer(each, group_->size(), each.buffer->cuts()));
  for (const SavedOptimizer &each : optimizers_) {
    for (int64_t set = 1; set < each.state.state_set_count(); ++set) {
      Section section;
      each.state.describe_set(each.prefix, set, &section);
      out->sections.push_back(std::move(section));
    }
  }
  for (const SavedOptimizer &each : optimizers_) describe_carried(each.state, each.prefix, &out->sections);
  for (const Extra &extra : extras())
    out->extras.push_back({extra.name, checkpoint::disk_type_of(extra.dtype), extra.shape, extra.scope});
  out->rank_count = group_->size();
  out->texts = texts_;
}

/// The order of sections: optimizers, buffers, further sets of states, carried values. The last may
/// be gone by the time at which a save reads their copies.
const SavedState *SavedThings::state(int64_t section) const {
  if (section >= 0 && section < std::ssize(optimizers_)) return &optimizers_[static_cast<size_t>(section)].state;
  section -= std::ssize(optimizers_) + std::ssize(buffers_);
  for (const SavedOptimizer &each : optimizers_) {
    const int64_t sets = each.state.state_set_count() - 1;
    if (section >= 0 && section < sets) return &each.state;
    section -= sets;
  }
  return nullptr;
}

bool SavedThings::has(const SaveDescription &description, const EntrySource &entry) const {
  const SavedState *optimizer = state(entry.section);
  if (optimizer == nullptr || entry.rank >= 0) return true;
  const SavedTensor &tensor = description.sections[static_cast<size_t>(entry.section)].tensors[static_cast<size_t>(entry.tensor)];
  return optimizer->holds_whole(entry.tensor, slot_of_disk_name(tensor.slots[static_cast<size_t>(entry.slot)].name));
}

Status SavedThings::copy(const SaveDescription &description, int64_t section, int64_t tensor, int64_t slot, int64_t first,
                         std::span<std::byte> out) const {
  if (const SavedState *optimizer = state(section)) {
    const SavedTensor &saved = description.sections[static_cast<size_t>(section)].tensors[static_cast<size_t>(tensor)];
    return optimizer->copy(tensor, slot_of_disk_name(saved.slots[static_cast<size_t>(slot)].name), first, out);
  }
  for (const SavedOptimizer &each : optimizers_) {
    const auto kind = carried_in(description.sections[static_cast<size_t>(section)], each.prefix);
    if (kind.has_value()) return copy_carried(each.state, *kind, tensor, first, out);
  }
  const Buffer &buffer = *buffers_[static_cast<size_t>(section) - optimizers_.size()].buffer;
  const Buffer::Shard shard = buffer.shard();
  const auto *data = static_cast<const std::byte *>(shard.data) + (first - shard.offset) * dtype_nbytes(buffer.dtype());
  if (!out.empty()) std::memcpy(out.data(), data, out.size());
  return {};
}

}  // namespace zero
