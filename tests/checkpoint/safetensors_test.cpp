/// @file Headers: what is written is what the format says, byte for byte, and what is hostile is refused with its reason.
#include "checkpoint/safetensors.h"

#include <gtest/gtest.h>

#include <cstring>

namespace zero::tests {
namespace {

using namespace checkpoint;

Status parse(const std::string &json, int64_t data_nbytes, Header *out) {
  return parse_header(std::as_bytes(std::span(json)), 8 + static_cast<int64_t>(json.size()) + data_nbytes, "x.safetensors", out);
}

std::string entry(const char *type, const char *shape, int64_t begin, int64_t end) {
  return std::string("{\"dtype\":\"") + type + "\",\"shape\":" + shape + ",\"data_offsets\":[" + std::to_string(begin) + "," +
         std::to_string(end) + "]}";
}

TEST(Safetensors, AHeaderIsPaddedSoThatDataStartsAtAMultipleOf4096) {
  Header header;
  header.entries = {{"a", DiskType::u8, {3}}, {"b\"\n", DiskType::f32, {2, 0}}, {"c", DiskType::bf16, {}}, {"d", DiskType::f64, {2}}};
  header.metadata = {{"format", "pt"}};
  std::string head;
  ASSERT_TRUE(format_header(&header, Order::by_size, &head).ok());
  const std::string json =
      R"({"__metadata__":{"format":"pt"},"d":{"dtype":"F64","shape":[2],"data_offsets":[0,16]},)"
      R"("b\"\n":{"dtype":"F32","shape":[2,0],"data_offsets":[16,16]},"c":{"dtype":"BF16","shape":[],"data_offsets":[16,18]},)"
      R"("a":{"dtype":"U8","shape":[3],"data_offsets":[18,21]}})";
  ASSERT_EQ(head.size(), 4096U);
  uint64_t length = 0;
  std::memcpy(&length, head.data(), 8);
  EXPECT_EQ(length, 4088U);
  EXPECT_EQ(head.substr(8, json.size()), json);
  EXPECT_EQ(head.find_first_not_of(' ', 8 + json.size()), std::string::npos);
  EXPECT_EQ(header.file_nbytes, 4096 + 21);
  Header again;
  ASSERT_TRUE(parse(head.substr(8), 21, &again).ok());
  EXPECT_EQ(again.entries, header.entries);
  EXPECT_EQ(again.metadata, header.metadata);
}

TEST(Safetensors, ManyEntriesMakeALongerHeader) {
  Header header;
  for (int i = 0; i < 100; ++i) header.entries.push_back({"tensor." + std::to_string(i), DiskType::f32, {1}});
  std::string head;
  ASSERT_TRUE(format_header(&header, Order::by_size, &head).ok());
  EXPECT_EQ(head.size() % 4096, 0U);
  EXPECT_GT(head.size(), 4096U);
}

TEST(Safetensors, NamesThatNoReaderTakesAreRefused) {
  for (const std::string &name : {std::string("__metadata__"), std::string(), std::string(1025, 'x'), std::string("\xff"), std::string("a\0b", 3)}) {
    Header header;
    header.entries = {{name, DiskType::f32, {1}}};
    std::string head;
    EXPECT_EQ(format_header(&header, Order::by_size, &head).code(), ZERO_E_INVALID_ARGUMENT) << name;
  }
  Header twice;
  twice.entries = {{"a", DiskType::f32, {1}}, {"a", DiskType::u8, {1}}};
  std::string head;
  EXPECT_EQ(format_header(&twice, Order::by_size, &head).code(), ZERO_E_INVALID_ARGUMENT);
}

TEST(Safetensors, ShapesThatAreNegativeOrTooLargeAreRefused) {
  for (const std::vector<int64_t> &shape : std::vector<std::vector<int64_t>>{{-1}, {int64_t{1} << 62, 2}, {int64_t{1} << 40, int64_t{1} << 40}}) {
    Header header;
    header.entries = {{"a", DiskType::f32, shape}};
    std::string head;
    EXPECT_EQ(format_header(&header, Order::by_size, &head).code(), ZERO_E_INVALID_ARGUMENT);
  }
}

struct Hostile {
  const char *name;
  std::string json;
  int64_t data_nbytes;
  const char *reason;  ///< part of the text
};

std::vector<Hostile> hostile_headers() {
  const std::string good = entry("F32", "[1]", 0, 4);
  return {
      {"array", "[1]", 0, "does not begin with '{'"},
      {"empty", "", 0, "does not begin with '{'"},
      {"leading space", " {\"a\":" + good + "}", 4, "does not begin with '{'"},
      {"byte order mark", "\xef\xbb\xbf{\"a\":" + good + "}", 4, "does not begin with '{'"},
      {"cut off", "{\"a\":" + good, 4, "malformed"},
      {"two values", "{\"a\":" + good + "}{}", 4, "malformed"},
      {"zero byte", "{\"a\":" + good + "}" + std::string("\0junk", 5), 4, "zero byte"},
      {"no UTF-8", "{\"a\xff\":" + good + "}", 4, "malformed"},
      {"comment", "{/**/\"a\":" + good + "}", 4, "malformed"},
      {"deep", "{\"a\":{\"shape\":" + std::string(100'000, '[') + std::string(100'000, ']') + "}}", 4, "an array"},
      {"deep objects", "{\"a\":{\"shape\":{\"b\":{}}}}", 4, "an object"},
      {"name twice", "{\"a\":" + good + ",\"a\":" + entry("F32", "[1]", 4, 8) + "}", 8, "two tensors of the name a"},
      {"name twice, escaped", "{\"a\":" + good + ",\"\\u0061\":" + entry("F32", "[1]", 4, 8) + "}", 8, "two tensors of the name a"},
      {"field twice", R"({"a":{"dtype":"F32","dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 4, "twice"},
      {"metadata twice", R"({"__metadata__":{},"__metadata__":{},"a":)" + good + "}", 4, "twice"},
      {"metadata key twice", R"({"__metadata__":{"k":"1","k":"2"},"a":)" + good + "}", 4, "twice"},
      {"metadata of numbers", R"({"__metadata__":{"k":1},"a":)" + good + "}", 4, "a number"},
      {"metadata of objects", R"({"__metadata__":{"k":{}},"a":)" + good + "}", 4, "an object"},
      {"metadata of null", R"({"__metadata__":{"k":null},"a":)" + good + "}", 4, "null"},
      {"missing field", R"({"a":{"dtype":"F32","shape":[1]}})", 0, "lacks one of"},
      {"unknown field", R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"x":"y"}})", 4, "unknown field"},
      {"unknown type", "{\"a\":" + entry("F7", "[1]", 0, 4) + "}", 4, "element type \"F7\""},
      {"type is a number", R"({"a":{"dtype":1,"shape":[1],"data_offsets":[0,4]}})", 4, "a number"},
      {"shape is a text", R"({"a":{"dtype":"F32","shape":"[1]","data_offsets":[0,4]}})", 4, "a text"},
      {"negative dimension", "{\"a\":" + entry("F32", "[-1]", 0, 4) + "}", 4, "negative"},
      {"broken dimension", "{\"a\":" + entry("F32", "[1.0]", 0, 4) + "}", 4, "no integer"},
      {"huge dimension", "{\"a\":" + entry("F32", "[18446744073709551615]", 0, 4) + "}", 4, "above 2^62"},
      {"product past 2^64", "{\"a\":" + entry("F32", "[4294967296,4294967296,4294967296]", 0, 0) + "}", 0, "not what shape and type need"},
      {"product is 2^64", "{\"a\":" + entry("U8", "[4294967296,4294967296]", 0, 0) + "}", 0, "not what shape and type need"},
      {"one offset", R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0]}})", 4, "lacks one of"},
      {"three offsets", R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4,4]}})", 4, "more than two"},
      {"offsets swapped", "{\"a\":" + entry("F32", "[1]", 4, 0) + "}", 4, "not what shape and type need"},
      {"too few bytes", "{\"a\":" + entry("F32", "[2]", 0, 4) + "}", 4, "not what shape and type need"},
      {"hole", "{\"a\":" + good + ",\"b\":" + entry("F32", "[1]", 8, 12) + "}", 12, "a hole"},
      {"hole at the beginning", "{\"a\":" + entry("F32", "[1]", 4, 8) + "}", 8, "a hole"},
      {"overlap", "{\"a\":" + good + ",\"b\":" + entry("F32", "[1]", 2, 6) + "}", 6, "overlap"},
      {"same place", "{\"a\":" + good + ",\"b\":" + good + "}", 4, "overlap"},
      {"trailing bytes", "{\"a\":" + good + "}", 5, "bytes too many"},
      {"cut off data", "{\"a\":" + good + "}", 3, "cut off"},
      {"no tensors, but data", "{}", 4, "bytes too many"},
      {"name too long", "{\"" + std::string(2000, 'n') + "\":" + good + "}", 4, "too long"},
      {"zero byte in a name", "{\"a\\u0000b\":" + good + "}", 4, "zero byte"},
      {"name empty", "{\"\":" + good + "}", 4, "empty"},
      {"tensor is a list", "{\"a\":[]}", 0, "an array"},
      {"tensor is a text", "{\"a\":\"b\"}", 0, "a text"},
      {"tensor is true", "{\"a\":true}", 0, "true or false"},
      {"many dimensions", "{\"a\":" + entry("U8", ("[1" + [] {
                                                    std::string more;
                                                    for (int i = 0; i < 100; ++i) more += ",1";
                                                    return more;
                                                  }() + "]").c_str(), 0, 1) + "}", 1, "too many dimensions"},
  };
}

