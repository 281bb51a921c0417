/*
 * Python: handles are capsules, NULL is None; arrays are objects with the buffer protocol, used where they lie; what C returns through
 * pointers is returned. A status that is not ZERO_OK is raised as libzero.Error. The classes of package libzero stand on this module; its
 * generated.py holds enumerations, constants and structs.
 */
%rename("$ignore", %$isclass) "";
%rename("$ignore", %$isenum) "";
%rename("$ignore", %$isenumitem) "";
%rename("$ignore", %$isconstant) "";

/* Threads wait in the blocking calls, which release the interpreter lock, so only saves have a form with a request. */
%rename("$ignore", %$isfunction, regextarget=1) "_async$";
%rename("%s") zero_optimizer_save_async;
%rename("%s") zero_checkpoint_save_async;
%ignore zero_request_group;
%ignore zero_request_buffer;
%ignore zero_request_release;
%ignore zero_config_set_allocator;
%ignore zero_last_error_copy;
%ignore zero_config_release;
%ignore zero_group_release;
%ignore zero_buffer_release;
%ignore zero_optimizer_release;
%ignore zero_checkpoint_release;
%ignore zero_save_release;
%ignore zero_server_release;

/* These neither wait nor work long: to release the lock would cost more than the call. */
%nothread zero_abi_version;
%nothread zero_version;
%nothread zero_status_name;
%nothread zero_dtype_nbytes;
%nothread zero_config_create;
%nothread zero_config_set_i64;
%nothread zero_config_set_f64;
%nothread zero_config_set_str;
%nothread zero_config_bounds;
%nothread zero_key_bounds_init;
%nothread zero_memory_stats_init;
%nothread zero_step_result_init;
%nothread zero_step_stats_init;
%nothread zero_traffic_stats_init;
%nothread zero_verify_result_init;
%nothread zero_checkpoint_result_init;
%nothread zero_server_result_init;
%nothread zero_save_progress;
%nothread zero_optimizer_request_stop;
%nothread zero_group_rank;
%nothread zero_group_size;
%nothread zero_group_local_rank;
%nothread zero_group_local_size;
%nothread zero_group_host_count;
%nothread zero_group_share;
%nothread zero_group_quiet;

