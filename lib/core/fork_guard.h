/// @file Fork guard: detects that this process forked after libzero was first used. Transports and
/// threads do not survive a fork.
#pragma once

namespace zero {

/// True in a child of the process that first called this. Costs one load.
bool forked() noexcept;

}  // namespace zero
