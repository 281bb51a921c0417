/// @file Writing and reading plain safetensors by hand.
#include "tests/engine/plain_files.h"

#include "tests/engine/training.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace zero::test {
namespace {

const char *type_name(DType dtype) { return dtype == DType::f16 ? "F16" : dtype == DType::bf16 ? "BF16" : "F32"; }

}  // namespace

PlainTensor plain_tensor(const std::string &name, const std::vector<int64_t> &shape, const std::vector<float> &values, DType dtype) {
  return {name, type_name(dtype), shape, encode(values, dtype)};
}

void write_plain(const std::string &path, const PlainTensors &tensors, const std::map<std::string, std::string> &metadata) {
  nlohmann::json header = nlohmann::json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  size_t at = 0;
  for (const PlainTensor &tensor : tensors) {
    header[tensor.name] = {{"dtype", tensor.type}, {"shape", tensor.shape}, {"data_offsets", {at, at + tensor.bytes.size()}}};
    at += tensor.bytes.size();
  }
  const std::string json = header.dump();
  const uint64_t nbytes = json.size();
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char *>(&nbytes), sizeof nbytes);
  file << json;
  for (const PlainTensor &tensor : tensors) {
    file.write(reinterpret_cast<const char *>(tensor.bytes.data()), static_cast<std::streamsize>(tensor.bytes.size()));
  }
  file.close();
  ASSERT_TRUE(file.good()) << path;
}

void write_plain_folder(const std::string &path, const PlainTensors &tensors, int64_t files) {
  std::filesystem::create_directories(path);
  nlohmann::json map = nlohmann::json::object();
  for (int64_t number = 0; number < files; ++number) {
    const std::string name = "model-" + std::to_string(number) + ".safetensors";
    PlainTensors mine;
    for (size_t i = static_cast<size_t>(number); i < tensors.size(); i += static_cast<size_t>(files)) {
      mine.push_back(tensors[i]);
      map[tensors[i].name] = name;
    }
    write_plain(path + "/" + name, mine);
  }
  std::ofstream(path + "/model.safetensors.index.json") << nlohmann::json{{"metadata", {{"total_size", 0}}}, {"weight_map", map}}.dump(2);
}

std::map<std::string, PlainTensor> read_plain(const std::string &path, std::map<std::string, std::string> *out_metadata) {
  std::map<std::string, PlainTensor> tensors;
  std::ifstream file(path, std::ios::binary);
  const std::string all((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  uint64_t nbytes = 0;
  if (all.size() < sizeof nbytes) return tensors;
  std::memcpy(&nbytes, all.data(), sizeof nbytes);
  const size_t data = sizeof nbytes + nbytes;
  const nlohmann::json header = nlohmann::json::parse(all.substr(sizeof nbytes, nbytes));
  for (const auto &[name, entry] : header.items()) {
    if (name == "__metadata__") {
      if (out_metadata != nullptr) *out_metadata = entry;
      continue;
    }
    PlainTensor tensor{name, entry["dtype"], entry["shape"], {}};
    const size_t begin = data + entry["data_offsets"][0].get<size_t>();
    const size_t end = data + entry["data_offsets"][1].get<size_t>();
    const auto *const bytes = reinterpret_cast<const std::byte *>(all.data());
    tensor.bytes.assign(bytes + begin, bytes + end);
    tensors[name] = std::move(tensor);
  }
  return tensors;
}

}  // namespace zero::test
