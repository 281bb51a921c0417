/// @file Nouns: the classes of the public handle types.
#pragma once

#include "api/barrier.h"

#include <zero/checkpoint.h>
#include <zero/config.h>
#include <zero/optimizer.h>
#include <zero/request.h>
#include <zero/save.h>
#include <zero/server.h>

namespace zero {
class Config;
class Group;
class Buffer;
class Optimizer;
class Checkpoint;
class Server;
namespace checkpoint {
class OpenSave;
}
}  // namespace zero

namespace zero::api {

class Request;

template <>
struct Noun<zero_config> {
  using Object = Config;
  static constexpr Kind kKind = Kind::config;
};
template <>
struct Noun<zero_group> {
  using Object = Group;
  static constexpr Kind kKind = Kind::group;
};
template <>
struct Noun<zero_buffer> {
  using Object = Buffer;
  static constexpr Kind kKind = Kind::buffer;
};
template <>
struct Noun<zero_optimizer> {
  using Object = Optimizer;
  static constexpr Kind kKind = Kind::optimizer;
};
template <>
struct Noun<zero_checkpoint> {
  using Object = Checkpoint;
  static constexpr Kind kKind = Kind::checkpoint;
};
template <>
struct Noun<zero_save> {
  using Object = checkpoint::OpenSave;
  static constexpr Kind kKind = Kind::save;
};
template <>
struct Noun<zero_server> {
  using Object = Server;
  static constexpr Kind kKind = Kind::server;
};
template <>
struct Noun<zero_request> {
  using Object = Request;
  static constexpr Kind kKind = Kind::request;
};

/// Finds the config of a handle, or makes an empty one for NULL.
Status find_config(const zero_config *handle, std::shared_ptr<Config> *out);

}  // namespace zero::api
