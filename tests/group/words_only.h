/// @file A transport that carries short pieces and messages only, as between hosts that agree over sockets: longer ones are errors.
/// The health of its peers is that of another, which carries them.
#pragma once

#include "group/group.h"
#include "group/local/local_transport.h"
#include "group/nccl/nccl_module.h"
#include "group/nccl/nccl_transport.h"
#include "tests/group/forwarding_transport.h"
#include "tests/group/nccl_ranks.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace zero::test {

inline constexpr int64_t kLongestWord = 4096;

class WordsOnly final : public ForwardingTransport, private Messages {
 public:
  explicit WordsOnly(const std::shared_ptr<Transport> &under)
      : ForwardingTransport(under, {.name = "words",
                                    .place = under->capabilities().place,
                                    .round_nbytes = under->capabilities().round_nbytes,
                                    .longest_nbytes = kLongestWord}) {
    set_interfaces(*this, *this, under->peers());
  }

 private:
  std::shared_ptr<Transport> wrap(std::shared_ptr<Transport> under) const override { return std::make_shared<WordsOnly>(under); }
  Status start(const Fingerprint *fingerprint, std::span<const Offer> offers, std::span<Arrival> arrivals) override {
    for (size_t peer = 0; peer < offers.size(); ++peer) {
      if (static_cast<int64_t>(peer) != rank()) ZERO_TRY(check(offers[peer].nbytes));
    }
    return ForwardingTransport::start(fingerprint, offers, arrivals);
  }

  Status send_start(int64_t peer, const Fingerprint &fingerprint, Offer offer) override {
    ZERO_TRY(check(offer.nbytes));
    return under().messages().send_start(peer, fingerprint, offer);
  }
  Status send_poll(int64_t peer, bool *out_done) override { return under().messages().send_poll(peer, out_done); }
  Status recv_start(int64_t peer, const Fingerprint &fingerprint, void *data, int64_t nbytes) override {
    ZERO_TRY(check(nbytes));
    return under().messages().recv_start(peer, fingerprint, data, nbytes);
  }
  Status recv_poll(int64_t peer, bool *out_done) override { return under().messages().recv_poll(peer, out_done); }

  static Status check(int64_t nbytes) {
    ZERO_CHECK(nbytes <= kLongestWord, ZERO_E_INTERNAL, "%lld bytes were to go the way of words", static_cast<long long>(nbytes));
    return {};
  }
};

/// A group that moves over NCCL whatever is not short.
inline Status connect_words_nccl(const std::string &name, int64_t rank, int64_t size, std::shared_ptr<Group> *out,
                                 NcclOptions options = {}) {
  const zero_nccl_table *nccl = nullptr;
  std::shared_ptr<Transport> under;
  OperationQueue queue;
  ZERO_TRY(load_nccl_module(ZERO_NCCL_FILE, &nccl));
  ZERO_TRY(queue.run(connect_local(name, rank, size, {options.rendezvous_ms, options.staging_nbytes}, &under)));
  auto transport = std::make_shared<NcclTransport>(std::make_shared<WordsOnly>(std::move(under)), *nccl);
  const std::shared_ptr<const Reducer> reducer = std::make_shared<GroupReducer>(caller_module(), rank % kDevices, 1);
  ZERO_TRY(queue.run(transport->copy_through(reducer, options.rendezvous_ms)));
  *out = std::make_shared<Group>(std::move(transport), reducer, options.deadline_ms);
  return {};
}

}  // namespace zero::test
