/// @file Writing and reading headers of safetensors files.
#include "checkpoint/safetensors.h"

#include "checkpoint/strict_json.h"
#include "core/partition.h"
#include "core/utf8.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <set>
#include <utility>

namespace zero::checkpoint {
namespace {

constexpr int64_t kMostElements = int64_t{1} << 62;
constexpr int64_t kLengthNbytes = 8;
constexpr const char *kMetadata = "__metadata__";

/// Returns -1 if the size does not fit.
int64_t nbytes_of(const std::vector<int64_t> &shape, DiskType type) {
  const int64_t count = shape_count(shape);
  const Int128 nbytes = static_cast<Int128>(count) * disk_type_nbytes(type);
  return count >= 0 && nbytes <= kMostElements ? static_cast<int64_t>(nbytes) : -1;
}

std::string shape_text(const std::vector<int64_t> &shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size() && i < 16; ++i) text += (i > 0 ? ", " : "") + std::to_string(shape[i]);
  return text + (shape.size() > 16 ? ", ...]" : "]");
}

Status check_name(const std::string &name) {
  ZERO_CHECK(!name.empty() && name.size() <= kMostNameNbytes, ZERO_E_INVALID_ARGUMENT,
             "a name in a file has %zu bytes, but must have 1 to %zu: %.100s", name.size(), kMostNameNbytes, name.c_str());
  ZERO_CHECK(name != kMetadata, ZERO_E_INVALID_ARGUMENT, "a tensor is named %s, which readers take for the file's metadata; rename it", kMetadata);
  const size_t valid = valid_nbytes(name.data(), name.size());
  ZERO_CHECK(valid == name.size() && name.find('\0') == std::string::npos, ZERO_E_INVALID_ARGUMENT,
             "the name %.*s is not UTF-8, or has a zero byte", static_cast<int>(valid), name.c_str());
  return {};
}

Status check_entries(const std::vector<Entry> &entries) {
  std::set<std::string_view> names;
  Int128 total = 0;
  for (const Entry &entry : entries) {
    ZERO_TRY(check_name(entry.name));
    ZERO_CHECK(names.insert(entry.name).second, ZERO_E_INVALID_ARGUMENT, "two tensors of a file are named %s; rename one", entry.name.c_str());
    const int64_t nbytes = nbytes_of(entry.shape, entry.type);
    ZERO_CHECK(nbytes >= 0, ZERO_E_INVALID_ARGUMENT,
               "%s: a shape of %s in %s is too large for a file, or negative", entry.name.c_str(), shape_text(entry.shape).c_str(),
               disk_type_name(entry.type));
    total += nbytes;
  }
  ZERO_CHECK(total <= kMostElements, ZERO_E_INVALID_ARGUMENT, "the tensors of a file have more than 2^62 bytes");
  return {};
}

std::string json_text(const Header &header) {
  std::string text = "{\"__metadata__\":{";
  bool first = true;
  for (const auto &[key, value] : header.metadata) {
    if (!std::exchange(first, false)) text += ',';
    append_quoted(&text, key);
    text += ':';
    append_quoted(&text, value);
  }
  text += '}';
  int64_t begin = 0;
  for (const Entry &entry : header.entries) {
    text += ',';
    append_quoted(&text, entry.name);
    text += ":{\"dtype\":\"";
    text += disk_type_name(entry.type);
    text += "\",\"shape\":[";
    for (size_t i = 0; i < entry.shape.size(); ++i) text += (i > 0 ? "," : "") + std::to_string(entry.shape[i]);
    const int64_t end = begin + entry.nbytes();
    text += "],\"data_offsets\":[" + std::to_string(begin) + "," + std::to_string(end) + "]}";
    begin = end;
  }
  return text + "}";
}

/// Handles the events of a header, in which an object is the root, the metadata or a tensor.
class HeaderEvents final : public StrictEvents {
 public:
  struct Found {
    Entry entry;  ///< offset: within the data
    int64_t end = 0;
  };

  using StrictEvents::StrictEvents;

  std::vector<Found> found;
  std::map<std::string, std::string> metadata;

  bool key(string_t &name) override {
    if (depth() == 1) {
      name_ = name;
      return begin_entry();
    }
    field_ = name;
    if (in_metadata_) return !metadata.contains(name) || fail(broken("has the key \"%.100s\" twice", name));
    if (name != "dtype" && name != "shape" && name != "data_offsets") return fail(broken("has the unknown field \"%.100s\"", name));
    return fields_.insert(name).second || fail(broken("has the field \"%.100s\" twice", name));
  }

