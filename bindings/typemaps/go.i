/*
 * Go: every C type in use has its own Go type here, so that nothing rests on SWIG's guesses, which differ between its versions and are wrong
 * for 32-bit integers behind pointers and for pointers to handles. The hand-written files of package czero declare what is named here:
 * Failure and newFailure, keep, and a type per kind of handle. Its generated.go holds constants and structs.
 */
%insert(cgo_comment) %{
#cgo !zero_flags pkg-config: zero
#cgo zero_flags LDFLAGS: -lzero
%}

/* Constants and structs come from generated.go. Goroutines wait in the blocking calls, so only saves have a form with a
   request. */
%rename("$ignore", %$isclass) "";
%rename("$ignore", %$isenum) "";
%rename("$ignore", %$isenumitem) "";
%rename("$ignore", %$isconstant) "";
%rename("$ignore", %$isfunction, regextarget=1) "_async$";
%rename("%s") zero_optimizer_save_async;
%rename("%s") zero_checkpoint_save_async;
%ignore zero_request_test;
%ignore zero_request_group;
%ignore zero_request_buffer;
%ignore zero_last_error_copy;
%warnfilter(SWIGWARN_PARSE_KEYWORD) zero_key_bounds::type;

%{
#include <zero/zero.h>

/*
 * What a failed call leaves, "CODE TEXT", or nothing after success. Fetched in the same native call, because libzero keeps it per thread
 * and the goroutine may be on another one by its next call. newFailure frees it.
 */
static _gostring_ take_failure(int32_t status) {
  _gostring_ nothing = {NULL, 0};
  char text[4096];
  int length;
  if (status == ZERO_OK) return nothing;
  length = snprintf(text, sizeof text, "%d ", (int)status);
  /* Calls that a signal handler may make leave no text. */
  if (zero_last_error_copy(text + length, (int64_t)sizeof text - length) != status) strcpy(text + length, zero_status_name(status));
  return Swig_AllocateString(text, strlen(text));
}
%}

/* A result of int32_t is a status. */
%typemap(gotype) int32_t "*Failure"
%typemap(imtype) int32_t "string"
%typemap(out, fragment="AllocateString") int32_t %{ $result = take_failure($1); %}
%typemap(goout) int32_t %{ $result = newFailure($1) %}

/* As a parameter it is a number. One with a name that is missing here would become a *Failure, which does not compile. */
%define ZERO_INT32(name)
%typemap(gotype) int32_t name "int32"
%typemap(imtype) int32_t name "int32"
%typemap(in) int32_t name %{ $1 = (int32_t)$input; %}
%enddef
ZERO_INT32(category)
ZERO_INT32(dtype)
ZERO_INT32(feature)
ZERO_INT32(form)
ZERO_INT32(initialiser)
ZERO_INT32(key)
ZERO_INT32(kind)
ZERO_INT32(op)
ZERO_INT32(operation)
ZERO_INT32(part)
ZERO_INT32(rule)
ZERO_INT32(scope)
ZERO_INT32(slot)
ZERO_INT32(source)
ZERO_INT32(status)

%apply long long { int64_t }
%apply unsigned long long { uint64_t }

/*
 * Memory is a pointer in Go and a number on the way to C: keep() holds the pointer alive and on the heap until the call has returned, and
 * cgo does not look for Go pointers in memory that by its type has none. Its search takes in the whole allocation, and so would refuse an
 * array that lies in a struct beside pointers, which the rules for passing pointers allow.
 */
%define ZERO_MEMORY(c_type, go_type)
%typemap(gotype) c_type go_type
%typemap(imtype) c_type "uintptr"
%typemap(goin) c_type
%{
	defer keep(unsafe.Pointer($input))
	$result = uintptr(unsafe.Pointer($input))
%}
%typemap(in) c_type %{ $1 = ($1_ltype)$input; %}
%enddef
ZERO_MEMORY(const void *, "unsafe.Pointer")
ZERO_MEMORY(void *, "unsafe.Pointer")
ZERO_MEMORY(void **, "*uintptr")
ZERO_MEMORY(const void *const *, "*uintptr")
ZERO_MEMORY(char *out, "*byte")
%typemap(freearg) char *out ""
ZERO_MEMORY(const int64_t *, "*int64")
ZERO_MEMORY(int64_t *, "*int64")
ZERO_MEMORY(double *, "*float64")
ZERO_MEMORY(zero_key_bounds *, "*KeyBounds")
ZERO_MEMORY(zero_step_result *, "*StepResult")
ZERO_MEMORY(zero_verify_result *, "*VerifyResult")
ZERO_MEMORY(zero_checkpoint_result *, "*CheckpointResult")
ZERO_MEMORY(zero_server_result *, "*ServerResult")
ZERO_MEMORY(zero_memory_stats *, "*MemoryStats")
ZERO_MEMORY(zero_traffic_stats *, "*TrafficStats")
ZERO_MEMORY(zero_step_stats *, "*StepStats")

/* Addresses of C functions. */
ZERO_MEMORY(zero_alloc_fn, "unsafe.Pointer")
ZERO_MEMORY(zero_free_fn, "unsafe.Pointer")
ZERO_MEMORY(zero_shared_fn, "unsafe.Pointer")

/* A handle is a number of a type of its own; where one is handed out there is a pointer to such a number. */
%define ZERO_HANDLE(c_type, go_type)
%typemap(gotype) c_type *, const c_type * #go_type
%typemap(imtype) c_type *, const c_type * "uintptr"
%typemap(goin) c_type *, const c_type * %{ $result = uintptr($input) %}
%typemap(in) c_type *, const c_type * %{ $1 = ($1_ltype)$input; %}
ZERO_MEMORY(c_type **, "*" #go_type)
%enddef
ZERO_HANDLE(zero_config, Config)
ZERO_HANDLE(zero_group, Group)
ZERO_HANDLE(zero_buffer, Buffer)
ZERO_HANDLE(zero_optimizer, Optimizer)
ZERO_HANDLE(zero_checkpoint, Checkpoint)
ZERO_HANDLE(zero_save, Save)
ZERO_HANDLE(zero_server, Server)
ZERO_HANDLE(zero_request, Request)

/* Texts are copied for the length of a call; "" is NULL where that means "none". Texts that libzero returns live as long as it does. */
%typemap(in) const char * (char *copy)
%{
  copy = (char *)malloc((size_t)$input.n + 1);
  if (copy == NULL) abort(); /* as Go does */
  memcpy(copy, $input.p, (size_t)$input.n);
  copy[$input.n] = '\0';
  $1 = copy;
%}
%typemap(freearg) const char * %{ free(copy$argnum); %}
%typemap(out) const char *
%{
  $result.p = (char *)$1;
  $result.n = $1 == NULL ? 0 : (intgo)strlen($1);
%}
%typemap(goout) const char * %{ $result = $1 %}
%exception zero_group_create_local %{
  if (*arg1 == '\0') arg1 = NULL;
  $action
%}
%exception zero_group_abort %{
  if (*arg2 == '\0') arg2 = NULL;
  $action
%}
