/// @file options: a table of options over getopt_long.
#include "options.h"

#include <getopt.h>

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <stdexcept>
#include <string_view>
#include <variant>
#include <vector>

#include "../whole_option.h"

namespace embedding {
namespace {

struct Number {
  int64_t Options::*field;
  int64_t least;
  int64_t most;
};
using Field = std::variant<Number, double Options::*, std::string Options::*, bool Options::*>;

struct Row {
  const char *name;
  const char *value;  ///< as --help shows it; NULL: a switch
  Field field;
  bool sharded_only;
  const char *meaning;
};

constexpr int64_t kMany = int64_t{1} << 40;

const Row kRows[] = {
    {"data", "DIR", &Options::data, false, "folder of the *-ubyte.gz files"},
    {"limit", "N", Number{&Options::limit, 0, kMany}, false, "only the first N images of each set; 0: all"},
    {"epochs", "E", Number{&Options::epochs, 1, 1000000}, false, "passes over the images"},
    {"batch", "B", Number{&Options::batch, 1, 60000}, false, "images of all ranks in a step"},
    {"lr", "X", &Options::lr, false, "learning rate, falling to 0 along a line"},
    {"seed", "S", Number{&Options::seed, 0, 1 << 30}, false, "of first values and batches"},
    {"losses", "FILE", &Options::losses, false, "write one loss per step"},
    {"ranks", "N", Number{&Options::ranks, 1, 1024}, true, "threads of this process that share the training; not under a launcher (mpirun, srun, torchrun), whose ranks count"},
    {"stage", "S", Number{&Options::stage, 0, 3}, true, "what is sharded: 0 nothing, 1 states, 2 + gradients, 3 + parameters"},
    {"framework-update", nullptr, &Options::framework_update, true,
     "the framework's own optimizer updates the shards, not libzero's AdamW"},
};

[[noreturn]] void reject(const Row &row, const char *text, const std::string &expected) {
  throw std::invalid_argument(std::string("--") + row.name + " " + text + ": expected " + expected);
}

template <typename T>
bool read(const char *text, T *out) {
  const char *end = text + std::strlen(text);
  const auto [stopped, error] = std::from_chars(text, end, *out);
  return error == std::errc() && stopped == end;
}

/// Stores the value of one option.
struct Store {
  const Row &row;
  const char *text;
  Options *out;

  void operator()(const Number &number) const {
    int64_t value = 0;
    if (!read(text, &value) || value < number.least || value > number.most) {
      reject(row, text, "a whole number from " + std::to_string(number.least) + " to " + std::to_string(number.most));
    }
    out->*number.field = value;
  }
  void operator()(double Options::*field) const {
    double value = 0;
    if (!read(text, &value) || !(value >= 0 && value <= 1e30)) reject(row, text, "a number from 0 to 1e30");
    out->*field = value;
  }
  void operator()(std::string Options::*field) const { out->*field = text; }
  void operator()(bool Options::*field) const { out->*field = true; }
};

void print_help(const char *program, bool sharded) {
  std::printf("usage: %s [options]\n", program);
  for (const Row &row : kRows) {
    const std::string left = row.value ? std::string(row.name) + " " + row.value : row.name;
    if (sharded || !row.sharded_only) std::printf("  --%-18s %s\n", left.c_str(), row.meaning);
  }
}

}  // namespace

bool parse_options(int argc, char **argv, const Program &program, Options *out) {
  constexpr int kHelp = static_cast<int>(std::size(kRows));
  const bool sharded = program.sharded;
  bool counts_ranks = false;
  std::vector<option> known;
  for (int i = 0; i < kHelp; i++) {
    const Row &row = kRows[i];
    if (sharded || !row.sharded_only) known.push_back({row.name, row.value ? required_argument : no_argument, nullptr, i});
  }
  known.push_back({"help", no_argument, nullptr, kHelp});
  known.push_back({});
  opterr = 0;
  for (;;) {
    const int at = optind;
    int position = 0;
    const int index = getopt_long(argc, argv, "", known.data(), &position);
    if (index == -1) break;
    const char *unknown = index == '?' ? argv[at] : shortened_option(argv, &known[static_cast<size_t>(position)]);
    if (unknown) throw std::invalid_argument(std::string(unknown) + ": unknown option, or its value is missing; see --help");
    if (index == kHelp) {
      print_help(argv[0], sharded);
      return false;
    }
    counts_ranks = counts_ranks || std::string_view(kRows[index].name) == "ranks";
    std::visit(Store{kRows[index], optarg, out}, kRows[index].field);
  }
  if (optind < argc) throw std::invalid_argument(std::string(argv[optind]) + ": unexpected argument; see --help");
  if (counts_ranks && !program.launcher.empty()) {
    throw std::invalid_argument("--ranks is for ranks that this program starts, but a launcher has started them (" + program.launcher +
                                " is " + std::getenv(program.launcher.c_str()) + ")");
  }
  return true;
}

}  // namespace embedding
