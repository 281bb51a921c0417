/*
 * The interface that every binding comes from. SWIG turns it into the C layers of Go and Python; its parse tree goes to gen/generate.py, which
 * writes the Rust and Julia layers, and constants and structs for all (bindings/README.md). What C's declarations do not say stands here:
 * which pointer is an array and where its length is, which calls wait for other ranks, who owns a handle, what a handle keeps alive.
 */
%module zero

/*
 * Arrays: a pointer and its length in elements, side by side. "in" is read, "out" is written, "text" receives a text and says what it needs.
 * The patterns hold for every function whose parameters have these types and names.
 */
%typemap(zero) (const void *send, int64_t send_count) "in";
%typemap(zero) (void *recv, int64_t recv_count) "out";
%typemap(zero) (const void *data, int64_t count) "in";
%typemap(zero) (void *data, int64_t count) "out";
%typemap(zero) (void *dst, int64_t dst_count) "out";
%typemap(zero) (const int64_t *shape, int64_t ndim) "in";
%typemap(zero) (const int64_t *ids, int64_t count) "in";
%typemap(zero) (char *out, int64_t out_nbytes, int64_t *out_needed) "text";
%typemap(zero) (char *out, int64_t out_nbytes) "text";

/* Calls that wait for other ranks and have a twin that does not; what the twin's request yields, when it yields something. */
%define ZERO_BLOCKING(function)
%feature("zero:blocking", "nothing") function;
%enddef
%define ZERO_BLOCKING_MAKES(function, what)
%feature("zero:blocking", #what) function;
%newobject function;
%enddef
ZERO_BLOCKING_MAKES(zero_group_create_local, group)
ZERO_BLOCKING_MAKES(zero_group_create_mpi, group)
ZERO_BLOCKING_MAKES(zero_group_create_nccl, group)
ZERO_BLOCKING_MAKES(zero_group_create_env, group)
ZERO_BLOCKING_MAKES(zero_group_split, group)
ZERO_BLOCKING(zero_group_all_reduce)
ZERO_BLOCKING(zero_group_reduce_scatter)
ZERO_BLOCKING(zero_group_all_gather)
ZERO_BLOCKING(zero_group_broadcast)
ZERO_BLOCKING(zero_group_reduce)
ZERO_BLOCKING(zero_group_gather)
ZERO_BLOCKING(zero_group_scatter)
ZERO_BLOCKING(zero_group_all_to_all)
ZERO_BLOCKING(zero_group_send)
ZERO_BLOCKING(zero_group_recv)
ZERO_BLOCKING(zero_group_barrier)
ZERO_BLOCKING(zero_group_balance)
ZERO_BLOCKING_MAKES(zero_buffer_create, buffer)
ZERO_BLOCKING(zero_buffer_whole_acquire)
ZERO_BLOCKING(zero_buffer_reduce_scatter)
ZERO_BLOCKING(zero_buffer_read)
ZERO_BLOCKING(zero_buffer_write)
ZERO_BLOCKING(zero_optimizer_seal)
ZERO_BLOCKING(zero_optimizer_begin)
ZERO_BLOCKING(zero_optimizer_sync_module_buffers)
ZERO_BLOCKING(zero_optimizer_param_acquire)
ZERO_BLOCKING(zero_optimizer_micro_step)
ZERO_BLOCKING(zero_optimizer_step)
ZERO_BLOCKING(zero_optimizer_sync)
ZERO_BLOCKING(zero_optimizer_reduce)
ZERO_BLOCKING(zero_optimizer_apply)
ZERO_BLOCKING(zero_optimizer_gather)
ZERO_BLOCKING(zero_optimizer_read)
ZERO_BLOCKING(zero_optimizer_write)
ZERO_BLOCKING(zero_optimizer_verify)
ZERO_BLOCKING(zero_optimizer_save)
ZERO_BLOCKING(zero_optimizer_resume)
ZERO_BLOCKING(zero_checkpoint_save)
ZERO_BLOCKING(zero_checkpoint_load)
ZERO_BLOCKING(zero_checkpoint_export)
ZERO_BLOCKING(zero_server_seal)
ZERO_BLOCKING(zero_server_run)
ZERO_BLOCKING(zero_server_push)
ZERO_BLOCKING(zero_server_pull)
ZERO_BLOCKING(zero_server_leave)

/* Handles: the caller owns what these make. A child keeps what it was made from alive. */
%newobject zero_config_create;
%newobject zero_optimizer_create;
%newobject zero_checkpoint_create;
%newobject zero_save_open;
%newobject zero_server_create;
%newobject zero_request_group;
%newobject zero_request_buffer;
%feature("zero:keeps", "group") zero_group_split;
%feature("zero:keeps", "group") zero_buffer_create;
%feature("zero:keeps", "group") zero_optimizer_create;
%feature("zero:keeps", "group") zero_optimizer_set_model_group;
%feature("zero:keeps", "group") zero_checkpoint_create;
%feature("zero:keeps", "group") zero_server_create;
%feature("zero:keeps", "optimizer") zero_checkpoint_add_optimizer;
%feature("zero:keeps", "buffer") zero_checkpoint_add_buffer;

#if defined(SWIGGO)
%include "typemaps/go.i"
#elif defined(SWIGPYTHON)
%include "typemaps/python.i"
#endif

%include <zero/status.h>
%include <zero/dtype.h>
%include <zero/config.h>
%include <zero/request.h>
%include <zero/group.h>
%include <zero/buffer.h>
#if defined(SWIGPYTHON)
ZERO_STREAMS
#endif
%include <zero/optimizer.h>
%include <zero/replicas.h>
%include <zero/stop.h>
%include <zero/slots.h>
%include <zero/graph.h>
%include <zero/checkpoint.h>
%include <zero/save.h>
%include <zero/server.h>
%include <zero/stats.h>
%include <zero/zero.h>
