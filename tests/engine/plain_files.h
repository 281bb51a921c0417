/// @file Plain safetensors for tests, written byte by byte as other tools write them: without padding, in the order given. Knows the format;
/// never the library that reads them.
#pragma once

#include "core/dtype.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace zero::test {

struct PlainTensor {
  std::string name;
  std::string type;  ///< "F32"
  std::vector<int64_t> shape;
  std::vector<std::byte> bytes;
};

using PlainTensors = std::vector<PlainTensor>;

/// A tensor of these values, rounded to the dtype.
PlainTensor plain_tensor(const std::string &name, const std::vector<int64_t> &shape, const std::vector<float> &values, DType dtype = DType::f32);

void write_plain(const std::string &path, const PlainTensors &tensors, const std::map<std::string, std::string> &metadata = {});

/// A folder with several files and the usual index; tensor i lies in file i % files.
void write_plain_folder(const std::string &path, const PlainTensors &tensors, int64_t files);

/// A reader of its own: what lies in one file, by name.
std::map<std::string, PlainTensor> read_plain(const std::string &path, std::map<std::string, std::string> *out_metadata = nullptr);

}  // namespace zero::test
