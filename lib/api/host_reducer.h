/// @file The reducer that groups over host memory are given: the fastest kernel of this machine, cut over the rank's host threads.
/// Knows no group.
#pragma once

#include "core/config.h"
#include "group/connect.h"

namespace zero::api {

/// Makes reducers for groups created with the config: ZERO_KEY_THREADS threads, or by default an even share of the cores.
ReducerFactory host_reducer_factory(const Config &config);

}  // namespace zero::api
