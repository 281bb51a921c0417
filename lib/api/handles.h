/// @file Handles: values that callers hold instead of addresses. A value names a slot of a table,
/// its generation and the kind of object. A stale, foreign or made-up value is detected without
/// accessing memory. Knows nothing of the objects.
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

/// Stores an object and returns its handle, which is never 0 and always odd, so that no pointer to
/// an object can equal it. Throws std::bad_alloc.
uint64_t insert_handle(Kind kind, std::shared_ptr<void> object);

/// Finds the object of a live handle of that kind. The returned reference keeps it alive if another
/// thread releases the handle meanwhile. `argument` is the parameter's name, for the text.
Status find_handle(Kind kind, uint64_t handle, const char *argument, std::shared_ptr<void> *out);

/// Calls act(object, argument) if the handle is live and of that kind, and returns whether it is.
/// Takes no lock, waits for nothing and makes no text, so that a signal handler may call it. `act`
/// must do the same.
bool reach_handle(Kind kind, uint64_t handle, void (*act)(void *object, void *argument), void *argument) noexcept;

/// Ends a handle and returns its object, so that it is destroyed outside of all locks. Otherwise as
/// find_handle.
Status remove_handle(Kind kind, uint64_t handle, const char *argument, std::shared_ptr<void> *out);

/// Releases the objects of all handles of a kind, as their release calls would have done.
void remove_handles(Kind kind);

/// Handles that are live now.
int64_t live_handles();

}  // namespace zero::api