%{
#include <string.h>
#include <zero/zero.h>

static PyObject *error_class; /* libzero.Error */
static const Py_buffer no_buffer;

static int find_error_class(void) {
  PyObject *module = PyImport_ImportModule("libzero.error");
  if (module == NULL) return 0;
  error_class = PyObject_GetAttrString(module, "Error");
  Py_DECREF(module);
  return error_class != NULL;
}

/* Raises the last error of the calling thread. Its text is fetched first: any Python code may call libzero again. */
static void raise_error(int32_t status) {
  char text[4096];
  PyObject *error, *decoded;
  /* Calls that a signal handler may make leave no text. */
  if (zero_last_error_copy(text, sizeof text) != status) strcpy(text, zero_status_name(status));
  decoded = PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");
  error = decoded ? PyObject_CallFunction(error_class, "isO", (int)status, zero_status_name(status), decoded) : NULL;
  if (error != NULL) PyErr_SetObject(error_class, error);
  Py_XDECREF(error);
  Py_XDECREF(decoded);
}

/* False, with an exception set, for what is no integer of 64 bits. */
static int take_i64(PyObject *object, int64_t *out) {
  PyObject *index = PyNumber_Index(object);
  if (index == NULL) return 0;
  *out = PyLong_AsLongLong(index);
  Py_DECREF(index);
  return *out != -1 || !PyErr_Occurred();
}

static int take_i32(PyObject *object, int32_t *out) {
  int64_t value;
  if (!take_i64(object, &value)) return 0;
  if (value < INT32_MIN || value > INT32_MAX) {
    PyErr_Format(PyExc_OverflowError, "%lld has more than 32 bits", (long long)value);
    return 0;
  }
  *out = (int32_t)value;
  return 1;
}

/* A sequence of integers as an array, which the caller frees. The tuple stays as it is whatever Python code an item's __index__ runs. */
static int take_integers(PyObject *object, int64_t **out, int64_t *out_count) {
  PyObject *items = PySequence_Tuple(object);
  int good = items != NULL;
  if (!good) return 0;
  *out_count = PyTuple_GET_SIZE(items);
  *out = PyMem_New(int64_t, *out_count);
  if (*out == NULL) PyErr_NoMemory();
  good = *out != NULL;
  for (Py_ssize_t i = 0; good && i < *out_count; i++) good = take_i64(PyTuple_GET_ITEM(items, i), *out + i);
  Py_DECREF(items);
  return good;
}

/* A capsule gives its handle back when nothing refers to it any more: a call that is interrupted once it has made one loses nothing. Giving
   back may wait for other ranks. */
#define ZERO_OWNED(type)                                                  \
  static void type##_end(PyObject *capsule) {                             \
    type *handle = (type *)PyCapsule_GetPointer(capsule, #type);          \
    SWIG_PYTHON_THREAD_BEGIN_ALLOW;                                       \
    type##_release(handle);                                               \
    SWIG_PYTHON_THREAD_END_ALLOW;                                         \
  }                                                                       \
  static PyObject *type##_owned(type *handle) {                           \
    if (handle == NULL) return SWIG_Py_Void();                            \
    return PyCapsule_New(handle, #type, type##_end);                      \
  }
ZERO_OWNED(zero_config)
ZERO_OWNED(zero_group)
ZERO_OWNED(zero_buffer)
ZERO_OWNED(zero_optimizer)
ZERO_OWNED(zero_checkpoint)
ZERO_OWNED(zero_save)
ZERO_OWNED(zero_server)

/* A request's capsule keeps the struct that the operation fills. The end of the capsule waits for the operation first. */
static void end_request(PyObject *capsule) {
  zero_request *handle = (zero_request *)PyCapsule_GetPointer(capsule, "zero_request");
  PyObject *filled = (PyObject *)PyCapsule_GetContext(capsule);
  SWIG_PYTHON_THREAD_BEGIN_ALLOW;
  zero_request_release(handle);
  SWIG_PYTHON_THREAD_END_ALLOW;
  Py_XDECREF(filled);
}

static PyObject *own_request(zero_request *handle, PyObject *filled) {
  PyObject *capsule;
  if (handle == NULL) return SWIG_Py_Void();
  capsule = PyCapsule_New(handle, "zero_request", end_request);
  if (capsule == NULL) {
    zero_request_release(handle);
  } else if (filled != NULL) {
    Py_INCREF(filled);
    PyCapsule_SetContext(capsule, filled);
  }
  return capsule;
}

/* None is NULL. */
static int take_handle(PyObject *object, const char *type, void **out) {
  const char *found = PyCapsule_CheckExact(object) ? PyCapsule_GetName(object) : Py_TYPE(object)->tp_name;
  *out = NULL;
  if (object == Py_None) return 1;
  if (PyCapsule_IsValid(object, type)) *out = PyCapsule_GetPointer(object, type);
  else PyErr_Format(PyExc_TypeError, "a %s is needed, not a %s", type, found ? found : "capsule without a name");
  return *out != NULL;
}

/* None is NULL. C would see only what comes before a NUL. */
static int take_text(PyObject *object, const char **out) {
  Py_ssize_t length;
  *out = NULL;
  if (object == Py_None) return 1;
  if (!PyUnicode_Check(object)) {
    PyErr_Format(PyExc_TypeError, "a text is needed, not %.80s", Py_TYPE(object)->tp_name);
    return 0;
  }
  *out = PyUnicode_AsUTF8AndSize(object, &length);
  if (*out == NULL) return 0;
  if (strlen(*out) == (size_t)length) return 1;
  PyErr_SetString(PyExc_ValueError, "the text holds a NUL");
  return 0;
}

/* The memory of an array; None is no memory. The view is released by whoever gave it, also after a failure. */
static int take_memory(PyObject *object, int writable, Py_buffer *view) {
  if (object == Py_None) return 1;
  if (PyObject_GetBuffer(object, view, PyBUF_STRIDED_RO) != 0) return 0;
  if (writable && view->readonly) {
    PyErr_SetString(PyExc_BufferError, "the array is read-only, but the call writes to it");
    return 0;
  }
  if (PyBuffer_IsContiguous(view, 'C')) return 1;
  PyErr_SetString(PyExc_BufferError, "the array is not contiguous in C order; numpy.ascontiguousarray makes a copy that is");
  return 0;
}

/* As take_memory, of elements that lie where C may read them. */
static int take_elements(PyObject *object, int writable, Py_buffer *view) {
  if (!take_memory(object, writable, view)) return 0;
  if (view->len == 0 || (uintptr_t)view->buf % (uintptr_t)view->itemsize == 0) return 1;
  PyErr_Format(PyExc_BufferError, "the array's elements do not lie at multiples of their %zd bytes; numpy.copy makes an array whose do",
               view->itemsize);
  return 0;
}

/* As take_elements. Memory of a device is a tuple of its address and how many elements lie there, which libzero.device makes and checks. */
static int take_tensor(PyObject *object, int writable, Py_buffer *view) {
  unsigned long long address;
  if (!PyTuple_Check(object)) return take_elements(object, writable, view);
  if (!PyArg_ParseTuple(object, "Kn", &address, &view->len)) return 0;
  view->buf = (void *)(uintptr_t)address;
  view->itemsize = 1;
  return 1;
}

static int64_t element_count(const Py_buffer *view) { return view->itemsize > 0 ? view->len / view->itemsize : 0; }

/* The memory of a struct of generated.py. */
static int take_struct(PyObject *object, size_t nbytes, Py_buffer *view) {
  if (!take_memory(object, 1, view)) return 0;
  if (view->obj == NULL || (size_t)view->len == nbytes) return 1;
  PyErr_Format(PyExc_TypeError, "a struct of %zu bytes is needed, not of %zd", nbytes, view->len);
  return 0;
}
%}

