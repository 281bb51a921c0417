/// @file Rounds of random pieces, for tests of any transport. Knows what every rank offers, so that every byte can be checked.
#pragma once

#include "tests/group/transport_driver.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <random>
#include <vector>

namespace zero::test {

/// The byte that `from` offers to `to` at `index` of round `round`.
inline std::byte expected_byte(int64_t from, int64_t to, int64_t round, int64_t index) {
  return static_cast<std::byte>(from * 89 + to * 57 + round * 31 + index * 7 + 3);
}

/// Every pair's piece size in a round, known to all ranks.
inline std::vector<int64_t> piece_sizes(int64_t size, int64_t round, int64_t round_nbytes) {
  std::mt19937_64 random(static_cast<uint64_t>(round * 1000 + size));
  std::vector<int64_t> sizes;
  for (int64_t i = 0; i < size * size; ++i) {
    const int64_t limit = round_nbytes / size;
    const int64_t choices[] = {0, 1, 88, 89, 4095, 4096, limit, static_cast<int64_t>(random() % static_cast<uint64_t>(limit + 1))};
    sizes.push_back(std::min(limit, choices[random() % 8]));
  }
  return sizes;
}

/// One round of random pieces; counts wrong bytes.
inline Status random_round(Transport &transport, int64_t number, std::atomic<int64_t> *wrong) {
  const int64_t size = transport.size();
  const int64_t rank = transport.rank();
  const auto sizes = piece_sizes(size, number, transport.capabilities().round_nbytes);
  std::vector<std::vector<std::byte>> pieces(static_cast<size_t>(size));
  std::vector<Offer> offers(static_cast<size_t>(size));
  std::vector<Arrival> arrivals(static_cast<size_t>(size));
  for (int64_t peer = 0; peer < size; ++peer) {
    const auto i = static_cast<size_t>(peer);
    pieces[i].resize(static_cast<size_t>(sizes[static_cast<size_t>(rank * size + peer)]));
    for (size_t at = 0; at < pieces[i].size(); ++at) pieces[i][at] = expected_byte(rank, peer, number, static_cast<int64_t>(at));
    offers[i] = {pieces[i].data(), static_cast<int64_t>(pieces[i].size())};
    arrivals[i].nbytes = sizes[static_cast<size_t>(peer * size + rank)];
  }
  const Fingerprint fingerprint = call(OperationKind::exchange, static_cast<uint64_t>(number) + 1);
  return round(transport, number % 3 == 2 ? nullptr : &fingerprint, offers, arrivals, [&](const std::vector<Arrival> &arrived) {
    for (int64_t peer = 0; peer < size; ++peer) {
      const Arrival &arrival = arrived[static_cast<size_t>(peer)];
      for (int64_t at = 0; peer != rank && at < arrival.nbytes; ++at) {
        if (static_cast<const std::byte *>(arrival.data)[at] != expected_byte(peer, rank, number, at)) ++*wrong;
      }
    }
  });
}

}  // namespace zero::test
