/// @file zero/request.h.
#include "api/request.h"

#include "engine/buffer/buffer.h"
#include "group/group.h"

namespace zero::api {
namespace {

/// Returns the created object under a handle of its own, and drops the request's reference.
template <class Public, class Object>
Status take(Request &request, Work::Makes kind, const char *noun, std::shared_ptr<Object> &made, Public **out) {
  ZERO_TRY(check_pointer(out, "out"));
  ZERO_TRY(request.check_take(kind, noun));
  *out = made != nullptr ? make_handle<Public>(made) : nullptr;
  request.mark_taken();
  made = nullptr;
  return {};
}

}  // namespace

void Request::begin() {
  operation_ = work.queue->submit(std::move(*work.task));
  work.task.reset();
}

bool Request::test() {
  if (!operation_->done()) work.queue->progress();
  return operation_->done();
}

void Request::wait_for_begin() {
  if (work.begun != nullptr) work.queue->wait_for(operation_, *work.begun);
}

Status Request::wait() {
  if (operation_->done()) return operation_->status();
  return work.queue->wait(operation_);
}

Status Request::check_take(Work::Makes kind, const char *noun) const {
  ZERO_CHECK(operation_->done(), ZERO_E_STATE,
             "the request has not ended; take the %s out after zero_request_wait, or a test that says done", noun);
  ZERO_TRY(operation_->status());
  ZERO_CHECK(work.makes == kind, ZERO_E_STATE, "the request makes no %s", noun);
  ZERO_CHECK(!taken_, ZERO_E_STATE, "the %s was taken out of this request before", noun);
  return {};
}

zero_request *begin_request(const std::shared_ptr<Request> &request) {
  // Makes the handle first: a task in its queue cannot be withdrawn.
  auto *handle = make_handle<zero_request>(request);
  try {
    request->begin();
  } catch (...) {
    std::shared_ptr<void> object;
    (void)remove_handle(Kind::request, handle_value(handle), "request", &object);
    throw;
  }
  request->test();
  request->wait_for_begin();
  return handle;
}

}  // namespace zero::api

using namespace zero;

int32_t zero_request_test(zero_request *request, int64_t *out_done) {
  return api::guarded([&]() -> Status {
    std::shared_ptr<api::Request> object;
    ZERO_TRY(api::find(request, "request", &object));
    ZERO_TRY(api::check_pointer(out_done, "out_done"));
    const bool done = object->test();
    *out_done = done ? 1 : 0;
    return done ? object->status() : Status();
  });
}

int32_t zero_request_wait(zero_request *request) {
  return api::guarded([&]() -> Status {
    std::shared_ptr<api::Request> object;
    ZERO_TRY(api::find(request, "request", &object));
    return object->wait();
  });
}

int32_t zero_request_group(zero_request *request, zero_group **out) {
  return api::guarded([&]() -> Status {
    std::shared_ptr<api::Request> object;
    ZERO_TRY(api::find(request, "request", &object));
    return api::take(*object, api::Work::Makes::group, "group", object->work.group, out);
  });
}

int32_t zero_request_buffer(zero_request *request, zero_buffer **out) {
  return api::guarded([&]() -> Status {
    std::shared_ptr<api::Request> object;
    ZERO_TRY(api::find(request, "request", &object));
    return api::take(*object, api::Work::Makes::buffer, "buffer", object->work.buffer, out);
  });
}

void zero_request_release(zero_request *request) {
  if (request == nullptr) return;
  api::guarded([&]() -> Status {
    std::shared_ptr<void> object;
    ZERO_TRY(api::remove_handle(api::Kind::request, api::handle_value(request), "request", &object));
    // The memory of a running operation is still borrowed. Its result is ignored.
    (void)std::static_pointer_cast<api::Request>(object)->wait();
    return {};
  });
}