%init %{
  if (!find_error_class()) return NULL;
%}

/* A result of int32_t is a status. */
%typemap(out) int32_t {
  if ($1 != ZERO_OK) {
    raise_error($1);
    SWIG_fail;
  }
  $result = SWIG_Py_Void();
}
%typemap(out) int64_t "$result = PyLong_FromLongLong($1);"
%typemap(out) const char * "$result = PyUnicode_FromString($1);"

%typemap(in) int32_t "if (!take_i32($input, &$1)) SWIG_fail;"
%typemap(in) int64_t "if (!take_i64($input, &$1)) SWIG_fail;"
%typemap(in) uint64_t (int64_t value) {
  if (!take_i64($input, &value)) SWIG_fail;
  $1 = (uint64_t)value;
}
%typemap(in) double {
  $1 = PyFloat_AsDouble($input);
  if ($1 == -1 && PyErr_Occurred()) SWIG_fail;
}
%typemap(in) const char * "if (!take_text($input, (const char **)&$1)) SWIG_fail;"
%typemap(freearg) const char * "";

/* What is returned through a pointer. An address that is NULL is 0. */
%typemap(in, numinputs=0) int64_t * (int64_t value = 0) "$1 = &value;"
%typemap(argout) int64_t * "$result = SWIG_Python_AppendOutput($result, PyLong_FromLongLong(*$1));"
%typemap(in, numinputs=0) double * (double value = 0) "$1 = &value;"
%typemap(argout) double * "$result = SWIG_Python_AppendOutput($result, PyFloat_FromDouble(*$1));"
%typemap(in, numinputs=0) void **out_data (void *value = NULL) "$1 = &value;"
%typemap(argout) void **out_data "$result = SWIG_Python_AppendOutput($result, PyLong_FromVoidPtr(*$1));"

/* Groups and buffers take no stream. Optimizers do: ZERO_STREAMS stands before their headers. A stream is an address, 0 the default one. */
%typemap(in, numinputs=0) void *stream "$1 = NULL;"
%define ZERO_STREAMS
%typemap(in, numinputs=1) void *stream {
  $1 = PyLong_AsVoidPtr($input);
  if ($1 == NULL && PyErr_Occurred()) SWIG_fail;
}
%enddef

