/// @file Shares by measured speed (as LB-BSP: Chen et al., "Semi-dynamic load balancing", 2020),
/// rounded by the method of the largest remainder.
#include "group/collectives/balance.h"

#include "core/hash.h"
#include "core/partition.h"
#include "group/collectives/agreement.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace zero {
namespace {

/// Parts are integers in units of 1 / kWhole of the whole.
constexpr int64_t kWhole = int64_t{1} << 40;
/// The largest part that may move between ranks in one call.
constexpr int64_t kMostMoved = kWhole / 8;

using Parts = std::vector<int64_t>;

bool is_measured(const Measured &one) { return one.items > 0 && one.ns > 0; }

/// Converts numbers to parts of their sum. Numbers are at most 2^102; a common shift makes their
/// products with kWhole fit.
Parts parts_of(std::vector<Int128> numbers) {
  const Int128 largest = *std::max_element(numbers.begin(), numbers.end());
  int shift = 0;
  while ((largest >> shift) >= (Int128{1} << 52)) ++shift;
  Int128 sum = 0;
  for (Int128 &number : numbers) sum += number >>= shift;
  Parts parts;
  for (const Int128 number : numbers) parts.push_back(static_cast<int64_t>(number * kWhole / sum));
  return parts;
}

/// A rank without a measurement gets the mean speed of the others.
Parts parts_by_speed(std::span<const Measured> measured) {
  std::vector<Int128> speeds;
  Int128 sum = 0;
  Int128 count = 0;
  for (const Measured &one : measured) {
    speeds.push_back(is_measured(one) ? std::max<Int128>((Int128{one.items} << 62) / one.ns, 1) : 0);
    sum += speeds.back();
    count += is_measured(one) ? 1 : 0;
  }
  const Int128 mean = count > 0 ? std::max<Int128>(sum / count, 1) : 1;
  for (Int128 &speed : speeds) speed = speed > 0 ? speed : mean;
  return parts_of(std::move(speeds));
}

/// Moves the measured shares toward the wanted ones, by at most kMostMoved.
Parts moved_parts(std::span<const Measured> measured, Parts wanted) {
  std::vector<Int128> items;
  for (const Measured &one : measured) items.push_back(one.items);
  if (std::all_of(items.begin(), items.end(), [](Int128 each) { return each == 0; })) return wanted;
  const Parts parts = parts_of(std::move(items));
  int64_t moved = 0;
  for (size_t rank = 0; rank < parts.size(); ++rank) moved += std::max<int64_t>(wanted[rank] - parts[rank], 0);
  if (moved <= kMostMoved) return wanted;
  for (size_t rank = 0; rank < parts.size(); ++rank) {
    wanted[rank] = parts[rank] + static_cast<int64_t>(Int128{wanted[rank] - parts[rank]} * kMostMoved / moved);
  }
  return wanted;
}

/// Integers with sum `units`. The largest remainders are rounded up; among equal ones, those of
/// lower ranks.
Parts units_by(const Parts &parts, int64_t units) {
  const Int128 whole = std::accumulate(parts.begin(), parts.end(), Int128{0});
  Parts shares;
  std::vector<std::pair<Int128, size_t>> remainders;
  int64_t rest = units;
  for (size_t rank = 0; rank < parts.size(); ++rank) {
    const Int128 product = Int128{units} * parts[rank];
    shares.push_back(static_cast<int64_t>(product / whole));
    remainders.emplace_back(-(product % whole), rank);
    rest -= shares.back();
  }
  std::sort(remainders.begin(), remainders.end());
  for (int64_t i = 0; i < rest; ++i) ++shares[remainders[static_cast<size_t>(i)].second];
  return shares;
}

/// A rank without work could never be measured again. It gets a unit from the rank that was rounded
/// up most.
void leave_none_empty(Parts &shares, const Parts &parts, int64_t units) {
  if (units < std::ssize(shares)) return;
  const Int128 whole = std::accumulate(parts.begin(), parts.end(), Int128{0});
  const auto excess = [&](size_t rank) { return whole * shares[rank] - Int128{units} * parts[rank]; };
  for (int64_t &share : shares) {
    if (share > 0) continue;
    size_t giver = shares.size();
    for (size_t rank = 0; rank < shares.size(); ++rank) {
      if (shares[rank] > 1 && (giver == shares.size() || excess(rank) > excess(giver))) giver = rank;
    }
    --shares[giver];
    share = 1;
  }
}

}  // namespace

std::vector<int64_t> balanced_shares(std::span<const Measured> measured, int64_t total, int64_t unit) {
  const int64_t units = total / unit;
  const Parts parts = moved_parts(measured, parts_by_speed(measured));
  Parts shares = units_by(parts, units);
  leave_none_empty(shares, parts, units);
  for (int64_t &share : shares) share *= unit;
  return shares;
}

Task balance(Group &group, Measured mine, int64_t total, int64_t unit, int64_t *out) {
  const CallerScope scope(group, Caller::balance);
  const int64_t cut[] = {total, unit};
  Fingerprint fingerprint;
  fingerprint.kind = OperationKind::exchange;
  fingerprint.detail = hash_of(cut, sizeof cut);
  const int64_t words[] = {mine.items, mine.ns};
  std::vector<int64_t> all(std::size(words) * static_cast<size_t>(group.size()));
  ZERO_CO_AWAIT(all_gather_words(group, fingerprint, words, all));
  std::vector<Measured> measured;
  for (size_t i = 0; i < all.size(); i += std::size(words)) measured.push_back({all[i], all[i + 1]});
  *out = balanced_shares(measured, total, unit)[static_cast<size_t>(group.rank())];
  co_return Status();
}

}  // namespace zero
