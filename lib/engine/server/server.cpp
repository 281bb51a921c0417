/// @file Phases and roles of a server object.
#include "engine/server/server.h"

#include "engine/optimizer/config_digest.h"
#include "group/collectives/agreement.h"

#include <utility>

namespace zero {

Status Server::create(std::shared_ptr<Group> group, const Config &config, int64_t count, std::shared_ptr<Server> *out) {
  ServerSettings settings;
  ZERO_TRY(read_server_settings(config, group->size(), count, &settings));
  settings.threads = host_threads(config, group->place());
  out->reset(new Server(std::move(group), std::move(settings)));
  return {};
}

Status Server::check_role(const char *function, bool server) const {
  ZERO_CHECK(serves() == server, ZERO_E_STATE, "rank %lld is a %s, but %s is a call of %s (ZERO_KEY_SERVER_RANKS is %lld)",
             lld(group_->rank()), serves() ? "server" : "worker", function, server ? "servers" : "workers", lld(settings_.server_count));
  return {};
}

Status Server::check_phase(const char *function, Phase phase) const {
  ZERO_TRY(failure_);
  ZERO_CHECK(phase_ != Phase::created || phase == Phase::created, ZERO_E_STATE, "%s needs a sealed object; call zero_server_seal first",
             function);
  ZERO_CHECK(phase != Phase::created || phase_ == Phase::created, ZERO_E_STATE, "%s was called before on this object", function);
  ZERO_CHECK(phase_ != Phase::ended || phase == Phase::ended, ZERO_E_STATE, "%s comes too late: %s", function,
             serves() ? "zero_server_run has ended" : "this worker has left");
  ZERO_CHECK(phase != Phase::ended || phase_ == Phase::ended, ZERO_E_STATE, "%s comes too early; call zero_server_run first", function);
  return {};
}

Status Server::keep(Status status) {
  if (!status.ok()) failure_ = status;
  return status;
}

Task Server::seal() {
  ZERO_CO_TRY(check_phase("zero_server_seal", Phase::created));
  co_return co_await seal_body();
}

/// Runs in the turn of the group's own collectives.
Task Server::seal_body() {
  const CallerScope scope(*group_, Caller::server_seal);
  ZERO_CO_AWAIT(compare_texts(*group_, "ranks were sealed with different counts or configurations", settings_.text()));
  ZERO_CO_AWAIT(agree_on(*group_, allocate(), "zero_server_seal"));
  ZERO_CO_AWAIT(links_.open(*group_, settings_.server_count));
  if (serves()) {
    serving_.emplace(settings_, links_, *held_, group_->rank());
  } else {
    calls_.emplace(links_, parts_, group_->rank(), settings_.staleness);
  }
  phase_ = Phase::sealed;
  co_return Status();
}

Status Server::allocate() {
  const Weights weights(settings_.server_count);
  parts_.clear();
  for (int64_t server = 0; server < settings_.server_count; ++server) parts_.push_back(weights.shard({0, settings_.count}, server));
  if (!serves()) return {};
  held_.emplace(settings_);
  return held_->allocate(parts_[static_cast<size_t>(group_->rank())]);
}

Status Server::shard(Shard *out) const {
  ZERO_TRY(check_role("zero_server_shard", true));
  ZERO_CHECK(phase_ != Phase::created, ZERO_E_STATE, "zero_server_shard needs a sealed object; call zero_server_seal first");
  *out = {held_->range().empty() ? nullptr : held_->params(), held_->range()};
  return {};
}

Status Server::replay(std::span<const uint16_t> record) {
  ZERO_TRY(check_role("zero_server_replay", true));
  ZERO_TRY(check_phase("zero_server_replay", Phase::sealed));
  ZERO_CHECK(!settings_.round_robin, ZERO_E_STATE,
             "zero_server_replay needs ZERO_SERVER_ORDER_ARRIVAL; with ZERO_SERVER_ORDER_ROUND_ROBIN the order is always the same");
  return serving_->order().follow(record);
}

Status Server::record(std::span<const uint16_t> *out) const {
  ZERO_TRY(check_role("zero_server_record", true));
  ZERO_TRY(check_phase("zero_server_record", Phase::ended));
  ZERO_CHECK(!settings_.round_robin, ZERO_E_STATE,
             "zero_server_record needs ZERO_SERVER_ORDER_ARRIVAL; with ZERO_SERVER_ORDER_ROUND_ROBIN the order is always the same");
  *out = serving_->order().record();
  return {};
}

Task Server::run(ServerCounts *out) {
  ZERO_CO_TRY(check_role("zero_server_run", true));
  ZERO_CO_TRY(check_phase("zero_server_run", Phase::sealed));
  ZERO_CO_TRY(keep(co_await serving_->run(group_->deadline_ms())));
  phase_ = Phase::ended;
  if (out != nullptr) *out = serving_->counts();
  co_return Status();
}

Task Server::push(const float *values) {
  ZERO_CO_TRY(check_role("zero_server_push", false));
  ZERO_CO_TRY(check_phase("zero_server_push", Phase::sealed));
  const bool skips = settings_.skips_nonfinite && !HostKernels(settings_.threads).all_within(values, DType::f32, settings_.count);
  co_return keep(co_await calls_->push(values, skips, group_->deadline_ms()));
}

Task Server::pull(float *values) {
  ZERO_CO_TRY(check_role("zero_server_pull", false));
  ZERO_CO_TRY(check_phase("zero_server_pull", Phase::sealed));
  co_return keep(co_await calls_->pull(values, group_->deadline_ms()));
}

Task Server::leave() {
  ZERO_CO_TRY(check_role("zero_server_leave", false));
  ZERO_CO_TRY(check_phase("zero_server_leave", Phase::sealed));
  ZERO_CO_TRY(keep(co_await calls_->leave(group_->deadline_ms())));
  phase_ = Phase::ended;
  co_return Status();
}

}  // namespace zero