%define ZERO_HANDLE(type)
%typemap(in) type * "if (!take_handle($input, \"$*1_ltype\", (void **)&$1)) SWIG_fail;"
%typemap(in, numinputs=0) type ** (type *made = NULL) "$1 = &made;"
%typemap(argout) type ** { $result = SWIG_Python_AppendOutput($result, type##_owned(*$1)); }
%enddef
ZERO_HANDLE(zero_config)
ZERO_HANDLE(zero_group)
ZERO_HANDLE(zero_buffer)
ZERO_HANDLE(zero_optimizer)
ZERO_HANDLE(zero_checkpoint)
ZERO_HANDLE(zero_save)
ZERO_HANDLE(zero_server)

%typemap(in) zero_request * "if (!take_handle($input, \"zero_request\", (void **)&$1)) SWIG_fail;"
%typemap(in, numinputs=0) zero_request ** (zero_request *made = NULL) "$1 = &made;"
%typemap(argout) zero_request ** { $result = SWIG_Python_AppendOutput($result, own_request(*$1, NULL)); }

%define ZERO_STRUCT(type)
%typemap(in) type * (Py_buffer view = no_buffer) {
  if (!take_struct($input, sizeof(type), &view)) SWIG_fail;
  $1 = (type *)view.buf;
}
%typemap(freearg) type * "PyBuffer_Release(&view$argnum);"
%enddef
ZERO_STRUCT(zero_key_bounds)
ZERO_STRUCT(zero_memory_stats)
ZERO_STRUCT(zero_step_result)
ZERO_STRUCT(zero_step_stats)
ZERO_STRUCT(zero_traffic_stats)
ZERO_STRUCT(zero_verify_result)
ZERO_STRUCT(zero_checkpoint_result)
ZERO_STRUCT(zero_server_result)

/* A struct that is filled after the call has returned. */
%typemap(in) (zero_checkpoint_result *out_result, zero_request **out) (Py_buffer view = no_buffer, zero_request *made = NULL) {
  if (!take_struct($input, sizeof(zero_checkpoint_result), &view)) SWIG_fail;
  $1 = (zero_checkpoint_result *)view.buf;
  $2 = &made;
}
%typemap(argout) (zero_checkpoint_result *out_result, zero_request **out) {
  $result = SWIG_Python_AppendOutput($result, own_request(*$2, $input));
}
%typemap(freearg) (zero_checkpoint_result *out_result, zero_request **out) "PyBuffer_Release(&view$argnum);"

/* Arrays: their own length, in their own elements. */
%define ZERO_ARRAY(pointer, length, take, writable)
%typemap(in) (pointer, length) (Py_buffer view = no_buffer) {
  if (!take($input, writable, &view)) SWIG_fail;
  $1 = view.buf;
  $2 = element_count(&view);
}
%typemap(freearg) (pointer, length) "PyBuffer_Release(&view$argnum);"
%enddef
ZERO_ARRAY(const void *send, int64_t send_count, take_elements, 0)
ZERO_ARRAY(void *recv, int64_t recv_count, take_elements, 1)
ZERO_ARRAY(const void *data, int64_t count, take_elements, 0)
ZERO_ARRAY(void *data, int64_t count, take_elements, 1)
ZERO_ARRAY(void *dst, int64_t dst_count, take_tensor, 1)

/* Memory that stays with libzero: who gives it keeps the array. Its shape says how much it is. */
%typemap(in) void *data (Py_buffer view = no_buffer) {
  if (!take_elements($input, 1, &view)) SWIG_fail;
  $1 = view.buf;
}
%typemap(freearg) void *data "PyBuffer_Release(&view$argnum);"

/* A gradient's range stands apart from it: None means memory that was acquired. */
%typemap(in) const void *grad (Py_buffer view = no_buffer) {
  if (!take_tensor($input, 0, &view)) SWIG_fail;
  $1 = view.buf;
}
%typemap(freearg) const void *grad "PyBuffer_Release(&view$argnum);"

/* Rows of a gradient: their numbers, of i64, and their values stand for one count. */
%typemap(in) const void *values = const void *grad;
%typemap(freearg) const void *values = const void *grad;
%typemap(in) const int64_t *rows (Py_buffer view = no_buffer) {
  if (!take_elements($input, 0, &view)) SWIG_fail;
  $1 = (int64_t *)view.buf;
}
%typemap(argout) const int64_t *rows ""
%typemap(freearg) const int64_t *rows "PyBuffer_Release(&view$argnum);"

%define ZERO_INTEGERS(pointer, length)
%typemap(in) (pointer, length) (int64_t *items = NULL) {
  if (!take_integers($input, &items, &$2)) SWIG_fail;
  $1 = items;
}
%typemap(argout) (pointer, length) ""
%typemap(freearg) (pointer, length) "PyMem_Free(items$argnum);"
%enddef
ZERO_INTEGERS(const int64_t *shape, int64_t ndim)
ZERO_INTEGERS(const int64_t *ids, int64_t count)

/* Gradients of many parameters: two rows of int64, ids and addresses, which libzero.gradients makes and checks. Who gives them keeps the
   arrays. */
%typemap(in) (const int64_t *ids, int64_t count, const void *const *grads) (Py_buffer view = no_buffer) {
  if (!take_elements($input, 0, &view)) SWIG_fail;
  if (view.itemsize != sizeof(int64_t) || element_count(&view) % 2 != 0) {
    PyErr_SetString(PyExc_TypeError, "two rows of int64 are needed: ids and addresses");
    SWIG_fail;
  }
  $2 = element_count(&view) / 2;
  $1 = (int64_t *)view.buf;
  $3 = (void **)((int64_t *)view.buf + $2);
}
%typemap(argout) (const int64_t *ids, int64_t count, const void *const *grads) ""
%typemap(freearg) (const int64_t *ids, int64_t count, const void *const *grads) "PyBuffer_Release(&view$argnum);"

/* A text goes into a buffer of the caller, or nowhere; what is returned are the bytes that the whole needs. */
%typemap(in) (char *out, int64_t out_nbytes, int64_t *out_needed) (Py_buffer view = no_buffer, int64_t needed = 0) {
  if (!take_memory($input, 1, &view)) SWIG_fail;
  $1 = view.buf;
  $2 = view.len;
  $3 = &needed;
}
%typemap(argout) (char *out, int64_t out_nbytes, int64_t *out_needed)
  "$result = SWIG_Python_AppendOutput($result, PyLong_FromLongLong(*$3));"
%typemap(freearg) (char *out, int64_t out_nbytes, int64_t *out_needed) "PyBuffer_Release(&view$argnum);"
