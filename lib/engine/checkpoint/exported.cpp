/// @file Lists the exported tensors, and reads their bytes.
#include "engine/checkpoint/exported.h"

#include "engine/checkpoint/load_values.h"
#include "engine/checkpoint/saved_names.h"
#include "kernels/convert.h"

#include <algorithm>

namespace zero {
namespace {

using checkpoint::SaveDescription;
using checkpoint::SavedSlot;
using checkpoint::SavedTensor;

int64_t slot_at(const SavedTensor &tensor, const char *name) {
  int64_t index = -1;
  find_slot(tensor, name, &index);
  return index;
}

/// Chooses the parameter if it has that dtype, otherwise its most exact value: the fp32 master,
/// bf16 and remainder, or codes and scales.
ExportedTensor choose(const SavedTensor &tensor, int32_t dtype) {
  ExportedTensor chosen{-1, -1, slot_at(tensor, "param")};
  const SavedSlot &param = tensor.slots[static_cast<size_t>(chosen.slot)];
  const auto wanted = static_cast<DType>(dtype);
  if (dtype == ZERO_EXPORT_AS_KEPT || param.type == checkpoint::disk_type_of(wanted)) return chosen;
  chosen.copied = false;
  chosen.dtype = wanted;
  const int64_t master = slot_at(tensor, "master");
  if (master >= 0 && tensor.slots[static_cast<size_t>(master)].type == checkpoint::DiskType::f32) {
    chosen.slot = master;
    chosen.copied = wanted == DType::f32;
  } else {
    chosen.second = master >= 0 ? master : slot_at(tensor, "param_scale");
  }
  return chosen;
}

void add_tensor(const std::string &name, const SavedTensor &tensor, ExportedTensor chosen, ExportedTensors *out) {
  const checkpoint::DiskType kept = tensor.slots[static_cast<size_t>(chosen.slot)].type;
  out->names.push_back({name, chosen.copied ? kept : checkpoint::disk_type_of(chosen.dtype), tensor.shape});
  out->tensors.push_back(chosen);
}

}  // namespace

void list_exported(const SaveDescription &description, int32_t dtype, ExportedTensors *out) {
  for (size_t s = 0; s < description.sections.size(); ++s) {
    const checkpoint::Section &section = description.sections[s];
    for (size_t t = 0; t < section.tensors.size() && section.kind == "optimizer"; ++t) {
      const SavedTensor &tensor = section.tensors[t];
      const std::string name = section.prefix + tensor.name;
      if (!tensor.tied_to.empty()) {
        out->ties.emplace(name, section.prefix + tensor.tied_to);
        continue;
      }
      ExportedTensor chosen = choose(tensor, dtype);
      chosen.section = static_cast<int64_t>(s);
      chosen.tensor = static_cast<int64_t>(t);
      add_tensor(name, tensor, chosen, out);
      const int64_t scales = slot_at(tensor, "param_scale");
      if (scales < 0 || dtype != ZERO_EXPORT_AS_KEPT) continue;
      chosen.slot = scales;
      add_tensor(name + ":param_scale", tensor, chosen, out);
      out->names.back().shape = {checkpoint::entry_count(tensor, tensor.slots[static_cast<size_t>(scales)])};
    }
  }
}

const SavedTensor &ExportedSource::saved(const ExportedTensor &tensor) const {
  return description_.sections[static_cast<size_t>(tensor.section)].tensors[static_cast<size_t>(tensor.tensor)];
}

const SavedSlot &ExportedSource::slot(const ExportedTensor &tensor, int64_t slot) const {
  return saved(tensor).slots[static_cast<size_t>(slot)];
}

bool ExportedSource::has(const ExportedTensor &tensor, int64_t slot) const {
  return things_.has(description_, {tensor.section, tensor.tensor, slot, -1, 0, 0});
}

/// Reads entries of a slot from `first` on.
Status ExportedSource::fetch(const ExportedTensor &tensor, int64_t slot_number, int64_t first, std::span<std::byte> out) const {
  if (out.empty()) return {};
  ZERO_TRY(work_.advance(0));  // cancelled work must no longer read the caller's memory
  if (has(tensor, slot_number)) return things_.copy(description_, tensor.section, tensor.tensor, slot_number, first, out);
  const int64_t each = checkpoint::disk_type_nbytes(slot(tensor, slot_number).type);
  return work_.wish({tensor.section, tensor.tensor, slot_number, first, std::ssize(out) / each, out.data()});
}

Status ExportedSource::copy(int64_t number, int64_t offset, std::span<std::byte> out) {
  const ExportedTensor &tensor = exported_.tensors[static_cast<size_t>(number)];
  if (tensor.copied) return fetch(tensor, tensor.slot, offset / checkpoint::disk_type_nbytes(slot(tensor, tensor.slot).type), out);
  const int64_t each = dtype_nbytes(tensor.dtype);
  const Range all = {offset / each, (offset + std::ssize(out)) / each};
  for (int64_t begin = all.begin; begin < all.end;) {
    // Pieces end on a line, so that codes and their scales are read once.
    const int64_t end = std::min(all.end, (begin + kValuePiece) / kLine * kLine);
    const auto at = static_cast<size_t>((begin - all.begin) * each);
    ZERO_TRY(make_values(tensor, {begin, end}, out.subspan(at, static_cast<size_t>((end - begin) * each))));
    begin = end;
  }
  return {};
}

/// Makes the values of elements, rounded once. Codes are read from the start of the line of their
/// scale.
Status ExportedSource::make_values(const ExportedTensor &tensor, Range elements, std::span<std::byte> out) const {
  const int64_t begin = elements.begin / kLine * kLine;
  ValueSource source;
  source.values.entries = {begin, elements.end};
  std::vector<std::byte> bytes[2];
  DType dtypes[2] = {};
  const int64_t slots[2] = {tensor.slot, tensor.second};
  for (size_t i = 0; i < 2; ++i) {
    if (slots[i] < 0) continue;
    const SavedSlot &from = slot(tensor, slots[i]);
    const Range entries = checkpoint::entries_of(from, source.values.entries);
    bytes[i].resize(static_cast<size_t>(entries.count() * checkpoint::disk_type_nbytes(from.type)));
    dtype_in(from, &dtypes[i]);
    ZERO_TRY(fetch(tensor, slots[i], entries.begin, bytes[i]));
  }
  source.dtype = dtypes[0];
  source.has_second = tensor.second >= 0;
  std::vector<float> values;
  widen_values(source, bytes[0], bytes[1], &values);
  kernels::narrow(kernels::active(), out.data(), tensor.dtype, values.data() + (elements.begin - begin), elements.count());
  return {};
}

int64_t ExportedSource::wishes_nbytes(const std::vector<int64_t> &tensors) const {
  int64_t nbytes = 0;
  for (const int64_t number : tensors) {
    const ExportedTensor &tensor = exported_.tensors[static_cast<size_t>(number)];
    for (const int64_t slot_number : {tensor.slot, tensor.second}) {
      if (slot_number < 0 || has(tensor, slot_number)) continue;
      const SavedSlot &from = slot(tensor, slot_number);
      nbytes += checkpoint::entry_count(saved(tensor), from) * checkpoint::disk_type_nbytes(from.type);
    }
  }
  return nbytes;
}

}  // namespace zero
