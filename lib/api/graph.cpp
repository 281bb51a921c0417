/// @file zero/graph.h.
#include "api/checks.h"
#include "api/nouns.h"
#include "api/structs.h"
#include "engine/optimizer/optimizer.h"

#include <zero/graph.h>

using namespace zero;

int32_t zero_optimizer_result(zero_optimizer *optimizer, void *stream, zero_step_result *out_result) {
  return api::call(optimizer, "optimizer", [&](Optimizer &object) -> Status {
    ZERO_TRY(object.check_stream(stream));
    ZERO_TRY(api::check_struct(out_result, "out_result"));
    zero_step_result result = {};
    ZERO_TRY(object.result(&result, stream));
    api::write_struct(result, out_result);
    return {};
  });
}

int32_t zero_optimizer_refresh(zero_optimizer *optimizer, void *stream) {
  return api::call(optimizer, "optimizer", [&](Optimizer &object) -> Status {
    ZERO_TRY(object.check_stream(stream));
    return object.refresh(stream);
  });
}

int32_t zero_optimizer_loss_scale_address(zero_optimizer *optimizer, void *stream, void **out_address) {
  return api::call(optimizer, "optimizer", [&](Optimizer &object) -> Status {
    ZERO_TRY(object.check_stream(stream));
    ZERO_TRY(api::check_pointer(out_address, "out_address"));
    return object.loss_scale_address(stream, out_address);
  });
}
