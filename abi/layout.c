/*
 * Layout of the public structs, asserted when this file is compiled as C11 and as C++17; a stripped library cannot show it.
 * A number here never changes; a field that is appended adds a line. No holes, no padding: every field takes 8 bytes and the last one ends
 * the struct.
 */
#include <zero/zero.h>

#include <assert.h>
#include <stddef.h>

#define ZERO_FIELD(type, field, offset) \
  static_assert(offsetof(type, field) == (offset) && sizeof(((type *)0)->field) == 8, #type "." #field " moved or changed its size")
#define ZERO_STRUCT(type, nbytes, last)                                                            \
  static_assert(sizeof(type) == (nbytes), #type " changed its size");                              \
  static_assert(offsetof(type, last) + 8 == sizeof(type), #type " does not end with its last field")

ZERO_STRUCT(zero_key_bounds, 64, default_f64);
ZERO_FIELD(zero_key_bounds, struct_size, 0);
ZERO_FIELD(zero_key_bounds, type, 8);
ZERO_FIELD(zero_key_bounds, min_i64, 16);
ZERO_FIELD(zero_key_bounds, max_i64, 24);
ZERO_FIELD(zero_key_bounds, default_i64, 32);
ZERO_FIELD(zero_key_bounds, min_f64, 40);
ZERO_FIELD(zero_key_bounds, max_f64, 48);
ZERO_FIELD(zero_key_bounds, default_f64, 56);

ZERO_STRUCT(zero_step_result, 80, spread);
ZERO_FIELD(zero_step_result, struct_size, 0);
ZERO_FIELD(zero_step_result, step, 8);
ZERO_FIELD(zero_step_result, skipped, 16);
ZERO_FIELD(zero_step_result, skipped_total, 24);
ZERO_FIELD(zero_step_result, unfilled_count, 32);
ZERO_FIELD(zero_step_result, grad_norm, 40);
ZERO_FIELD(zero_step_result, loss_scale, 48);
ZERO_FIELD(zero_step_result, stop_reason, 56);
ZERO_FIELD(zero_step_result, synced, 64);
ZERO_FIELD(zero_step_result, spread, 72);

ZERO_STRUCT(zero_verify_result, 88, shard_nbytes);
ZERO_FIELD(zero_verify_result, struct_size, 0);
ZERO_FIELD(zero_verify_result, found, 8);
ZERO_FIELD(zero_verify_result, chunk_count, 16);
ZERO_FIELD(zero_verify_result, rank, 24);
ZERO_FIELD(zero_verify_result, other_rank, 32);
ZERO_FIELD(zero_verify_result, param, 40);
ZERO_FIELD(zero_verify_result, slot, 48);
ZERO_FIELD(zero_verify_result, offset, 56);
ZERO_FIELD(zero_verify_result, count, 64);
ZERO_FIELD(zero_verify_result, replica_nbytes, 72);
ZERO_FIELD(zero_verify_result, shard_nbytes, 80);

ZERO_STRUCT(zero_memory_stats, 40, constant_nbytes);
ZERO_FIELD(zero_memory_stats, struct_size, 0);
ZERO_FIELD(zero_memory_stats, now_nbytes, 8);
ZERO_FIELD(zero_memory_stats, peak_nbytes, 16);
ZERO_FIELD(zero_memory_stats, formula_nbytes, 24);
ZERO_FIELD(zero_memory_stats, constant_nbytes, 32);

ZERO_STRUCT(zero_traffic_stats, 32, sent_nbytes);
ZERO_FIELD(zero_traffic_stats, struct_size, 0);
ZERO_FIELD(zero_traffic_stats, call_count, 8);
ZERO_FIELD(zero_traffic_stats, sent_elements, 16);
ZERO_FIELD(zero_traffic_stats, sent_nbytes, 24);

ZERO_STRUCT(zero_step_stats, 64, overlap_active);
ZERO_FIELD(zero_step_stats, struct_size, 0);
ZERO_FIELD(zero_step_stats, step_count, 8);
ZERO_FIELD(zero_step_stats, reduce_ns, 16);
ZERO_FIELD(zero_step_stats, apply_ns, 24);
ZERO_FIELD(zero_step_stats, gather_ns, 32);
ZERO_FIELD(zero_step_stats, stalled_nbytes, 40);
ZERO_FIELD(zero_step_stats, pool_grow_count, 48);
ZERO_FIELD(zero_step_stats, overlap_active, 56);

ZERO_STRUCT(zero_server_result, 128, age_16_count);
ZERO_FIELD(zero_server_result, struct_size, 0);
ZERO_FIELD(zero_server_result, push_count, 8);
ZERO_FIELD(zero_server_result, pull_count, 16);
ZERO_FIELD(zero_server_result, skipped_count, 24);
ZERO_FIELD(zero_server_result, waited_count, 32);
ZERO_FIELD(zero_server_result, left_count, 40);
ZERO_FIELD(zero_server_result, lost_count, 48);
ZERO_FIELD(zero_server_result, received_nbytes, 56);
ZERO_FIELD(zero_server_result, sent_nbytes, 64);
ZERO_FIELD(zero_server_result, greatest_age, 72);
ZERO_FIELD(zero_server_result, age_0_count, 80);
ZERO_FIELD(zero_server_result, age_1_count, 88);
ZERO_FIELD(zero_server_result, age_2_count, 96);
ZERO_FIELD(zero_server_result, age_4_count, 104);
ZERO_FIELD(zero_server_result, age_8_count, 112);
ZERO_FIELD(zero_server_result, age_16_count, 120);

ZERO_STRUCT(zero_checkpoint_result, 112, stall_ns);
ZERO_FIELD(zero_checkpoint_result, struct_size, 0);
ZERO_FIELD(zero_checkpoint_result, step, 8);
ZERO_FIELD(zero_checkpoint_result, nbytes, 16);
ZERO_FIELD(zero_checkpoint_result, file_count, 24);
ZERO_FIELD(zero_checkpoint_result, write_ns, 32);
ZERO_FIELD(zero_checkpoint_result, sync_ns, 40);
ZERO_FIELD(zero_checkpoint_result, commit_ns, 48);
ZERO_FIELD(zero_checkpoint_result, direct, 56);
ZERO_FIELD(zero_checkpoint_result, missing, 64);
ZERO_FIELD(zero_checkpoint_result, extra, 72);
ZERO_FIELD(zero_checkpoint_result, converted, 80);
ZERO_FIELD(zero_checkpoint_result, fallback, 88);
ZERO_FIELD(zero_checkpoint_result, snapshot_nbytes, 96);
ZERO_FIELD(zero_checkpoint_result, stall_ns, 104);
