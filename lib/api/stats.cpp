/// @file zero/stats.h.
#include "api/checks.h"
#include "api/nouns.h"
#include "api/structs.h"
#include "engine/buffer/buffer.h"
#include "engine/optimizer/optimizer.h"
#include "group/mpi/mpi_module.h"
#include "group/mpi/mpi_root.h"
#include "group/nccl/nccl_comm.h"
#include "group/nccl/nccl_module.h"
#include "kernels/kernels.h"
#include "memory/device.h"

#include <zero/zero.h>

#include <cstdlib>
#include <string_view>

namespace zero::api {
namespace {

Status check_category(int32_t category) { return check_bounds(category, ZERO_MEMORY_TOTAL, ZERO_MEMORY_WORKSPACE, "category"); }

Status check_operation(int32_t operation) { return check_bounds(operation, ZERO_OPERATION_BARRIER, ZERO_OPERATION_RECV, "operation"); }

void write_traffic(const Traffic &traffic, zero_traffic_stats *out) {
  const zero_traffic_stats stats = {.struct_size = sizeof stats,
                                    .call_count = traffic.call_count,
                                    .sent_elements = traffic.sent_elements,
                                    .sent_nbytes = traffic.sent_nbytes};
  write_struct(stats, out);
}

std::string library_text() {
  std::string text =
      std::string("libzero ") + zero_version() + ", ABI " + std::to_string(ZERO_ABI_MAJOR) + "." + std::to_string(ZERO_ABI_MINOR);
  text += "\nkernel targets:";
  for (const kernels::Table *target : kernels::supported()) text += std::string(" ") + target->target;
  text += std::string("; in use: ") + kernels::active().target;
  const char *wanted = std::getenv("ZERO_KERNEL_TARGET");
  if (wanted != nullptr && std::string_view(wanted) != kernels::active().target) {
    text += std::string(", not ZERO_KERNEL_TARGET=") + wanted;
  }
  const zero_mpi_table *mpi = nullptr;
  const Status status = load_mpi_module({}, &mpi);
  if (status.ok()) {
    char library[512] = "";
    mpi->library_text(library, sizeof library);
    text += std::string("\nMPI module: ") + mpi->build + ", " + library;
  } else {
    text += std::string("\nMPI module: not loaded: ") + status.text();
  }
  text += "; bytes in quarantine: " + std::to_string(mpi_quarantined_nbytes());
  text += "\nCUDA module: " + describe_devices();
  text += "\nNCCL module: " + describe_nccl() + "; communicators in quarantine: " + std::to_string(nccl_quarantined());
  text += "\nlive handles: " + std::to_string(live_handles()) + "\n";
  return text;
}

std::string group_text(const Group &group) {
  const Place place = group.place();
  std::string text = "transport " + group.transport().capabilities().name;
  text += ", rank " + std::to_string(group.rank()) + " of " + std::to_string(group.size());
  text += ", local rank " + std::to_string(place.local_rank) + " of " + std::to_string(place.local_size);
  text += ", hosts " + std::to_string(place.host_count);
  if (const int64_t block = group.transport().capabilities().host_block; block > 1) {
    text += "; sums and gathers work inside a host first, " + std::to_string(block) + " ranks at a time";
  }
  text += "\nstaging memory of this rank: " + std::to_string(group.staging_nbytes()) + " bytes; most bytes per round: ";
  text += std::to_string(group.transport().capabilities().round_nbytes);
  text += "\ndeadline: " + std::to_string(group.deadline_ms()) + " ms; reductions: kernel target " + kernels::active().target + "\n";
  return text;
}

}  // namespace
}  // namespace zero::api

using namespace zero;

int32_t zero_memory_stats_init(zero_memory_stats *out, uint64_t struct_size) {
  return api::guarded([&] { return api::init_struct(out, struct_size); });
}

int32_t zero_traffic_stats_init(zero_traffic_stats *out, uint64_t struct_size) {
  return api::guarded([&] { return api::init_struct(out, struct_size); });
}

int32_t zero_step_stats_init(zero_step_stats *out, uint64_t struct_size) {
  return api::guarded([&] { return api::init_struct(out, struct_size); });
}