  bool string(string_t &value) override {
    if (depth() == 2 && in_metadata_) return metadata.emplace(field_, value).second;
    if (depth() != 2 || field_ != "dtype") return refuse("a text");
    const auto type = disk_type_of_name(value);
    if (!type) return fail(broken("has the element type \"%.100s\", which this reader does not know", value));
    found.back().entry.type = *type;
    return true;
  }

  bool number_unsigned(number_unsigned_t value) override {
    if (depth() != 3) return refuse("a number");
    if (value > static_cast<uint64_t>(kMostElements)) return fail(broken("has a number above 2^62 in \"%.100s\"", field_));
    if (field_ == "shape") {
      if (static_cast<int64_t>(found.back().entry.shape.size()) == kMostDims) return fail(broken("has too many dimensions in \"%.100s\"", field_));
      found.back().entry.shape.push_back(static_cast<int64_t>(value));
      return true;
    }
    if (offsets_ == 2) return fail(broken("has more than two numbers in \"%.100s\"", field_));
    (offsets_++ == 0 ? found.back().entry.offset : found.back().end) = static_cast<int64_t>(value);
    return true;
  }

 private:
  [[gnu::format(printf, 2, 0)]] Status broken(const char *format, const std::string &about) const {
    char text[320];
    std::snprintf(text, sizeof text, format, about.c_str());
    return Status::error(ZERO_E_CHECKPOINT, "%s: tensor %.100s %s", file_.c_str(), name_.c_str(), text);
  }

  bool begin_entry() {
    in_metadata_ = name_ == kMetadata;
    if (in_metadata_) return !std::exchange(has_metadata_, true) || fail(broken("is there twice%s", ""));
    if (name_.empty() || name_.size() > kMostNameNbytes) return fail(broken("has a name that is empty or too long%s", ""));
    if (name_.find('\0') != std::string::npos) return fail(broken("has a name with a zero byte%s", ""));
    found.push_back({});
    found.back().entry.name = name_;
    fields_.clear();
    offsets_ = 0;
    return true;
  }

  bool object_begins() override { return depth() <= 2 || refuse("an object"); }
  bool object_ends() override {
    if (depth() != 1 || in_metadata_) return true;
    if (fields_.size() == 3 && offsets_ == 2) return true;
    return fail(broken("lacks one of dtype, shape, data_offsets%s", ""));
  }
  bool array_begins() override { return (depth() == 3 && !in_metadata_ && field_ != "dtype") || refuse("an array"); }
  bool array_ends() override { return true; }

  std::string name_;
  std::string field_;
  std::set<std::string> fields_;
  int offsets_ = 0;
  bool in_metadata_ = false;
  bool has_metadata_ = false;
};

Status check_places(const std::vector<HeaderEvents::Found> &found, int64_t data_nbytes, const std::string &file) {
  int64_t next = 0;
  for (const auto &[entry, end] : found) {
    const int64_t nbytes = nbytes_of(entry.shape, entry.type);
    ZERO_CHECK(nbytes >= 0 && end - entry.offset == nbytes, ZERO_E_CHECKPOINT,
               "%s: tensor %.100s of %s %s has the data [%lld, %lld), which is not what shape and type need (%lld bytes)", file.c_str(),
               entry.name.c_str(), disk_type_name(entry.type), shape_text(entry.shape).c_str(), lld(entry.offset), lld(end), lld(nbytes));
    ZERO_CHECK(entry.offset == next, ZERO_E_CHECKPOINT, "%s: tensor %.100s begins at byte %lld of the data, expected %lld: data %s", file.c_str(),
               entry.name.c_str(), lld(entry.offset), lld(next), entry.offset < next ? "overlap" : "have a hole");
    next = end;
  }
  ZERO_CHECK(next == data_nbytes, ZERO_E_CHECKPOINT, "%s: the tensors have %lld bytes, but the file holds %lld bytes of data: it %s", file.c_str(),
             lld(next), lld(data_nbytes), next < data_nbytes ? "has bytes too many" : "was cut off");
  return {};
}

Status check_doubles(const std::vector<Entry> &entries, const std::string &file) {
  std::vector<std::string_view> names;
  names.reserve(entries.size());
  for (const Entry &entry : entries) names.push_back(entry.name);
  std::sort(names.begin(), names.end());
  const auto doubled = std::adjacent_find(names.begin(), names.end());
  ZERO_CHECK(doubled == names.end(), ZERO_E_CHECKPOINT, "%s: there are two tensors of the name %.*s", file.c_str(),
             static_cast<int>(std::min<size_t>(doubled->size(), 100)), doubled->data());
  return {};
}

}  // namespace

