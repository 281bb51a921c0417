/// @file Lets the ranks agree in a save or a load.
#include "engine/checkpoint/votes.h"

#include "core/hash.h"
#include "group/collectives.h"
#include "group/collectives/agreement.h"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

namespace zero {

Task gather_words(Group &group, std::span<const int64_t> mine, std::vector<int64_t> *all) {
  all->assign(mine.size() * static_cast<size_t>(group.size()), 0);
  Fingerprint fingerprint;
  fingerprint.kind = OperationKind::seal;
  fingerprint.detail = mine.size();
  co_return co_await all_gather_words(group, fingerprint, mine, *all);
}

namespace {

std::vector<std::byte> bytes_of(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

/// Returns the lines cut to 300 bytes, so that both fit into an error text.
std::pair<std::string, std::string> first_lines_that_differ(std::string_view first, std::string_view second) {
  constexpr size_t kMost = 300;
  for (;;) {
    const std::string_view one = first.substr(0, first.find('\n'));
    const std::string_view other = second.substr(0, second.find('\n'));
    if (one != other || first.empty() || second.empty()) return {std::string(one.substr(0, kMost)), std::string(other.substr(0, kMost))};
    first.remove_prefix(std::min(first.size(), one.size() + 1));
    second.remove_prefix(std::min(second.size(), other.size() + 1));
  }
}

std::string text_of(const std::vector<std::byte> &bytes) { return {reinterpret_cast<const char *>(bytes.data()), bytes.size()}; }

}  // namespace

Task vote(Group &group, Status mine, Status *out) {
  const int64_t code = mine.code();
  std::vector<int64_t> codes;
  ZERO_CO_AWAIT(gather_words(group, {&code, 1}, &codes));
  *out = Status();
  const auto failed = std::find_if(codes.begin(), codes.end(), [](int64_t other) { return other != ZERO_OK; });
  if (failed == codes.end()) co_return Status();
  const int64_t rank = failed - codes.begin();
  std::vector<std::byte> text;
  if (rank == group.rank()) text = bytes_of(mine.text());
  ZERO_CO_AWAIT(broadcast_bytes(group, &text, rank));
  *out = group.size() == 1 ? mine : Status::error(static_cast<int32_t>(*failed), "rank %lld: %s", lld(rank), text_of(text).c_str());
  co_return Status();
}

Task compare_given(Group &group, const char *what, const std::string &mine, Status *out) {
  const auto hash = static_cast<int64_t>(hash_of_text(mine));
  std::vector<int64_t> hashes;
  ZERO_CO_AWAIT(gather_words(group, {&hash, 1}, &hashes));
  *out = Status();
  const auto other = std::find_if(hashes.begin(), hashes.end(), [&](int64_t each) { return each != hashes[0]; });
  if (other == hashes.end()) co_return Status();
  const int64_t rank = other - hashes.begin();
  std::vector<std::byte> first;
  std::vector<std::byte> second;
  if (group.rank() == 0) first = bytes_of(mine);
  if (group.rank() == rank) second = bytes_of(mine);
  ZERO_CO_AWAIT(broadcast_bytes(group, &first, 0));
  ZERO_CO_AWAIT(broadcast_bytes(group, &second, rank));
  const auto [of_first, of_second] = first_lines_that_differ(text_of(first), text_of(second));
  *out = Status::error(ZERO_E_MISMATCH, "%s differ between ranks, so nothing was done: rank 0 has \"%s\"; rank %lld has \"%s\"", what,
                       of_first.c_str(), lld(rank), of_second.c_str());
  co_return Status();
}

Task broadcast_bytes(Group &group, std::vector<std::byte> *bytes, int64_t root) {
  if (group.size() == 1) co_return Status();
  int64_t nbytes = group.rank() == root ? std::ssize(*bytes) : 0;
  ZERO_CO_AWAIT(broadcast(group, &nbytes, 1, DType::i64, root));
  bytes->resize(static_cast<size_t>(nbytes));
  if (nbytes > 0) ZERO_CO_AWAIT(broadcast(group, bytes->data(), nbytes, DType::u8, root));
  co_return Status();
}

Task broadcast_text(Group &group, std::string *text, int64_t root) {
  std::vector<std::byte> bytes = bytes_of(*text);
  ZERO_CO_AWAIT(broadcast_bytes(group, &bytes, root));
  *text = text_of(bytes);
  co_return Status();
}

Task gather_lists(Group &group, const std::vector<uint64_t> &mine, std::vector<std::vector<uint64_t>> *out) {
  const int64_t size = std::ssize(mine);
  std::vector<int64_t> sizes;
  ZERO_CO_AWAIT(gather_words(group, {&size, 1}, &sizes));
  constexpr int64_t kWord = sizeof(uint64_t);
  std::vector<Offer> offers(sizes.size());
  std::vector<Receive> receives(sizes.size());
  offers[0] = {mine.data(), size * kWord};
  out->assign(group.rank() == 0 ? sizes.size() : 0, {});
  for (size_t rank = 0; rank < out->size(); ++rank) {
    (*out)[rank].resize(static_cast<size_t>(sizes[rank]));
    receives[rank] = {(*out)[rank].data(), sizes[rank] * kWord};
  }
  co_return co_await exchange(group, offers, receives);
}

}  // namespace zero
