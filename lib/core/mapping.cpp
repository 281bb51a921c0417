/// @file Memory files, and the table of this process's mappings. Ranks that are threads of one
/// process share one mapping, so that they see the same addresses.
#include "core/mapping.h"

#include "core/descriptor_room.h"
#include "core/owned_fd.h"
#include "core/pages.h"
#include "core/system_random.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>
#include <new>
#include <utility>

namespace zero {
namespace {

struct Table {
  /// Recursive, because a mapping that cannot be entered for lack of memory is destroyed while the
  /// table is locked.
  std::recursive_mutex mutex;
  std::map<uint64_t, std::weak_ptr<Mapping>> mappings;
};

Table &table() {
  // Never destroyed: mappings may outlive static destructors.
  static Table *instance = new Table;
  return *instance;
}

}  // namespace

Status Mapping::map(uint64_t id, int fd, int64_t nbytes, std::shared_ptr<Mapping> *out) {
  std::byte *data = map_file_pages(nbytes, fd);
  if (data == nullptr) {
    const int reason = errno;
    ::close(fd);
    return Status::error(ZERO_E_OUT_OF_MEMORY, "cannot map %lld bytes of shared memory: %s", lld(nbytes), std::strerror(reason));
  }
  return enter(id, fd, data, nbytes, out);
}

/// Takes ownership of the memory and fd in any case.
Status Mapping::enter(uint64_t id, int fd, std::byte *data, int64_t nbytes, std::shared_ptr<Mapping> *out) {
  auto *made = new (std::nothrow) Mapping(id, fd, data, nbytes);
  if (made == nullptr) {
    ::munmap(data, static_cast<size_t>(nbytes));
    if (fd >= 0) ::close(fd);
    return Status::error(ZERO_E_OUT_OF_MEMORY, "out of memory for the record of a shared mapping");
  }
  std::shared_ptr<Mapping> mapping(made);
  table().mappings[id] = mapping;
  *out = std::move(mapping);
  return {};
}

Status Mapping::create_shared(int64_t nbytes, std::shared_ptr<Mapping> *out) {
  const int64_t page = ::sysconf(_SC_PAGESIZE);
  if (nbytes < page) nbytes = page;
  // Beyond this limit the system would end the process with SIGXFSZ instead of refusing.
  rlimit limit{};
  const bool limited = ::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
  ZERO_CHECK(!limited || static_cast<rlim_t>(nbytes) <= limit.rlim_cur, ZERO_E_OUT_OF_MEMORY,
             "%lld bytes of shared memory are needed, but files may have %lld (RLIMIT_FSIZE; ulimit -f)", lld(nbytes),
             lld(static_cast<int64_t>(limit.rlim_cur)));
  uint64_t id = 0;
  ZERO_TRY(random_u64(&id));
  OwnedFd fd = open_fd([] { return ::memfd_create("libzero", MFD_CLOEXEC); });
  ZERO_CHECK(fd.valid(), ZERO_E_SYSTEM, "cannot make a shared memory file: %s", system_error_text(errno).c_str());
  ZERO_CHECK(::ftruncate(fd.get(), nbytes) == 0, ZERO_E_OUT_OF_MEMORY, "cannot size a shared memory file to %lld bytes: %s", lld(nbytes),
             std::strerror(errno));
  const std::lock_guard lock(table().mutex);
  return map(id, fd.release(), nbytes, out);
}

Status Mapping::create_for_threads(int64_t nbytes, std::shared_ptr<Mapping> *out) {
  return create_private(nbytes, map_pages, out);
}

Status Mapping::create_sparse_for_threads(int64_t nbytes, std::shared_ptr<Mapping> *out) {
  return create_private(nbytes, map_sparse_pages, out);
}

Status Mapping::create_private(int64_t nbytes, std::byte *(*map_memory)(int64_t), std::shared_ptr<Mapping> *out) {
  nbytes = std::max(nbytes, int64_t{::sysconf(_SC_PAGESIZE)});
  uint64_t id = 0;
  ZERO_TRY(random_u64(&id));
  std::byte *data = map_memory(nbytes);
  ZERO_CHECK(data != nullptr, ZERO_E_OUT_OF_MEMORY, "cannot map %lld bytes of memory: %s", lld(nbytes), std::strerror(errno));
  const std::lock_guard lock(table().mutex);
  return enter(id, -1, data, nbytes, out);
}

std::shared_ptr<Mapping> Mapping::find(uint64_t id) {
  std::shared_ptr<Mapping> found;
  find_all({&id, 1}, {&found, 1});
  return found;
}

/// A mapping whose last holder releases it meanwhile is destroyed after the table is unlocked.
void Mapping::find_all(std::span<const uint64_t> ids, std::span<std::shared_ptr<Mapping>> out) {
  const std::lock_guard lock(table().mutex);
  for (size_t i = 0; i < ids.size(); ++i) {
    const auto found = table().mappings.find(ids[i]);
    if (found != table().mappings.end()) out[i] = found->second.lock();
  }
}

void Mapping::close_fd() {
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
}

Status Mapping::adopt(std::byte *data, int64_t nbytes, std::function<void()> release, std::shared_ptr<Mapping> *out) {
  uint64_t id = 0;
  if (Status drawn = random_u64(&id); !drawn.ok()) {
    release();
    return drawn;
  }
  const std::lock_guard lock(table().mutex);
  auto *made = new (std::nothrow) Mapping(id, -1, data, nbytes);
  if (made == nullptr) {
    release();
    return Status::error(ZERO_E_OUT_OF_MEMORY, "out of memory for the record of a shared mapping");
  }
  made->release_ = std::move(release);
  std::shared_ptr<Mapping> mapping(made);
  table().mappings[mapping->id()] = mapping;
  *out = std::move(mapping);
  return {};
}

Status Mapping::attach(uint64_t id, int fd, int64_t nbytes, std::shared_ptr<Mapping> *out) {
  const std::lock_guard lock(table().mutex);
  const auto found = table().mappings.find(id);
  if (found != table().mappings.end()) {
    if (auto mapping = found->second.lock()) {
      ::close(fd);
      *out = std::move(mapping);
      return {};
    }
  }
  ZERO_TRY(map(id, fd, nbytes, out));
  Mapping &attached = **out;
  ::close(std::exchange(attached.fd_, -1));  // only its creator passes it on
  // The crash of a process is noticed only after its memory was dumped. Memory that others made is
  // in their dumps.
  (void)::madvise(attached.data_, static_cast<size_t>(nbytes), MADV_DONTDUMP);
  return {};
}

Mapping::~Mapping() {
  {
    const std::lock_guard lock(table().mutex);
    const auto found = table().mappings.find(id_);
    if (found != table().mappings.end() && found->second.expired()) table().mappings.erase(found);
  }
  if (release_ != nullptr) {
    release_();
    return;
  }
  ::munmap(data_, static_cast<size_t>(nbytes_));
  if (fd_ >= 0) ::close(fd_);
}

}  // namespace zero
