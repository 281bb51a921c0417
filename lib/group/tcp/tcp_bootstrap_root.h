/// @file TcpBootstrapRoot: rank 0 of a meeting over TCP. It collects the other ranks, sends each
/// the addresses of all, and waits until all are connected before any rank proceeds. Knows nothing
/// of the purpose of the meeting.
#pragma once

#include "core/task.h"
#include "group/tcp/tcp_accept_queue.h"
#include "group/tcp/tcp_bootstrap_message.h"
#include "group/tcp/tcp_plan.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace zero {

class TcpBootstrapRoot final : public Waitable {
 public:
  /// The plan must outlive the root.
  TcpBootstrapRoot(OwnedFd listener, const TcpPlan &plan, std::vector<TcpPeer> *out, uint64_t *out_name);
  /// Ready once go was sent to all ranks.
  Status poll(bool *out_ready) override;

 private:
  struct Client {
    std::unique_ptr<TcpLink> link;
    uint64_t instance = 0;
    TcpRank who;
    int64_t told = 0;  ///< number of ranks that were sent to it
    bool ready = false;
    std::string complaint;
    bool joined() const { return link != nullptr; }
  };

  Status advance(bool *out_ready);
  Status collect();
  void forget_gone();
  Status admit(std::unique_ptr<TcpLink> *link, const TcpHello &hello);
  Status check_terms(const TcpHello &hello) const;
  Status receive_from_clients();
  Status receive(int64_t rank);
  void tell(Client *client);
  void say_go();
  bool all_flushed();
  Status too_late() const;
  std::string missing_ranks() const;
  std::string unready_ranks() const;
  void close_accept_queue();
  void refuse_all(const Status &cause);
  void finish();
  std::vector<int64_t> ranks_with_news() const;
  const TcpRank &rank(int64_t index) const { return index == 0 ? plan_.self : clients_[static_cast<size_t>(index)].who; }

  const TcpPlan &plan_;
  std::optional<TcpAcceptQueue> accept_queue_;  ///< until all ranks have joined
  std::vector<TcpPeer> *out_;
  uint64_t *out_name_;
  uint64_t name_ = 0;
  std::vector<Client> clients_;  ///< by rank; the entry of rank 0 stays empty
  int64_t joined_ = 1;
  int64_t ready_ = 1;
  bool went_ = false;
};

}  // namespace zero