TEST(Safetensors, HostileHeadersAreRefusedWithTheirReason) {
  int64_t count = 0;
  for (const Hostile &hostile : hostile_headers()) {
    Header header;
    const Status status = parse(hostile.json, hostile.data_nbytes, &header);
    EXPECT_EQ(status.code(), ZERO_E_CHECKPOINT) << hostile.name;
    EXPECT_NE(std::strstr(status.text(), hostile.reason), nullptr) << hostile.name << ": " << status.text();
    EXPECT_NE(std::strstr(status.text(), "x.safetensors"), nullptr) << hostile.name << ": " << status.text();
    EXPECT_LT(std::strlen(status.text()), 1000U);
    ++count;
  }
  std::printf("%lld hostile headers\n", lld(count));
  EXPECT_GE(count, 40);
}

TEST(Safetensors, LengthsThatAreNotTheFilesAreRefused) {
  for (const uint64_t length : {UINT64_MAX, uint64_t{1} << 63, uint64_t{100'000'001}, uint64_t{93}}) {
    std::byte first[8];
    std::memcpy(first, &length, 8);
    int64_t nbytes = 0;
    EXPECT_EQ(parse_header_length(first, 100, "x", &nbytes).code(), ZERO_E_CHECKPOINT) << length;
  }
  std::byte short_file[3] = {};
  int64_t nbytes = 0;
  EXPECT_EQ(parse_header_length(short_file, 3, "x", &nbytes).code(), ZERO_E_CHECKPOINT);
}

TEST(Safetensors, WhatOtherWritersMakeIsRead) {
  Header header;
  EXPECT_TRUE(parse("{}", 0, &header).ok());
  EXPECT_TRUE(parse("{\"__metadata__\":{}}   ", 0, &header).ok());
  // Not aligned, in any order, empty tensors at the same place, no padding.
  const std::string json = "{\"b\":" + entry("F32", "[1]", 1, 5) + ",\"e\":" + entry("I64", "[0]", 1, 1) + ",\"a\":" + entry("BOOL", "[1]", 0, 1) +
                           ",\"f\":" + entry("F64", "[3,0]", 1, 1) + "}";
  const Status status = parse(json, 5, &header);
  ASSERT_TRUE(status.ok()) << status.text();
  EXPECT_EQ(header.entries.front().name, "a");
  EXPECT_EQ(header.entries.back().name, "b");
  EXPECT_EQ(header.entries.back().offset, 8 + static_cast<int64_t>(json.size()) + 1);
}

}  // namespace
}  // namespace zero::tests
