/// @file Updates some rows of a piece, and compares them with an update of all of it whose other elements are set back.
#include "kernels/touched_rows.h"

#include "model.h"
#include "random.h"
#include "storage.h"
#include "tests/algorithms.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace zero::kernels::touched_rows_test {
namespace {

using test::all_storages;
using test::is_f8;
using test::Model;
using test::random_model;
using test::Storage;
using test::Stored;

/// Slots with scales have no elements of their own.
std::vector<Storage> storages_by_element() {
  std::vector<Storage> storages;
  for (const Storage &storage : all_storages()) {
    if (!is_f8(storage.first) && !is_f8(storage.second)) storages.push_back(storage);
  }
  return storages;
}

struct Rows {
  std::vector<uint8_t> marks;
  int64_t width;
  int64_t begin;
};

/// Rows of all lengths around lines, all, none or some of them touched, also several at a time.
Rows random_rows(test::Random &random, int64_t count) {
  constexpr int64_t kWidths[] = {1, 3, 32, 255, 256, 257, 512, 1000};
  Rows rows{{}, kWidths[static_cast<size_t>(random.below(8))], random.below(4) * kLine};
  const int64_t kind = random.below(6);
  uint8_t mark = 0;
  for (int64_t row = 0; row <= (rows.begin + count) / rows.width; ++row) {
    if (random.below(kind == 0 ? 8 : 2) == 0) mark = random.below(2) == 0 ? 1 : 0;
    rows.marks.push_back(kind == 1 ? 1 : kind == 2 ? 0 : mark);
  }
  return rows;
}

void set_back(Stored &to, Stored from, int64_t element) {
  const int64_t nbytes = dtype_nbytes(to.dtype());
  std::memcpy(static_cast<char *>(to.data()) + element * nbytes, static_cast<char *>(from.data()) + element * nbytes,
              static_cast<size_t>(nbytes));
}

/// The definition: an update of all elements, and the old bits of those in other rows.
Model updated(const Model &before, const Algorithm &algorithm, const UpdateScalars &scalars, const Rows &rows) {
  Model all = before;
  update(*supported().front(), algorithm, all.piece(), scalars);
  const std::pair<Stored Model::*, bool> slots[] = {{&Model::param, true},
                                                    {&Model::master, before.storage.has_master},
                                                    {&Model::first, true},
                                                    {&Model::second, true},
                                                    {&Model::average, before.storage.averages}};
  for (int64_t i = 0; i < before.count; ++i) {
    if (rows.marks[static_cast<size_t>((rows.begin + i) / rows.width)] != 0) continue;
    for (const auto &[slot, kept] : slots) {
      if (kept) set_back(all.*slot, before.*slot, i);
    }
  }
  return all;
}

TEST(TouchedRows, HaveTheBitsOfAWholeUpdateAndAllOthersKeepTheirs) {
  test::Random random(77);
  const zero::test::Names names = zero::test::elementwise_names();
  const std::vector<Storage> storages = storages_by_element();
  const int64_t cases = test::cases(40 * static_cast<int64_t>(storages.size()));
  int64_t updates = 0;
  for (int64_t i = 0; i < cases; ++i) {
    const Storage &storage = storages[static_cast<size_t>(i) % storages.size()];
    const int64_t count = test::length_of_case(random, i, 3, i % 7 == 0 ? 5000 : 1100);
    const Algorithm &algorithm = *find_algorithm(names[static_cast<size_t>(random.below(std::ssize(names)))]);
    UpdateScalars scalars;
    scalars.stochastic = storage.stochastic;
    scalars.seed = random.next();
    scalars.step = 1 + random.below(4);
    scalars.streams = random.below(2) == 0;
    scalars.hyper = {.lr = 0.01, .momentum = 0.9, .beta1 = 0.9, .beta2 = 0.95, .epsilon = 1e-8, .weight_decay = 0.1, .step = scalars.step};
    if (random.below(2) == 0) scalars.clip_value = 0.01F;
    scalars.average_decay = 0.99;
    const Model before = random_model(random, storage, count, i % 5 == 0);
    const Rows rows = random_rows(random, count);
    const Model expected = updated(before, algorithm, scalars, rows);
    for (const Table *table : supported()) {
      Model actual = before;
      update_rows(*table, algorithm, actual.piece(), scalars, {rows.marks.data(), rows.width, rows.begin});
      ASSERT_EQ(actual, expected) << table->target << " " << algorithm.name << " " << text(storage) << " count " << count << " width "
                                  << rows.width << " begin " << rows.begin << " case " << i;
      ++updates;
    }
  }
  std::printf("%lld updates compared over %zu storages\n", static_cast<long long>(updates), storages.size());
}

}  // namespace
}  // namespace zero::kernels::touched_rows_test
