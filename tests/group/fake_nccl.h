/// @file Control of the NCCL whose ranks are threads of one process (fake_nccl.cpp): what it tells, what comes late, fails or never ends.
/// For programs that are linked to it and what they load it stands where libnccl.so.2 would; it runs over emulated devices (tests/memory).
///
/// A communicator is busy for some looks at its state after each operation. The first look that finds it idle gives the move to its stream,
/// after what the stream was given until then. Two ranks that have not met that way before are busy until both have come.
///
/// The handle that ncclCommInitRankConfig returns is written there once more when the making has ended, or was aborted.
///
/// Calls come from threads on the communicator's device, but for looks at its state.
///
/// Ranks are those of a communicator; -1: none. Moves (the groups of what a rank sends, receives, broadcasts or gathers, over all its
/// communicators) and calls are counted from 0 on from when they are named.
#pragma once

#include <cstdint>

inline constexpr int64_t fake_nccl_every_rank = -2;

extern "C" {

/// Forgets all that follows, lets go what hangs and counts from 0 again. Communicators that were not freed stay.
void fake_nccl_reset();

/// What ncclGetVersion tells; NCCL_VERSION_CODE of the header until told.
void fake_nccl_version(int64_t version);
/// 0: a communicator with two ranks on one device is an ncclInvalidUsage on all of them, as in NCCL before 2.30. 1 until told.
void fake_nccl_allow_shared_device(int64_t on);
/// Microseconds that every move comes late in its stream.
void fake_nccl_late(int64_t microseconds);

/// Microseconds for which a move is still in its stream when ncclCommAbort has ended it.
void fake_nccl_linger(int64_t microseconds);

/// The move of that number never ends in its stream, until its communicator is aborted.
void fake_nccl_stick(int64_t rank, int64_t number);
/// The same from that number on, and ncclCommGetAsyncError tells `error` from when the first of them is reached in its stream.
void fake_nccl_break(int64_t rank, int64_t number, int32_t error);

/// ncclCommInitRankConfig is under way for ever; the other ranks' ends.
void fake_nccl_stick_init(int64_t rank);
/// ncclCommInitRankConfig ends with `error`; the other ranks' is under way for ever.
void fake_nccl_break_init(int64_t rank, int32_t error);
/// ncclCommFinalize is under way for ever.
void fake_nccl_stick_finalize(int64_t rank);
/// ncclCommAbort (of every rank, where that is asked for) and ncclCommDestroy do not return until fake_nccl_release, and do their work
/// then.
void fake_nccl_hang_abort(int64_t rank);
void fake_nccl_hang_destroy(int64_t rank);
void fake_nccl_release();

/// The call of that number of one entry point ("ncclSend"; nullptr: of any but ncclGetErrorString and ncclGetLastError), by any thread,
/// fails with ncclSystemError. Communicators are freed also by calls that fail.
void fake_nccl_fail(const char *entry, int64_t number);
/// 1: the call asked for was made and has failed.
int64_t fake_nccl_failed();

/// Communicators that were made and not freed.
int64_t fake_nccl_objects();
/// Calls of one entry point ("ncclBroadcast").
int64_t fake_nccl_calls(const char *entry);
/// Bytes received and moves ended, by all ranks.
int64_t fake_nccl_moved();
int64_t fake_nccl_groups();
}
