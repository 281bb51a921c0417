/// @file The model of a file system, and its power cuts.
#include "tests/checkpoint/model_files.h"

#include "core/hash.h"

#include <dirent.h>
#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace zero::tests {
namespace {

constexpr int kFirstFd = 1 << 29;  // no descriptor of the system is that large: closing one does nothing
constexpr int64_t kPage = 4096;
constexpr int64_t kSector = 512;

int refuse(int reason) {
  errno = reason;
  return -1;
}

/// The part of a page that the disk has written when the power goes.
void write_torn(std::vector<std::byte> *bytes, const PendingItem &page, std::mt19937_64 *random) {
  for (size_t at = 0; at < page.data.size(); at += static_cast<size_t>(kSector)) {
    if ((*random)() % 2 == 0) continue;
    const size_t nbytes = std::min(page.data.size() - at, static_cast<size_t>(kSector));
    std::memcpy(bytes->data() + page.offset + at, page.data.data() + at, nbytes);
  }
}

void apply_to_folder(std::map<std::string, int> *entries, const PendingItem &item) {
  if (item.kind == PendingItem::Kind::add) (*entries)[item.name] = item.node;
  if (item.kind == PendingItem::Kind::remove || item.kind == PendingItem::Kind::rename) entries->erase(item.name);
  if (item.kind == PendingItem::Kind::rename) (*entries)[item.to] = item.node;
}

void apply_page(std::vector<std::byte> *bytes, const PendingItem &item, bool torn, std::mt19937_64 *random) {
  const auto end = static_cast<size_t>(item.offset) + item.data.size();
  if (bytes->size() < end) bytes->resize(end);
  if (torn) {
    write_torn(bytes, item, random);
  } else if (!item.data.empty()) {
    std::memcpy(bytes->data() + item.offset, item.data.data(), item.data.size());
  }
}

}  // namespace

int64_t ModelTree::pending_count() const {
  int64_t count = 0;
  for (const ModelNode &node : nodes) count += static_cast<int64_t>(node.pending.size());
  return count;
}

ModelTree ModelTree::cut(const std::vector<bool> &lost, int64_t torn, std::mt19937_64 *random) const {
  ModelTree left;
  left.nodes.resize(nodes.size());
  size_t number = 0;
  for (size_t n = 0; n < nodes.size(); ++n) {
    ModelNode &node = left.nodes[n];
    node.is_folder = nodes[n].is_folder;
    node.bytes = nodes[n].durable_bytes;
    node.entries = nodes[n].durable_entries;
    auto size = static_cast<int64_t>(node.bytes.size());  // pages behind the size that was written are not seen
    for (const PendingItem &item : nodes[n].pending) {
      const size_t at = number++;
      if (lost[at]) continue;
      if (item.kind == PendingItem::Kind::page) {
        apply_page(&node.bytes, item, static_cast<int64_t>(at) == torn, random);
      } else if (item.kind == PendingItem::Kind::size) {
        if (item.offset < static_cast<int64_t>(node.bytes.size())) node.bytes.resize(static_cast<size_t>(item.offset));
        size = item.offset;
      } else {
        apply_to_folder(&node.entries, item);
      }
    }
    node.bytes.resize(static_cast<size_t>(size));
    node.durable_bytes = node.bytes;
    node.durable_entries = node.entries;
  }
  return left;
}

uint64_t ModelTree::hash() const {
  Hash hash;
  std::vector<int> open = {0};
  while (!open.empty()) {
    const ModelNode &node = nodes[static_cast<size_t>(open.back())];
    open.pop_back();
    hash.add(node.is_folder ? 1 : 0);
    hash.add(node.bytes.size());
    hash.add(node.bytes.data(), node.bytes.size());
    for (const auto &[name, child] : node.entries) {
      hash.add(name.c_str(), name.size() + 1);
      open.push_back(child);
    }
  }
  return hash.value();
}

int ModelTree::find(const std::string &path) const {
  int at = 0;
  for (size_t begin = 0; begin <= path.size();) {
    const size_t end = std::min(path.find('/', begin), path.size());
    const std::string name = path.substr(begin, end - begin);
    begin = end + 1;
    if (name.empty() || name == ".") continue;
    const ModelNode &node = nodes[static_cast<size_t>(at)];
    const auto entry = node.entries.find(name);
    if (!node.is_folder || entry == node.entries.end()) return -1;
    at = entry->second;
  }
  return at;
}

