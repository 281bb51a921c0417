/// @file Leaving out what a failure does not need.
#include "tests/fuzz/shrink.h"

#include <utility>

namespace zero::test::fuzz {
namespace {

/// Tries items from the last to the first.
template <class T, class Try>
void leave_out(std::vector<T> &items, size_t least, Try &&still_fails) {
  for (size_t i = items.size(); i-- > 0 && items.size() > least;) {
    const std::vector<T> before = items;
    items.erase(items.begin() + static_cast<std::ptrdiff_t>(i));
    if (!still_fails()) items = before;
  }
}

/// The program without a tensor; others that are tied to it go as well.
Program without(Program program, int64_t gone) {
  const auto goes = [&program, gone](int64_t id) { return program.holder(id) == gone || id == gone; };
  std::vector<int64_t> ids;
  std::vector<Tensor> kept;
  for (int64_t id = 0; id < program.size(); ++id) {
    ids.push_back(goes(id) ? -1 : std::ssize(kept));
    if (!goes(id)) kept.push_back(program.tensor(id));
  }
  const auto renamed = [&ids](int64_t id) { return ids[static_cast<size_t>(id)]; };
  for (Tensor &tensor : kept) {
    if (tensor.tied_to < 0) continue;
    tensor.tied_to = renamed(tensor.tied_to);
    tensor.settings = {{ZERO_KEY_TIED_TO, tensor.tied_to}};
  }
  for (Step &step : program.steps) {
    const auto edits_gone = [&](const Edit &edit) {
      return (edit.kind == Edit::Kind::write || edit.kind == Edit::Kind::init) && renamed(edit.id) < 0;
    };
    std::erase_if(step.edits, edits_gone);
    for (Edit &edit : step.edits) {
      if (edit.kind == Edit::Kind::write || edit.kind == Edit::Kind::init) edit.id = renamed(edit.id);
    }
    std::erase_if(step.looked_at, [&](int64_t id) { return renamed(id) < 0; });
    for (int64_t &id : step.looked_at) id = renamed(id);
    for (MicroStep &micro : step.micro_steps) {
      for (std::vector<Piece> &pieces : micro.pieces) {
        std::erase_if(pieces, [&](const Piece &piece) { return renamed(piece.id) < 0; });
        for (Piece &piece : pieces) piece.id = renamed(piece.id);
      }
    }
  }
  program.tensors = std::move(kept);
  return program;
}

void shrink_tensors(Case &least, const std::function<bool()> &still_fails) {
  for (int64_t id = least.program.size(); id-- > 0;) {
    if (id >= least.program.size()) continue;
    const Program before = least.program;
    least.program = without(before, id);
    if (least.program.tensors.empty() || !still_fails()) least.program = before;
  }
  for (Tensor &tensor : least.program.tensors) leave_out(tensor.settings, tensor.tied_to < 0 ? 0 : 1, still_fails);
}

void shrink_steps(Case &least, const std::function<bool()> &still_fails) {
  leave_out(least.program.steps, 0, still_fails);
  for (Step &step : least.program.steps) {
    leave_out(step.micro_steps, 0, still_fails);
    leave_out(step.edits, 0, still_fails);
    leave_out(step.looked_at, 0, still_fails);
    for (MicroStep &micro : step.micro_steps) {
      for (std::vector<Piece> &pieces : micro.pieces) leave_out(pieces, 0, still_fails);
    }
  }
}

}  // namespace

Case shrink(Case failing, const std::function<bool(const Case &)> &fails) {
  const std::function<bool()> still_fails = [&] { return fails(failing); };
  if (const std::optional<Program> before = std::exchange(failing.beside, std::nullopt); before && !still_fails()) failing.beside = before;
  leave_out(failing.ways, 1, still_fails);
  for (Way &way : failing.ways) {
    const Way before = way;
    way.noise = 0;
    way.remakes_before = -1;
    if (!still_fails()) way = before;
  }
  for (int round = 0; round < 2; ++round) {
    shrink_steps(failing, still_fails);
    shrink_tensors(failing, still_fails);
    leave_out(failing.program.sets, 0, still_fails);
    leave_out(failing.program.settings, 0, still_fails);
    for (Way &way : failing.ways) leave_out(way.settings, 0, still_fails);
  }
  return failing;
}

std::string Case::text() const {
  std::string text = program.text() + (beside ? "beside " + beside->text() : "");
  for (const Way &way : ways) text += way.text();
  return text;
}

}  // namespace zero::test::fuzz
