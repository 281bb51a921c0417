/// @file SaveDescription: everything that a save holds, except the bytes: sections (an optimizer, a buffer), their tensors, the slots of
/// each and how ranks cut them, user tensors and texts. All ranks build the same one. Knows no files and no addresses.
#pragma once

#include "checkpoint/disk_type.h"
#include "core/partition.h"
#include "core/status.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace zero::checkpoint {

/// Texts by name. Their author writes integers in decimal and doubles as hexadecimal floats.
using Facts = std::map<std::string, std::string>;

/// Elements per entry of a slot that has one entry per tensor.
inline constexpr int64_t kPerTensor = int64_t{1} << 62;

enum class Placement {
  pieces,    ///< each rank's cut lies in its own state file
  whole,     ///< the slot lies whole in a model file, beside or as the parameter
  per_rank,  ///< every rank has all entries of its own: N copies, one in each state file
};

/// A slot of a tensor. The names are an open list: "param", "master", "first_moment", "residual", ...
struct SavedSlot {
  std::string name;
  DiskType type;         ///< of the file
  std::string true_type;  ///< the dtype if the file has no type for it ("f8_ue5m3" is stored as U8); empty otherwise
  int64_t per = 1;       ///< elements of the tensor per entry; kPerTensor: one entry for the tensor
  Placement placement = Placement::pieces;
  int64_t copy_entries = 0;  ///< per_rank: entries of one copy
};

struct SavedTensor {
  std::string name;
  std::vector<int64_t> shape;
  std::vector<SavedSlot> slots;  ///< none for a tied tensor
  std::string tied_to;           ///< name of the tensor that holds the values; empty otherwise
  Facts facts;                   ///< set, frozen, dtype that the caller sees, ...
  int64_t model_file = -1;       ///< of its whole slots; set by assign_model_files()

  int64_t count() const;  ///< elements
};

/// Things that one group of ranks cut together.
struct Section {
  std::string kind;    ///< "optimizer", "buffer" or "replica": the states of an optimizer's further replica
  std::string prefix;  ///< of all names in files: "" or "stage1."
  Facts facts;         ///< stage, algorithm, weights, hyper-parameters, scalars, ...
  int64_t rank_count = 1;
  std::vector<int64_t> state_files;  ///< state file (= checkpoint rank) of each rank; empty: 0 .. rank_count - 1
  std::vector<SavedTensor> tensors;
  /// First element of each rank's piece, per tensor rank_count + 1 numbers: rank r has [cuts[r], cuts[r + 1]). They rise from 0 to count.
  std::vector<int64_t> cuts;

  int64_t state_file(int64_t rank) const;
  /// Empty for a rank of the save that the section does not have.
  Range cut(int64_t tensor, int64_t rank) const;
};

enum class Scope {
  one,   ///< in extra.safetensors
  each,  ///< in each state file, named alike; the shape is the same on all ranks
};

/// A user tensor or a module buffer.
struct SavedExtra {
  std::string name;
  DiskType type;
  std::vector<int64_t> shape;
  Scope scope = Scope::one;
};

struct SaveDescription {
  uint64_t step = 0;
  std::string id;           ///< 32 hex digits, of this save
  std::string run_id;       ///< 32 hex digits, of the run: the first save's, taken over by load
  std::string previous_id;  ///< of the save before this one in the run; empty
  std::string created;      ///< UTC, for people
  std::string library;      ///< "libzero 0.1.0"
  int64_t rank_count = 1;   ///< ranks that commit together: number of state files
  int64_t model_file_count = 0;
  std::vector<Section> sections;
  std::vector<SavedExtra> extras;
  Facts texts;  ///< of the user
};

/// The name in files: prefix and name of the tensor, followed by the slot unless it is a whole "param".
std::string entry_name(const Section &section, const SavedTensor &tensor, const SavedSlot &slot);
/// True if the entry has the tensor's shape. Other entries have one dimension.
bool keeps_shape(const SavedSlot &slot);

/// For texts: "[11,256]".
std::string shape_text_of(const std::vector<int64_t> &shape);

/// The entries of a slot whose first element is within a range of elements of its tensor.
Range entries_of(const SavedSlot &slot, Range elements);
/// Counts the entries of the whole slot (of one copy, for per_rank).
int64_t entry_count(const SavedTensor &tensor, const SavedSlot &slot);

/// Deals tensors with whole slots to model files: contiguous runs in order of registration,
/// balanced by bytes over the ranks of their section, and cut before a file passes `most_nbytes` (a
/// larger tensor has a file of its own). Sets model_file of each and model_file_count.
/// (*out_writers)[f]: the state file (= checkpoint rank) of the rank that writes model file f.
void assign_model_files(SaveDescription *description, int64_t most_nbytes, std::vector<int64_t> *out_writers);

/// Checks names (length, characters, "__metadata__", doubles within a file), ids, limits, and that cuts rise from 0 to the count.
/// ZERO_E_INVALID_ARGUMENT.
Status check_description(const SaveDescription &description);

/// 32 random hex digits.
Status make_id(std::string *out);

}  // namespace zero::checkpoint
