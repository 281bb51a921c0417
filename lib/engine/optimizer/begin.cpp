/// @file begin: when parameters may take over first values.
#include "engine/optimizer/state_access.h"

#include "engine/optimizer/config_digest.h"

#include <string>

namespace zero {

Task StateAccess::begin(int32_t source) {
  ZERO_CO_TRY(parts_.guard.check_phase("zero_optimizer_begin", CallGuard::Phase::sealed, CallGuard::Phase::running));
  ZERO_CO_CHECK(parts_.acquired_count == 0, ZERO_E_STATE, "acquired parameters: %lld; zero_optimizer_param_release comes before begin",
                lld(parts_.acquired_count));
  ZERO_CO_CHECK(!parts_.gradients.any_acquired() && !parts_.gradients.started(), ZERO_E_STATE,
                "gradients of a step were acquired or given; zero_optimizer_step comes before begin");
  ZERO_CO_CHECK(
      source == ZERO_SOURCE_SHARDS || !parts_.buffers_params() || parts_.guard.phase() == CallGuard::Phase::sealed, ZERO_E_STATE,
      "in stage 3, and of 8-bit parameters, no rank holds whole values after the first begin; edit them with zero_optimizer_write "
      "and use ZERO_SOURCE_SHARDS");
  ZERO_CO_CHECK(
      source == ZERO_SOURCE_SHARDS || !parts_.first_values.edited_by_range(), ZERO_E_STATE,
      "parameters were given values by zero_optimizer_write or zero_optimizer_init_param, which lie with the ranks that own them; "
      "begin takes them over with ZERO_SOURCE_SHARDS");
  ZERO_CO_AWAIT(parts_.await_readers());
  const std::string text = std::string("source = ") + find_choice(kSources, source)->name + "\n";
  ZERO_CO_AWAIT(compare_texts(*parts_.groups.gather(), "ranks called zero_optimizer_begin with different sources", text));
  parts_.guard.changes_in("zero_optimizer_begin");
  ZERO_CO_AWAIT(parts_.first_values.take_over(source));
  if (parts_.settings.replicas.any() && source != ZERO_SOURCE_LOCAL) {
    parts_.groups.across()->set_caller(Caller::begin);
    ZERO_CO_AWAIT(parts_.replicas.take_first());
    ZERO_CO_AWAIT(parts_.gathers.gather(ParamGatherer::Buckets::all));
  }
  ZERO_CO_AWAIT(parts_.replicas.drop_exchange());
  parts_.replicas.meet();
  parts_.gradients.drop();
  parts_.gradients.reductions().forget();
  parts_.plan_next_step();
  parts_.guard.end_change();
  parts_.guard.enter(CallGuard::Phase::running);
  co_return parts_.verifier.move_window();
}

}  // namespace zero