int ModelFiles::node_of(int fd) const { return fd >= kFirstFd ? open_[static_cast<size_t>(fd - kFirstFd)] : -1; }

int ModelFiles::find_from(int folder, const std::string &path) const {
  int at = folder;
  for (size_t begin = 0; begin <= path.size() && at >= 0;) {
    const size_t end = std::min(path.find('/', begin), path.size());
    const std::string name = path.substr(begin, end - begin);
    begin = end + 1;
    if (name.empty() || name == ".") continue;
    const ModelNode &node = tree.nodes[static_cast<size_t>(at)];
    const auto entry = node.entries.find(name);
    at = node.is_folder && entry != node.entries.end() ? entry->second : -1;
  }
  return at;
}

int ModelFiles::add(int folder, const char *name, bool is_folder) {
  const int number = static_cast<int>(tree.nodes.size());
  tree.nodes.emplace_back().is_folder = is_folder;
  ModelNode &parent = tree.nodes[static_cast<size_t>(folder)];
  parent.entries[name] = number;
  parent.pending.push_back({PendingItem::Kind::add, 0, {}, name, {}, number});
  return number;
}

OwnedFd ModelFiles::open_at(int folder, const char *name, int flags, mode_t) {
  bool made = false;
  int fd = -1;
  {
    const std::lock_guard lock(mutex_);
    const int parent = folder == AT_FDCWD ? 0 : node_of(folder);
    int node = folder == AT_FDCWD ? (std::strcmp(name, kRoot) == 0 ? 0 : -1) : find_from(parent, name);
    if (node >= 0 && (flags & O_EXCL) != 0) return errno = EEXIST, OwnedFd();
    made = node < 0 && (flags & O_CREAT) != 0;
    if (made) node = add(parent, name, false);
    if (node < 0) return errno = ENOENT, OwnedFd();
    if ((flags & O_DIRECTORY) != 0 && !tree.nodes[static_cast<size_t>(node)].is_folder) return errno = ENOTDIR, OwnedFd();
    open_.push_back(node);
    fd = kFirstFd + static_cast<int>(open_.size()) - 1;
    if (made) tell("openat");
  }
  return OwnedFd(fd);
}

int ModelFiles::make_folder(int folder, const char *name, mode_t) {
  {
    const std::lock_guard lock(mutex_);
    const int parent = node_of(folder);
    if (find_from(parent, name) >= 0) return refuse(EEXIST);
    add(parent, name, true);
    tell("mkdirat");
  }
  return 0;
}

ssize_t ModelFiles::read_at(int file, void *out, size_t nbytes, int64_t offset) {
  const std::lock_guard lock(mutex_);
  const std::vector<std::byte> &bytes = tree.nodes[static_cast<size_t>(node_of(file))].bytes;
  if (offset >= static_cast<int64_t>(bytes.size())) return 0;
  const size_t got = std::min(nbytes, bytes.size() - static_cast<size_t>(offset));
  std::memcpy(out, bytes.data() + offset, got);
  return static_cast<ssize_t>(got);
}

void ModelFiles::resize(ModelNode *node, int64_t nbytes) {
  node->bytes.resize(static_cast<size_t>(nbytes));
  node->pending.push_back({PendingItem::Kind::size, nbytes, {}, {}, {}, -1});
}

ssize_t ModelFiles::write_at(int file, const void *data, size_t nbytes, int64_t offset) {
  {
    const std::lock_guard lock(mutex_);
    ModelNode &node = tree.nodes[static_cast<size_t>(node_of(file))];
    const int64_t end = offset + static_cast<int64_t>(nbytes);
    if (end > static_cast<int64_t>(node.bytes.size())) resize(&node, end);
    std::memcpy(node.bytes.data() + offset, data, nbytes);
    const auto *const bytes = static_cast<const std::byte *>(data);
    for (int64_t at = offset; at < end;) {
      const int64_t page_end = std::min((at / kPage + 1) * kPage, end);
      node.pending.push_back({PendingItem::Kind::page, at, {bytes + (at - offset), bytes + (page_end - offset)}, {}, {}, -1});
      at = page_end;
    }
    tell("pwrite64");
  }
  return static_cast<ssize_t>(nbytes);
}