int64_t shape_count(std::span<const int64_t> shape) {
  Int128 count = 1;
  bool empty = false;
  for (const int64_t dim : shape) {
    if (dim < 0) return -1;
    empty = empty || dim == 0;
    if (count <= kMostElements) count *= dim;
  }
  if (static_cast<int64_t>(shape.size()) > kMostDims) return -1;
  if (empty) return 0;
  return count <= kMostElements ? static_cast<int64_t>(count) : -1;
}

const Entry *Header::find(std::string_view name) const {
  const auto at = std::find_if(entries.begin(), entries.end(), [&](const Entry &entry) { return entry.name == name; });
  return at == entries.end() ? nullptr : &*at;
}

Status format_header(Header *header, Order order, std::string *out) {
  ZERO_TRY(check_entries(header->entries));
  for (const auto &[key, value] : header->metadata) {
    ZERO_CHECK(valid_nbytes(key.data(), key.size()) == key.size() && valid_nbytes(value.data(), value.size()) == value.size(),
               ZERO_E_INVALID_ARGUMENT, "the metadata of a file is not UTF-8: %.100s", key.c_str());
  }
  if (order == Order::by_size) {
    std::stable_sort(header->entries.begin(), header->entries.end(),
                     [](const Entry &a, const Entry &b) { return disk_type_nbytes(a.type) > disk_type_nbytes(b.type); });
  }
  std::string json = json_text(*header);
  json.resize(static_cast<size_t>(round_up(static_cast<int64_t>(json.size()) + kLengthNbytes, kDataAlignment) - kLengthNbytes), ' ');
  const auto nbytes = static_cast<uint64_t>(json.size());
  ZERO_CHECK(json.size() <= static_cast<size_t>(kMostHeaderNbytes), ZERO_E_INVALID_ARGUMENT,
             "the header of a file has %zu bytes, but readers take %lld; use more files", json.size(), lld(kMostHeaderNbytes));
  header->data_offset = static_cast<int64_t>(nbytes) + kLengthNbytes;
  int64_t next = header->data_offset;
  for (Entry &entry : header->entries) {
    entry.offset = next;
    next += entry.nbytes();
  }
  header->file_nbytes = next;
  out->assign(kLengthNbytes, '\0');
  std::memcpy(out->data(), &nbytes, sizeof nbytes);
  *out += json;
  return {};
}

Status parse_header_length(std::span<const std::byte> first_8, int64_t file_nbytes, const std::string &file, int64_t *out_json_nbytes) {
  ZERO_CHECK(first_8.size() >= static_cast<size_t>(kLengthNbytes) && file_nbytes >= kLengthNbytes, ZERO_E_CHECKPOINT,
             "%s has %lld bytes, too few for a safetensors file", file.c_str(), lld(file_nbytes));
  uint64_t nbytes = 0;
  std::memcpy(&nbytes, first_8.data(), sizeof nbytes);
  ZERO_CHECK(nbytes <= static_cast<uint64_t>(kMostHeaderNbytes), ZERO_E_CHECKPOINT,
             "%s: the header claims %llu bytes, but at most %lld are allowed: it is damaged, or no safetensors file", file.c_str(),
             static_cast<unsigned long long>(nbytes), lld(kMostHeaderNbytes));
  ZERO_CHECK(static_cast<int64_t>(nbytes) <= file_nbytes - kLengthNbytes, ZERO_E_CHECKPOINT,
             "%s: the header claims %llu bytes, but the file has %lld in all: it was cut off", file.c_str(),
             static_cast<unsigned long long>(nbytes), lld(file_nbytes));
  *out_json_nbytes = static_cast<int64_t>(nbytes);
  return {};
}

Status parse_header(std::span<const std::byte> json, int64_t file_nbytes, const std::string &file, Header *out) {
  HeaderEvents events(file);
  ZERO_TRY(events.parse({reinterpret_cast<const char *>(json.data()), json.size()}));
  std::sort(events.found.begin(), events.found.end(), [](const auto &a, const auto &b) {
    return a.entry.offset != b.entry.offset ? a.entry.offset < b.entry.offset : a.end < b.end;
  });
  const int64_t data_offset = static_cast<int64_t>(json.size()) + kLengthNbytes;
  ZERO_TRY(check_places(events.found, file_nbytes - data_offset, file));
  Header header{{}, std::move(events.metadata), data_offset, file_nbytes};
  header.entries.reserve(events.found.size());
  for (auto &[entry, end] : events.found) {
    entry.offset += data_offset;
    header.entries.push_back(std::move(entry));
  }
  ZERO_TRY(check_doubles(header.entries, file));
  *out = std::move(header);
  return {};
}

}  // namespace zero::checkpoint
