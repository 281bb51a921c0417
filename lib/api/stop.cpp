/// @file zero/stop.h: functions that signal handlers may call.
#include "api/checks.h"
#include "api/nouns.h"
#include "engine/optimizer/optimizer.h"

#include <zero/stop.h>

using namespace zero;

namespace {

/// A stop request of a signal handler to an optimizer.
struct StopCall {
  int64_t reason;
  int32_t code;
};

void request_stop(void *object, void *argument) {
  auto *call = static_cast<StopCall *>(argument);
  call->code = forked() ? ZERO_E_FORKED : static_cast<Optimizer *>(object)->request_stop(call->reason);
}

}  // namespace

/// Passes no barrier: a signal handler may have interrupted this thread inside one, or while it
/// wrote an error text.
int32_t zero_optimizer_request_stop(zero_optimizer *optimizer, int64_t reason) {
  if (reason <= 0) return ZERO_E_INVALID_ARGUMENT;
  StopCall call = {reason, ZERO_E_BAD_HANDLE};
  (void)api::reach_handle(api::Kind::optimizer, api::handle_value(optimizer), request_stop, &call);
  return call.code;
}
