/// @file Control of the MPI module for tests (fake_mpi.cpp): who the calling thread is, what start finds, and which call fails.
#pragma once

#include <cstdint>

namespace zero::fake_mpi {

/// meet is test for a communicator that is being duplicated.
enum class Call : int { start, duplicate, meet, open, free, send, recv, test, cancel };
inline constexpr int kCalls = 9;
const char *call_name(Call call);

/// Begins a world of `size` ranks without messages. What start finds from now on is MPI_THREAD_MULTIPLE, initialised by the program.
void begin_world(int64_t size);
/// The calling thread is this rank.
void join(int64_t rank);
void set_thread_level(int64_t level, bool main_thread);
void set_finalized(bool finalized);
void set_tag_limit(int64_t limit);
/// The calling thread's `index`-th call from now on fails, counted from 0; a negative index: none. Sends and receives that fail do nothing.
void fail(Call call, int64_t index);
/// True when the call asked for was made and has failed.
bool has_failed();
/// Sends of all ranks end only while this is false.
void hold_sends(bool hold);
/// How many sends of this world no longer had in memory what was sent when hold_sends(false) let them end.
int64_t disturbed_sends();
/// Receives cancelled from now on end at the second test instead of the first.
void delay_cancels(bool delay);
/// Whether MPI may be called.
void set_alive(bool alive);
/// Calls of this world that were made all the same.
int64_t calls_while_dead();
/// Duplicates made and not freed by ranks of this world.
int64_t open_communicators();

}  // namespace zero::fake_mpi
