/// @file Handles: what callers hold instead of addresses. A value names a slot of a table, its generation and the kind of object, so that a
/// stale, foreign or made-up one is found out without touching memory. Knows nothing of what the objects do.
#pragma once

#include "core/status.h"

#include <cstdint>
#include <memory>

namespace zero::api {

/// Kinds of objects; the number is part of the value.
enum class Kind : uint64_t {
  none = 0,
  config = 1,
  group = 2,
  buffer = 3,
  optimizer = 4,
  request = 5,
  checkpoint = 6,
  save = 7,
  server = 8
};

/// "zero_group".
const char *kind_name(Kind kind);

/// Takes an object in and returns its handle, which is never 0 and always odd, so that no pointer to an object can equal it.
/// Throws std::bad_alloc.
uint64_t insert_handle(Kind kind, std::shared_ptr<void> object);

/// The object of a live handle of that kind. The caller's reference keeps it alive when another thread releases the handle meanwhile.
/// `argument` is the parameter's name, for the text.
Status find_handle(Kind kind, uint64_t handle, const char *argument, std::shared_ptr<void> *out);

/// Calls act(object, argument) where the handle is live and of that kind, and says whether it is. Takes no lock, waits for nothing and makes
/// no text, so that a signal handler may call it; `act` must keep to the same.
bool reach_handle(Kind kind, uint64_t handle, void (*act)(void *object, void *argument), void *argument) noexcept;

/// Ends a handle and hands its object over, so that it is destroyed outside of all locks. As find_handle otherwise.
Status remove_handle(Kind kind, uint64_t handle, const char *argument, std::shared_ptr<void> *out);

/// Lets go of the objects of all handles of a kind, as their releases would have.
void remove_handles(Kind kind);

/// Handles that are live now.
int64_t live_handles();

}  // namespace zero::api
