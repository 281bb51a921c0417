/*
 * The signature of every exported function, declared a second time: a header that disagrees does not compile. A line here never changes.
 */
#include <zero/zero.h>

#ifdef __cplusplus
extern "C" {
#endif

int32_t zero_last_error_copy(char *out, int64_t out_nbytes);
const char *zero_status_name(int32_t status);
int32_t zero_dtype_nbytes(int32_t dtype, int64_t *out_nbytes);
typedef void *(*zero_alloc_fn)(uint64_t nbytes, uint64_t alignment, void *user);
typedef void (*zero_free_fn)(void *data, uint64_t nbytes, void *user);
typedef void (*zero_shared_fn)(int64_t delta_nbytes, void *user);
int32_t zero_config_create(zero_config **out);
int32_t zero_config_set_i64(zero_config *config, int32_t key, int64_t value);
int32_t zero_config_set_f64(zero_config *config, int32_t key, double value);
int32_t zero_config_set_str(zero_config *config, int32_t key, const char *value);
int32_t zero_key_bounds_init(zero_key_bounds *out, uint64_t struct_size);
int32_t zero_config_bounds(int32_t key, zero_key_bounds *out);
int32_t zero_config_set_allocator(zero_config *config, zero_alloc_fn alloc, zero_free_fn free_fn, zero_shared_fn shared, void *user);
void zero_config_release(zero_config *config);
int32_t zero_request_test(zero_request *request, int64_t *out_done);
int32_t zero_request_wait(zero_request *request);
int32_t zero_request_group(zero_request *request, zero_group **out);
int32_t zero_request_buffer(zero_request *request, zero_buffer **out);
void zero_request_release(zero_request *request);
int32_t zero_group_create_local(const char *name, int64_t rank, int64_t size, const zero_config *config, zero_group **out);
int32_t zero_group_create_local_async(const char *name, int64_t rank, int64_t size, const zero_config *config, zero_request **out);
int32_t zero_group_create_mpi(int64_t comm, const zero_config *config, zero_group **out);
int32_t zero_group_create_mpi_async(int64_t comm, const zero_config *config, zero_request **out);
int32_t zero_group_create_nccl(const char *id, int64_t rank, int64_t size, const zero_config *config, zero_group **out);
int32_t zero_group_create_nccl_async(const char *id, int64_t rank, int64_t size, const zero_config *config, zero_request **out);
int32_t zero_group_unique_id(const zero_config *config, char *out, int64_t out_nbytes, int64_t *out_needed);
int32_t zero_group_create_env(const zero_config *config, zero_group **out);
int32_t zero_group_create_env_async(const zero_config *config, zero_request **out);
int32_t zero_group_launcher(char *out, int64_t out_nbytes, int64_t *out_needed);
int32_t zero_group_split(zero_group *group, int64_t color, int64_t key, zero_group **out);
int32_t zero_group_split_async(zero_group *group, int64_t color, int64_t key, zero_request **out);
int32_t zero_group_rank(const zero_group *group, int64_t *out);
int32_t zero_group_size(const zero_group *group, int64_t *out);
int32_t zero_group_local_rank(const zero_group *group, int64_t *out);
int32_t zero_group_local_size(const zero_group *group, int64_t *out);
int32_t zero_group_host_count(const zero_group *group, int64_t *out);
int32_t zero_group_share(const zero_group *group, int64_t count, int64_t rank, int64_t *out_offset, int64_t *out_count);
int32_t zero_group_status(zero_group *group);
int32_t zero_group_abort(zero_group *group, const char *reason);
int32_t zero_group_set_deadline(zero_group *group, int64_t deadline_ms);
int32_t zero_group_quiet(const zero_group *group, int64_t *out);
int32_t zero_group_all_reduce(zero_group *group, const void *send, int64_t send_count, void *recv, int64_t recv_count, int32_t dtype,
    int32_t op, void *stream);
int32_t zero_group_all_reduce_async(zero_group *group, const void *send, int64_t send_count, void *recv, int64_t recv_count,
    int32_t dtype, int32_t op, void *stream, zero_request **out);
int32_t zero_group_reduce_scatter(zero_group *group, const void *send, int64_t send_count, void *recv, int64_t recv_count, int32_t dtype,
    int32_t op, void *stream);
int32_t zero_group_reduce_scatter_async(zero_group *group, const void *send, int64_t send_count, void *recv, int64_t recv_count,
    int32_t dtype, int32_t op, void *stream, zero_request **out);
int32_t zero_group_all_gather(zero_group *group, const void *send, int64_t send_count, void *recv, int64_t recv_count, int32_t dtype,
    void *stream);
int32_t zero_group_all_gather_async(zero_group *group, const void *send, int64_t send_count, void *recv, int64_t recv_count,
    int32_t dtype, void *stream, zero_request **out);
int32_t zero_group_broadcast(zero_group *group, void *data, int64_t count, int32_t dtype, int64_t root, void *stream);
int32_t zero_group_broadcast_async(zero_group *group, void *data, int64_t count, int32_t dtype, int64_t root, void *stream,
    zero_request **out);
int32_t zero_group_reduce(zero_group *group, const void *send, int64_t send_count, void *recv, int64_t recv_count, int32_t dtype,
    int32_t op, int64_t root, void *stream);
int32_t zero_group_reduce_async(zero_group *group, const void *send, int64_t send_count, void *recv, int64_t recv_count, int32_t dtype,
    int32_t op, int64_t root, void *stream, zero_request **out);
int32_t zero_group_gather(zero_group *group, const void *send, int64_t send_count, void *recv, int64_t recv_count, int64_t total,
    int32_t dtype, int64_t root, void *stream);
int32_t zero_group_gather_async(zero_group *group, const void *send, int64_t send_count, void *recv, int64_t recv_count, int64_t total,
    int32_t dtype, int64_t root, void *stream, zero_request **out);
int32_t zero_group_scatter(zero_group *group, const void *send, int64_t send_count, void *recv, int64_t recv_count, int64_t total,
    int32_t dtype, int64_t root, void *stream);
int32_t zero_group_scatter_async(zero_group *group, const void *send, int64_t send_count, void *recv, int64_t recv_count, int64_t total,
    int32_t dtype, int64_t root, void *stream, zero_request **out);
int32_t zero_group_all_to_all(zero_group *group, const void *send, int64_t send_count, void *recv, int64_t recv_count, int32_t dtype,
    void *stream);
int32_t zero_group_all_to_all_async(zero_group *group, const void *send, int64_t send_count, void *recv, int64_t recv_count,
    int32_t dtype, void *stream, zero_request **out);
int32_t zero_group_send(zero_group *group, const void *send, int64_t send_count, int32_t dtype, int64_t peer, void *stream);
int32_t zero_group_send_async(zero_group *group, const void *send, int64_t send_count, int32_t dtype, int64_t peer, void *stream,
    zero_request **out);
int32_t zero_group_recv(zero_group *group, void *recv, int64_t recv_count, int32_t dtype, int64_t peer, void *stream);
int32_t zero_group_recv_async(zero_group *group, void *recv, int64_t recv_count, int32_t dtype, int64_t peer, void *stream,
    zero_request **out);
int32_t zero_group_barrier(zero_group *group);
int32_t zero_group_barrier_async(zero_group *group, zero_request **out);
int32_t zero_group_balance(zero_group *group, double seconds, int64_t items, int64_t total, int64_t unit, int64_t *out);
int32_t zero_group_balance_async(zero_group *group, double seconds, int64_t items, int64_t total, int64_t unit, int64_t *out_share,
    zero_request **out);
void zero_group_release(zero_group *group);
int32_t zero_buffer_create(zero_group *group, const zero_config *config, int32_t dtype, int64_t count, zero_buffer **out);
int32_t zero_buffer_create_async(zero_group *group, const zero_config *config, int32_t dtype, int64_t count, zero_request **out);
int32_t zero_buffer_shard(const zero_buffer *buffer, void **out_data, int64_t *out_offset, int64_t *out_count);
int32_t zero_buffer_whole_acquire(zero_buffer *buffer, void *stream, void **out_data);
int32_t zero_buffer_whole_acquire_async(zero_buffer *buffer, void *stream, void **out_data, zero_request **out);
int32_t zero_buffer_whole_release(zero_buffer *buffer);
int32_t zero_buffer_reduce_scatter(zero_buffer *buffer, const void *data, int64_t count, int32_t op, void *stream);
int32_t zero_buffer_reduce_scatter_async(zero_buffer *buffer, const void *data, int64_t count, int32_t op, void *stream,
    zero_request **out);
int32_t zero_buffer_read(zero_buffer *buffer, int64_t offset, void *data, int64_t count, void *stream);
int32_t zero_buffer_read_async(zero_buffer *buffer, int64_t offset, void *data, int64_t count, void *stream, zero_request **out);
int32_t zero_buffer_write(zero_buffer *buffer, int64_t offset, const void *data, int64_t count, void *stream);
int32_t zero_buffer_write_async(zero_buffer *buffer, int64_t offset, const void *data, int64_t count, void *stream, zero_request **out);
void zero_buffer_release(zero_buffer *buffer);
int32_t zero_step_result_init(zero_step_result *out, uint64_t struct_size);
int32_t zero_verify_result_init(zero_verify_result *out, uint64_t struct_size);
int32_t zero_optimizer_create(zero_group *group, const zero_config *config, zero_optimizer **out);
int32_t zero_optimizer_add_set(zero_optimizer *optimizer, const zero_config *config, int64_t *out_set);
int32_t zero_optimizer_set_model_group(zero_optimizer *optimizer, zero_group *group);
int32_t zero_optimizer_add_param(zero_optimizer *optimizer, const zero_config *config, const char *name, int32_t dtype,
    const int64_t *shape, int64_t ndim, int64_t *out_id);
int32_t zero_optimizer_set_order(zero_optimizer *optimizer, const int64_t *ids, int64_t count);
int32_t zero_optimizer_add_module_buffer(zero_optimizer *optimizer, const char *name, int32_t dtype, const int64_t *shape, int64_t ndim,
    int32_t rule, int64_t *out_id);
int32_t zero_optimizer_set_gather_order(zero_optimizer *optimizer, const int64_t *ids, int64_t count);
int32_t zero_optimizer_seal(zero_optimizer *optimizer);
int32_t zero_optimizer_seal_async(zero_optimizer *optimizer, zero_request **out);
int32_t zero_optimizer_begin(zero_optimizer *optimizer, int32_t source);
int32_t zero_optimizer_begin_async(zero_optimizer *optimizer, int32_t source, zero_request **out);
int32_t zero_optimizer_init_param(zero_optimizer *optimizer, int64_t id, int32_t initialiser, double a, double b, int64_t seed);
int32_t zero_optimizer_module_buffer(zero_optimizer *optimizer, int64_t id, void **out_data, int64_t *out_count);
int32_t zero_optimizer_sync_module_buffers(zero_optimizer *optimizer, void *stream);
int32_t zero_optimizer_sync_module_buffers_async(zero_optimizer *optimizer, void *stream, zero_request **out);
int32_t zero_optimizer_param_acquire(zero_optimizer *optimizer, int64_t id, void *dst, int64_t dst_count, void *stream, void **out_data);
int32_t zero_optimizer_param_acquire_async(zero_optimizer *optimizer, int64_t id, void *dst, int64_t dst_count, void *stream,
    void **out_data, zero_request **out);
int32_t zero_optimizer_param_release(zero_optimizer *optimizer, int64_t id);
int32_t zero_optimizer_grad_acquire(zero_optimizer *optimizer, int64_t id, void *stream, void **out_data, int64_t *out_accumulate);
int32_t zero_optimizer_grad_ready(zero_optimizer *optimizer, int64_t id, const void *grad, int64_t offset, int64_t count, void *stream);
int32_t zero_optimizer_grad_ready_rows(zero_optimizer *optimizer, int64_t id, const int64_t *rows, const void *values, int64_t count,
    void *stream);
int32_t zero_optimizer_grads_ready(zero_optimizer *optimizer, const int64_t *ids, int64_t count, const void *const *grads, void *stream);
int32_t zero_optimizer_set_weight(zero_optimizer *optimizer, double weight);
int32_t zero_optimizer_micro_step(zero_optimizer *optimizer, int32_t kind, void *stream);
int32_t zero_optimizer_micro_step_async(zero_optimizer *optimizer, int32_t kind, void *stream, zero_request **out);
int32_t zero_optimizer_step(zero_optimizer *optimizer, void *stream, zero_step_result *out_result);
int32_t zero_optimizer_step_async(zero_optimizer *optimizer, void *stream, zero_step_result *out_result, zero_request **out);
int32_t zero_optimizer_sync(zero_optimizer *optimizer, void *stream, zero_step_result *out_result);
int32_t zero_optimizer_sync_async(zero_optimizer *optimizer, void *stream, zero_step_result *out_result, zero_request **out);
int32_t zero_optimizer_reduce(zero_optimizer *optimizer, void *stream, zero_step_result *out_result);
int32_t zero_optimizer_reduce_async(zero_optimizer *optimizer, void *stream, zero_step_result *out_result, zero_request **out);
int32_t zero_optimizer_apply(zero_optimizer *optimizer, void *stream);
int32_t zero_optimizer_apply_async(zero_optimizer *optimizer, void *stream, zero_request **out);
int32_t zero_optimizer_gather(zero_optimizer *optimizer, void *stream);
int32_t zero_optimizer_gather_async(zero_optimizer *optimizer, void *stream, zero_request **out);
int32_t zero_optimizer_request_stop(zero_optimizer *optimizer, int64_t reason);
int32_t zero_optimizer_view_count(const zero_optimizer *optimizer, int64_t *out_count);
int32_t zero_optimizer_view(zero_optimizer *optimizer, int64_t index, int32_t slot, int64_t *out_param, int64_t *out_offset,
    int64_t *out_count, void **out_data);
int32_t zero_optimizer_set_f64(zero_optimizer *optimizer, int64_t set, int32_t key, double value);
int32_t zero_optimizer_get_f64(const zero_optimizer *optimizer, int64_t set, int32_t key, double *out);
int32_t zero_optimizer_set_i64(zero_optimizer *optimizer, int32_t key, int64_t value);
int32_t zero_optimizer_get_i64(const zero_optimizer *optimizer, int32_t key, int64_t *out);
int32_t zero_optimizer_slot_count(const zero_optimizer *optimizer, int64_t id, int64_t *out_count);
int32_t zero_optimizer_slot(const zero_optimizer *optimizer, int64_t id, int64_t index, int64_t *out_slot, int64_t *out_dtype,
    int64_t *out_count);
int32_t zero_optimizer_read(zero_optimizer *optimizer, int64_t id, int32_t slot, int64_t offset, void *data, int64_t count, void *stream);
int32_t zero_optimizer_read_async(zero_optimizer *optimizer, int64_t id, int32_t slot, int64_t offset, void *data, int64_t count,
    void *stream, zero_request **out);
int32_t zero_optimizer_write(zero_optimizer *optimizer, int64_t id, int32_t slot, int64_t offset, const void *data, int64_t count,
    void *stream);
int32_t zero_optimizer_write_async(zero_optimizer *optimizer, int64_t id, int32_t slot, int64_t offset, const void *data, int64_t count,
    void *stream, zero_request **out);
int32_t zero_optimizer_verify(zero_optimizer *optimizer, void *stream, zero_verify_result *out_result);
int32_t zero_optimizer_verify_async(zero_optimizer *optimizer, void *stream, zero_verify_result *out_result, zero_request **out);
void zero_optimizer_release(zero_optimizer *optimizer);
int32_t zero_optimizer_result(zero_optimizer *optimizer, void *stream, zero_step_result *out_result);
int32_t zero_optimizer_refresh(zero_optimizer *optimizer, void *stream);
int32_t zero_optimizer_loss_scale_address(zero_optimizer *optimizer, void *stream, void **out_address);
int32_t zero_memory_stats_init(zero_memory_stats *out, uint64_t struct_size);
int32_t zero_stats_optimizer_memory(const zero_optimizer *optimizer, int32_t category, zero_memory_stats *out);
int32_t zero_stats_buffer_memory(const zero_buffer *buffer, int32_t category, zero_memory_stats *out);
int32_t zero_traffic_stats_init(zero_traffic_stats *out, uint64_t struct_size);
int32_t zero_stats_group_traffic(const zero_group *group, int32_t operation, zero_traffic_stats *out);
int32_t zero_stats_optimizer_traffic(const zero_optimizer *optimizer, int32_t operation, zero_traffic_stats *out);
int32_t zero_step_stats_init(zero_step_stats *out, uint64_t struct_size);
int32_t zero_stats_optimizer_step(const zero_optimizer *optimizer, zero_step_stats *out);
int32_t zero_stats_optimizer_trace(const zero_optimizer *optimizer, char *out, int64_t out_nbytes, int64_t *out_needed);
int32_t zero_describe_library(char *out, int64_t out_nbytes, int64_t *out_needed);
int32_t zero_describe_group(const zero_group *group, char *out, int64_t out_nbytes, int64_t *out_needed);
int32_t zero_describe_optimizer(const zero_optimizer *optimizer, char *out, int64_t out_nbytes, int64_t *out_needed);
int32_t zero_checkpoint_result_init(zero_checkpoint_result *out, uint64_t struct_size);
int32_t zero_optimizer_save(zero_optimizer *optimizer, const char *folder, void *stream);
int32_t zero_optimizer_save_async(zero_optimizer *optimizer, const char *folder, void *stream, zero_request **out);
int32_t zero_optimizer_resume(zero_optimizer *optimizer, const char *folder, void *stream, int64_t *out_found);
int32_t zero_optimizer_resume_async(zero_optimizer *optimizer, const char *folder, void *stream, int64_t *out_found, zero_request **out);
int32_t zero_checkpoint_create(zero_group *group, const zero_config *config, zero_checkpoint **out);
int32_t zero_checkpoint_add_optimizer(zero_checkpoint *checkpoint, const char *prefix, zero_optimizer *optimizer);
int32_t zero_checkpoint_add_buffer(zero_checkpoint *checkpoint, const char *name, zero_buffer *buffer);
int32_t zero_checkpoint_add_tensor(zero_checkpoint *checkpoint, const char *name, int32_t dtype, const int64_t *shape, int64_t ndim, void *data, int32_t scope);
int32_t zero_checkpoint_set_text(zero_checkpoint *checkpoint, const char *key, const char *text);
int32_t zero_checkpoint_get_text(const zero_checkpoint *checkpoint, const char *key, char *out, int64_t out_nbytes, int64_t *out_needed);
int32_t zero_checkpoint_rename(zero_checkpoint *checkpoint, const char *in_file, const char *here);
int32_t zero_checkpoint_save(zero_checkpoint *checkpoint, const char *folder, void *stream, zero_checkpoint_result *out_result);
int32_t zero_checkpoint_save_async(zero_checkpoint *checkpoint, const char *folder, void *stream, zero_checkpoint_result *out_result, zero_request **out);
int32_t zero_checkpoint_load(zero_checkpoint *checkpoint, const char *folder, int32_t part, void *stream, zero_checkpoint_result *out_result);
int32_t zero_checkpoint_load_async(zero_checkpoint *checkpoint, const char *folder, int32_t part, void *stream, zero_checkpoint_result *out_result, zero_request **out);
int32_t zero_checkpoint_export(zero_checkpoint *checkpoint, const char *path, int32_t dtype, void *stream, zero_checkpoint_result *out_result);
int32_t zero_checkpoint_export_async(zero_checkpoint *checkpoint, const char *path, int32_t dtype, void *stream, zero_checkpoint_result *out_result, zero_request **out);
int32_t zero_checkpoint_skipped(const zero_checkpoint *checkpoint, char *out, int64_t out_nbytes, int64_t *out_needed);
void zero_checkpoint_release(zero_checkpoint *checkpoint);
int64_t zero_abi_version(void);
const char *zero_version(void);
int64_t zero_has_feature(int32_t feature);

int32_t zero_save_open(const char *path, zero_save **out);
int32_t zero_save_list(const char *folder, int32_t form, char *out, int64_t out_nbytes, int64_t *out_needed);
int32_t zero_save_describe(const zero_save *save, int32_t form, char *out, int64_t out_nbytes, int64_t *out_needed);
int32_t zero_save_verify(zero_save *save);
int32_t zero_save_compare(zero_save *save, zero_save *other, int64_t *out_count);
int32_t zero_save_differences(const zero_save *save, int32_t form, char *out, int64_t out_nbytes, int64_t *out_needed);
int32_t zero_save_export(zero_save *save, const char *path);
int32_t zero_save_prunable(const char *folder, int64_t keep, char *out, int64_t out_nbytes, int64_t *out_needed);
int32_t zero_save_remove(const char *folder, const char *name);
int32_t zero_save_progress(const zero_save *save, int64_t *out_done, int64_t *out_total);
void zero_save_release(zero_save *save);
int32_t zero_server_result_init(zero_server_result *out, uint64_t struct_size);
int32_t zero_server_create(zero_group *group, const zero_config *config, int64_t count, zero_server **out);
int32_t zero_server_seal(zero_server *server);
int32_t zero_server_seal_async(zero_server *server, zero_request **out);
int32_t zero_server_shard(const zero_server *server, void **out_data, int64_t *out_offset, int64_t *out_count);
int32_t zero_server_replay(zero_server *server, const void *data, int64_t count);
int32_t zero_server_record(const zero_server *server, void *data, int64_t count, int64_t *out_count);
int32_t zero_server_run(zero_server *server, zero_server_result *out_result);
int32_t zero_server_run_async(zero_server *server, zero_server_result *out_result, zero_request **out);
int32_t zero_server_push(zero_server *server, const void *data, int64_t count);
int32_t zero_server_push_async(zero_server *server, const void *data, int64_t count, zero_request **out);
int32_t zero_server_pull(zero_server *server, void *data, int64_t count);
int32_t zero_server_pull_async(zero_server *server, void *data, int64_t count, zero_request **out);
int32_t zero_server_leave(zero_server *server);
int32_t zero_server_leave_async(zero_server *server, zero_request **out);
void zero_server_release(zero_server *server);

#ifdef __cplusplus
}
#endif
