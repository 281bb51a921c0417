/// @file Ids as text, and the table of sockets that listen for later meetings.
#include "group/tcp/tcp_id.h"

#include "core/system_random.h"
#include "core/utf8.h"
#include "group/tcp/tcp_meeting.h"
#include "group/tcp/tcp_socket.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <cstdio>
#include <map>
#include <mutex>

namespace zero {
namespace {

constexpr size_t kLongestId = 255;
constexpr int64_t kLastPort = 65535;
constexpr const char *kLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";

bool only_letters(const std::string &text) { return !text.empty() && text.find_first_not_of(kLetters) == std::string::npos; }

bool is_ipv6(const std::string &text) {
  in6_addr address;
  return ::inet_pton(AF_INET6, text.c_str(), &address) == 1;
}

/// Parses 1 .. 65535 in digits; returns 0 for anything else.
uint16_t port_of(const std::string &text) {
  if (text.empty() || text.size() > 5 || text.find_first_not_of("0123456789") != std::string::npos) return 0;
  const int64_t port = std::stoll(text);
  return port <= kLastPort ? static_cast<uint16_t>(port) : 0;
}

/// Parses an id. Returns its fault, or nullptr.
const char *take_apart(const std::string &id, TcpPlace *out) {
  if (id.size() > kLongestId) return "it is longer than 255 bytes";
  if (id.find('\0') != std::string::npos) return "it holds a zero byte";
  const size_t slash = id.find('/');
  if (slash == std::string::npos) return "it has no \"/\" before a token";
  out->token = id.substr(slash + 1);
  if (!only_letters(out->token)) return "its token is not made of letters, digits, \".\", \"_\" and \"-\"";
  const std::string place = id.substr(0, slash);
  const size_t colon = place.rfind(':');
  if (colon == std::string::npos) return "it has no \":\" between host and port";
  out->port = port_of(place.substr(colon + 1));
  if (out->port == 0) return "its port is not a number within 1 .. 65535";
  out->host = place.substr(0, colon);
  const bool brackets = out->host.size() > 1 && out->host.front() == '[' && out->host.back() == ']';
  if (brackets) out->host = out->host.substr(1, out->host.size() - 2);
  if (brackets ? is_ipv6(out->host) : only_letters(out->host)) return nullptr;
  return "its host is neither a name, nor an IPv4 address, nor an IPv6 address in brackets";
}

struct Listeners {
  std::mutex mutex;
  std::map<std::string, OwnedFd> by_id;
};

/// Never destroyed: threads may still be meeting while the process ends.
Listeners &listeners() {
  static auto *const all = new Listeners();
  return *all;
}

}  // namespace

std::string TcpPlace::text() const {
  const std::string dressed = host.find(':') == std::string::npos ? host : "[" + host + "]";
  return dressed + ":" + std::to_string(port);
}

Status parse_tcp_id(const std::string &id, TcpPlace *out) {
  const char *wrong = take_apart(id, out);
  ZERO_CHECK(wrong == nullptr, ZERO_E_INVALID_ARGUMENT,
             "\"%.*s\" is no id of a meeting over TCP: %s; expected \"host:port/token\", for example \"node7:29500/run1\" or "
             "\"[2001:db8::7]:29500/run1\"",
             shown_nbytes(id.c_str(), 300), id.c_str(), wrong);
  return {};
}

Status check_tcp_id(const std::string &id) {
  TcpPlace place;
  return parse_tcp_id(id, &place);
}

Status make_tcp_id(const std::string &host, int64_t port, std::string *out) {
  ZERO_CHECK(port >= 0 && port <= kLastPort, ZERO_E_INVALID_ARGUMENT, "port %lld is not within 0 .. 65535", lld(port));
  char token[17];
  uint64_t random = 0;
  ZERO_TRY(random_u64(&random));
  std::snprintf(token, sizeof token, "%016llx", static_cast<unsigned long long>(random));
  const std::string named = host.empty() ? address_of_this_host() : host;
  const std::string dressed = is_ipv6(named) ? "[" + named + "]" : named;
  // Checks the id before a socket is opened, with the longest port.
  TcpPlace place;
  ZERO_TRY(parse_tcp_id(dressed + ":" + std::to_string(port == 0 ? kLastPort : port) + "/" + token, &place));
  OwnedFd listener;
  ZERO_TRY(listen_on(static_cast<uint16_t>(port), &listener));
  place.port = local_address(listener.get()).port;
  *out = place.text() + "/" + token;
  Listeners &all = listeners();
  const std::lock_guard lock(all.mutex);
  all.by_id[*out] = std::move(listener);
  return {};
}

OwnedFd take_listener(const std::string &id) {
  Listeners &all = listeners();
  const std::lock_guard lock(all.mutex);
  const auto found = all.by_id.find(id);
  if (found == all.by_id.end()) return {};
  OwnedFd listener = std::move(found->second);
  all.by_id.erase(found);
  return listener;
}

}  // namespace zero
