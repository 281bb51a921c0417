/// @file Split: ranks tell each other color and key, and ranks of one color derive a transport of
/// their own.
#include "group/collectives/pieces.h"

#include <algorithm>
#include <cstring>

namespace zero {
namespace {

struct ColorAndKey {
  int64_t color;
  int64_t key;
};

/// Ranks of this color, in the order of key, then rank.
std::vector<int64_t> members_of(const std::vector<ColorAndKey> &choices, int64_t color) {
  std::vector<int64_t> members;
  for (size_t rank = 0; rank < choices.size(); ++rank) {
    if (choices[rank].color == color) members.push_back(static_cast<int64_t>(rank));
  }
  std::stable_sort(members.begin(), members.end(),
                   [&](int64_t a, int64_t b) { return choices[static_cast<size_t>(a)].key < choices[static_cast<size_t>(b)].key; });
  return members;
}

/// Lets the new group reach memory of devices. Its texts count its own ranks, and are told to those
/// of the group it is split from.
Task reach_devices(Group &group, Transport &transport, std::shared_ptr<const Reducer> reducer) {
  const Status reached = co_await transport.copy_through(std::move(reducer), group.left_ms());
  if (reached.ok()) co_return reached;
  ZERO_CO_TRY(group.usable());
  co_return Status::error(reached.code(), "among the %lld ranks of the new group, counted there: %s", lld(transport.size()),
                          reached.text());
}

Task split_rounds(Group &group, ColorAndKey mine, std::shared_ptr<Group> *out, std::shared_ptr<const Reducer> reducer,
                  int64_t most_round_nbytes) {
  std::vector<ColorAndKey> choices(static_cast<size_t>(group.size()), mine);
  Pieces pieces(group.size());
  for (Offer &offer : pieces.offers) offer = {&mine, sizeof mine};
  for (Arrival &arrival : pieces.arrivals) arrival.nbytes = sizeof mine;
  {
    Round round(group, pieces.offers, pieces.arrivals);
    ZERO_CO_AWAIT(round);
    for (size_t peer = 0; peer < choices.size(); ++peer) {
      if (static_cast<int64_t>(peer) != group.rank()) std::memcpy(&choices[peer], pieces.arrivals[peer].data, sizeof mine);
    }
  }
  std::vector<int64_t> members;
  if (mine.color >= 0) members = members_of(choices, mine.color);
  std::shared_ptr<Transport> transport;
  ZERO_CO_AWAIT(group.transport().derive_within(std::move(members), mine.color, most_round_nbytes, group.left_ms(), &transport));
  out->reset();
  if (transport == nullptr) co_return Status();
  if (reducer == nullptr) reducer = group.reducer();
  // If data can move only through devices, host data moves through them as well.
  const bool words_alone = transport->capabilities().longest_nbytes < INT64_MAX;
  if (words_alone && !reducer->on_device() && group.reducer()->on_device()) reducer = group.reducer();
  if (reducer->on_device()) ZERO_CO_AWAIT(reach_devices(group, *transport, reducer));
  *out = std::make_shared<Group>(std::move(transport), std::move(reducer), group.deadline_ms());
  group.adopt(*out);
  co_return Status();
}

}  // namespace

Task split(Group &group, int64_t color, int64_t key, std::shared_ptr<Group> *out, std::shared_ptr<const Reducer> reducer,
           int64_t most_round_nbytes) {
  Fingerprint fingerprint;
  fingerprint.kind = OperationKind::split;
  return group.collective(fingerprint, split_rounds(group, {color, key}, out, std::move(reducer), most_round_nbytes));
}

}  // namespace zero