int ModelFiles::set_direct(int, bool direct) { return direct ? refuse(EINVAL) : 0; }

int ModelFiles::allocate(int file, int64_t nbytes) {
  {
    const std::lock_guard lock(mutex_);
    resize(&tree.nodes[static_cast<size_t>(node_of(file))], nbytes);
    tell("fallocate");
  }
  return 0;
}

int ModelFiles::truncate(int file, int64_t nbytes) {
  {
    const std::lock_guard lock(mutex_);
    resize(&tree.nodes[static_cast<size_t>(node_of(file))], nbytes);
    tell("ftruncate");
  }
  return 0;
}

int ModelFiles::sync(int file) {
  {
    const std::lock_guard lock(mutex_);
    const int number = node_of(file);
    ModelNode &node = tree.nodes[static_cast<size_t>(number)];
    const Ignored kind = !node.is_folder ? Ignored::files : number > 0 ? Ignored::saves : Ignored::folder_of_saves;
    if (kind == ignored) return 0;
    node.durable_bytes = node.bytes;
    node.durable_entries = node.entries;
    node.pending.clear();
    tell("fsync");
  }
  return 0;
}

int ModelFiles::close(OwnedFd file) {
  static_cast<void>(file.release());
  return 0;
}

int ModelFiles::rename(int folder, const char *from, int to_folder, const char *to) {
  if (folder != to_folder) return refuse(EXDEV);  // the library renames within a folder only
  {
    const std::lock_guard lock(mutex_);
    ModelNode &parent = tree.nodes[static_cast<size_t>(node_of(folder))];
    const auto at = parent.entries.find(from);
    if (at == parent.entries.end()) return refuse(ENOENT);
    const int node = at->second;
    parent.entries.erase(at);
    parent.entries[to] = node;
    parent.pending.push_back({PendingItem::Kind::rename, 0, {}, from, to, node});
    tell("renameat");
  }
  return 0;
}

int ModelFiles::unlink(int folder, const char *name, int flags) {
  {
    const std::lock_guard lock(mutex_);
    ModelNode &parent = tree.nodes[static_cast<size_t>(node_of(folder))];
    const auto at = parent.entries.find(name);
    if (at == parent.entries.end()) return refuse(ENOENT);
    const ModelNode &node = tree.nodes[static_cast<size_t>(at->second)];
    if (node.is_folder != ((flags & AT_REMOVEDIR) != 0)) return refuse(node.is_folder ? EISDIR : ENOTDIR);
    if (node.is_folder && !node.entries.empty()) return refuse(ENOTEMPTY);
    parent.pending.push_back({PendingItem::Kind::remove, 0, {}, name, {}, at->second});
    parent.entries.erase(at);
    tell("unlinkat");
  }
  return 0;
}

namespace {

int describe(const ModelNode &node, int number, struct stat *out) {
  *out = {};
  out->st_ino = static_cast<ino_t>(number) + 1;
  out->st_mode = node.is_folder ? S_IFDIR | 0755 : S_IFREG | 0644;
  out->st_size = static_cast<off_t>(node.bytes.size());
  return 0;
}

}  // namespace

int ModelFiles::stat(int file, struct stat *out) {
  const std::lock_guard lock(mutex_);
  const int node = node_of(file);
  return describe(tree.nodes[static_cast<size_t>(node)], node, out);
}

int ModelFiles::stat_at(int folder, const char *name, struct stat *out) {
  const std::lock_guard lock(mutex_);
  const int node = find_from(node_of(folder), name);
  if (node < 0) return refuse(ENOENT);
  return describe(tree.nodes[static_cast<size_t>(node)], node, out);
}

int ModelFiles::list(int folder, std::vector<FolderEntry> *out) {
  const std::lock_guard lock(mutex_);
  out->clear();
  for (const auto &[name, node] : tree.nodes[static_cast<size_t>(node_of(folder))].entries) {
    out->push_back({name, static_cast<unsigned char>(tree.nodes[static_cast<size_t>(node)].is_folder ? DT_DIR : DT_REG)});
  }
  return 0;
}

}  // namespace zero::tests
