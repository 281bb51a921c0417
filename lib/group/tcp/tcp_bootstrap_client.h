/// @file TcpBootstrapClient: a rank above 0 in a meeting over TCP. It joins rank 0, receives the
/// addresses of the others, connects to those on other hosts, and waits until all have. Knows
/// nothing of the purpose of the meeting.
#pragma once

#include "core/clock.h"
#include "core/task.h"
#include "group/tcp/tcp_accept_queue.h"
#include "group/tcp/tcp_bootstrap_message.h"
#include "group/tcp/tcp_dial.h"
#include "group/tcp/tcp_plan.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace zero {

class TcpBootstrapClient final : public Waitable {
 public:
  /// Ranks above this one connect to `listener`; the plan must outlive the client.
  TcpBootstrapClient(OwnedFd listener, const TcpPlan &plan, std::vector<TcpPeer> *out, uint64_t *out_name);
  /// Ready once rank 0 has sent go.
  Status poll(bool *out_ready) override;

 private:
  /// The connection to another rank.
  struct Way {
    bool wanted = false;
    bool there = false;
    std::optional<TcpDial> dial;    ///< to a lower rank
    std::unique_ptr<TcpLink> link;  ///< before `there`: one that was greeted and has not answered
  };

  Status advance(bool *out_ready);
  void resolve();
  void reach_root();
  Status receive_from_root();
  Status take(std::span<const std::byte> frame);
  Status take_first(std::span<const std::byte> frame);
  Status take_entries(TcpReader *reader);
  Status breach() const;
  void lose_root(const std::string &why);
  void plan_ways();
  Status connect_peers();
  void reach(int64_t rank);
  Status receive_peers();
  void complain();
  std::string lacking() const;
  Status at_deadline();
  std::string knows() const;
  void finish();
  bool met() const { return known_ == plan_.terms.size; }
  Way &way(int64_t rank) { return ways_[static_cast<size_t>(rank)]; }

  const TcpPlan &plan_;
  TcpAcceptQueue accept_queue_;
  std::vector<TcpPeer> *out_;
  uint64_t *out_name_;
  const uint64_t instance_;
  std::optional<TcpDial> dial_;  ///< to rank 0
  int64_t resolve_ns_ = 0;       ///< earliest time of the next attempt
  std::string trouble_;          ///< the reason why rank 0 was not reached
  std::unique_ptr<TcpLink> root_link_;
  int64_t hello_ns_ = 0;
  bool welcome_ = false;
  std::string root_name_;  ///< set by the welcome
  std::vector<TcpRank> ranks_;
  int64_t known_ = 0;  ///< number of entries of ranks_ that are complete
  uint64_t name_ = 0;
  std::vector<Way> ways_;
  int64_t complain_ns_ = 0;
  bool ready_ = false;
  bool go_ = false;
  bool told_ = false;  ///< rank 0 needs no report of an error
  std::optional<Deadline> decision_;
};

}  // namespace zero
