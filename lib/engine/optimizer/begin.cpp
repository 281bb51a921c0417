/// @file begin: when parameters may take over first values.
#include "engine/optimizer/optimizer.h"

#include "engine/optimizer/sealed_text.h"

#include <string>

namespace zero {

Task Optimizer::begin(int32_t source) { return guard_.run(begin_body(source), Caller::begin); }

Task Optimizer::begin_body(int32_t source) {
  ZERO_CO_TRY(guard_.check_phase("zero_optimizer_begin", Phase::sealed, Phase::running));
  ZERO_CO_CHECK(acquired_count_ == 0, ZERO_E_STATE, "acquired parameters: %lld; zero_optimizer_param_release comes before begin",
                lld(acquired_count_));
  ZERO_CO_CHECK(!gradients_.any_acquired() && !gradients_.started(), ZERO_E_STATE,
                "gradients of a step were acquired or given; zero_optimizer_step comes before begin");
  ZERO_CO_CHECK(
      source == ZERO_SOURCE_SHARDS || !buffers_params() || guard_.phase() == Phase::sealed, ZERO_E_STATE,
      "in stage 3, and of 8-bit parameters, no rank holds whole values after the first begin; edit them with zero_optimizer_write "
      "and use ZERO_SOURCE_SHARDS");
  ZERO_CO_CHECK(
      source == ZERO_SOURCE_SHARDS || !first_values_.edited_by_range(), ZERO_E_STATE,
      "parameters were given values by zero_optimizer_write or zero_optimizer_init_param, which lie with the ranks that own them; "
      "begin takes them over with ZERO_SOURCE_SHARDS");
  ZERO_CO_AWAIT(await_readers());
  const std::string text = std::string("source = ") + find_choice(kSources, source)->name + "\n";
  ZERO_CO_AWAIT(compare_texts(*groups_.gather(), "ranks called zero_optimizer_begin with different sources", text));
  guard_.changes_in("zero_optimizer_begin");
  ZERO_CO_AWAIT(first_values_.take_over(source));
  if (settings_.replicas.any() && source != ZERO_SOURCE_LOCAL) {
    groups_.across()->set_caller(Caller::begin);
    ZERO_CO_AWAIT(replicas_.take_first());
    ZERO_CO_AWAIT(gathers_.gather(ParamGathers::Buckets::all));
  }
  replicas_.meet();
  gradients_.residuals().forget();
  plan_next_step();
  guard_.end_change();
  guard_.enter(Phase::running);
  co_return verifier_.move_window();
}

}  // namespace zero