int32_t zero_stats_optimizer_memory(const zero_optimizer *optimizer, int32_t category, zero_memory_stats *out) {
  return api::call(optimizer, "optimizer", [&](Optimizer &object) -> Status {
    ZERO_TRY(api::check_category(category));
    ZERO_TRY(api::check_struct(out, "out"));
    MemoryUse use = {};
    ZERO_TRY(object.memory(category, &use));
    const zero_memory_stats stats = {.struct_size = sizeof stats,
                                     .now_nbytes = use.now_nbytes,
                                     .peak_nbytes = use.peak_nbytes,
                                     .formula_nbytes = use.formula_nbytes,
                                     .constant_nbytes = use.constant_nbytes};
    api::write_struct(stats, out);
    return {};
  });
}

int32_t zero_stats_buffer_memory(const zero_buffer *buffer, int32_t category, zero_memory_stats *out) {
  return api::call(buffer, "buffer", [&](Buffer &object) -> Status {
    ZERO_TRY(api::check_category(category));
    ZERO_TRY(api::check_struct(out, "out"));
    const zero_memory_stats stats = {.struct_size = sizeof stats,
                                     .now_nbytes = object.accounting().now(category),
                                     .peak_nbytes = object.accounting().peak(category),
                                     .formula_nbytes = 0,
                                     .constant_nbytes = 0};
    api::write_struct(stats, out);
    return {};
  });
}

int32_t zero_stats_group_traffic(const zero_group *group, int32_t operation, zero_traffic_stats *out) {
  return api::call(group, "group", [&](Group &object) -> Status {
    ZERO_TRY(api::check_operation(operation));
    ZERO_TRY(api::check_struct(out, "out"));
    api::write_traffic(object.traffic(static_cast<OperationKind>(operation)), out);
    return {};
  });
}

int32_t zero_stats_optimizer_traffic(const zero_optimizer *optimizer, int32_t operation, zero_traffic_stats *out) {
  return api::call(optimizer, "optimizer", [&](Optimizer &object) -> Status {
    ZERO_TRY(api::check_operation(operation));
    ZERO_TRY(api::check_struct(out, "out"));
    api::write_traffic(object.traffic(static_cast<OperationKind>(operation)), out);
    return {};
  });
}

int32_t zero_stats_optimizer_step(const zero_optimizer *optimizer, zero_step_stats *out) {
  return api::call(optimizer, "optimizer", [&](Optimizer &object) -> Status {
    ZERO_TRY(api::check_struct(out, "out"));
    const StepTimes times = object.step_times();
    const zero_step_stats stats = {.struct_size = sizeof stats,
                                   .step_count = times.step_count,
                                   .reduce_ns = times.reduce_ns,
                                   .apply_ns = times.apply_ns,
                                   .gather_ns = times.gather_ns,
                                   .stalled_nbytes = times.stalled_nbytes,
                                   .pool_grow_count = times.pool_grow_count,
                                   .overlap_active = times.overlap_active ? 1 : 0};
    api::write_struct(stats, out);
    return {};
  });
}

int32_t zero_describe_library(char *out, int64_t out_nbytes, int64_t *out_needed) {
  return api::guarded([&]() -> Status {
    ZERO_TRY(api::check_text_outputs(out, out_nbytes));
    api::copy_text(api::library_text(), out, out_nbytes, out_needed);
    return {};
  });
}

int32_t zero_describe_group(const zero_group *group, char *out, int64_t out_nbytes, int64_t *out_needed) {
  return api::call(group, "group", [&](Group &object) -> Status {
    ZERO_TRY(api::check_text_outputs(out, out_nbytes));
    api::copy_text(api::group_text(object), out, out_nbytes, out_needed);
    return {};
  });
}

int32_t zero_describe_optimizer(const zero_optimizer *optimizer, char *out, int64_t out_nbytes, int64_t *out_needed) {
  return api::call(optimizer, "optimizer", [&](Optimizer &object) -> Status {
    ZERO_TRY(api::check_text_outputs(out, out_nbytes));
    api::copy_text(object.describe(), out, out_nbytes, out_needed);
    return {};
  });
}

int32_t zero_stats_optimizer_trace(const zero_optimizer *optimizer, char *out, int64_t out_nbytes, int64_t *out_needed) {
  return api::call(optimizer, "optimizer", [&](Optimizer &object) -> Status {
    ZERO_TRY(api::check_text_outputs(out, out_nbytes));
    std::string text;
    ZERO_TRY(object.trace(&text));
    api::copy_text(text, out, out_nbytes, out_needed);
    return {};
  });
}
