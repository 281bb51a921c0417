/// @file report: lines of key=value.
#include "report.h"

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cstring>
#include <numeric>
#include <stdexcept>

namespace embedding {
namespace {

constexpr int64_t kWindow = 50;  ///< steps that one printed loss is the mean of

double mean(const std::vector<double> &losses, int64_t count) {
  const auto taken = std::min(count, static_cast<int64_t>(losses.size()));
  return std::accumulate(losses.end() - taken, losses.end(), 0.0) / static_cast<double>(std::max<int64_t>(taken, 1));
}

}  // namespace

Report::Report(const Options &options, bool prints) : prints_(prints) {
  if (!prints_ || options.losses.empty()) return;
  file_.reset(std::fopen(options.losses.c_str(), "w"));
  if (!file_) throw std::runtime_error(options.losses + ": " + std::strerror(errno));
}

void Report::add_loss(double loss) {
  losses_.push_back(loss);
  if (file_ && (std::fprintf(file_.get(), "%.9g\n", loss) < 0 || std::fflush(file_.get()) != 0)) {
    throw std::runtime_error(std::string("cannot write the losses: ") + std::strerror(errno));
  }
  const auto steps = static_cast<int64_t>(losses_.size());
  if (prints_ && steps % kWindow == 0) std::printf("step %5" PRId64 "  loss %.4f\n", steps, mean(losses_, kWindow));
}

void Report::end(int64_t correct, int64_t tested, const Memory &memory) const {
  if (!prints_) return;
  std::printf("parameters=%" PRId64 " gradients=%" PRId64 " states=%" PRId64 " pools=%" PRId64 " staging=%" PRId64 " all=%" PRId64
              " bytes per rank\n",
              memory.parameters, memory.gradients, memory.states, memory.pools, memory.staging, memory.all());
  std::printf("steps=%zu loss=%.4f accuracy=%.2f\n", losses_.size(), mean(losses_, kWindow),
              100.0 * static_cast<double>(correct) / static_cast<double>(tested));
}

}  // namespace embedding
