/// @file Frames consist of magic, version and kind, then numbers of 8 bytes and texts after their
/// lengths.
#include "group/tcp/tcp_bootstrap_message.h"

#include <algorithm>
#include <cstring>

namespace zero {

std::string TcpRank::text(int64_t rank) const {
  return "rank " + std::to_string(rank) + " (process " + std::to_string(process) + " on " + host_name + ")";
}

TcpWriter::TcpWriter(TcpBootstrapWord word) { number(kTcpMagic).number(kTcpVersion).number(static_cast<uint64_t>(word)); }

TcpWriter &TcpWriter::number(uint64_t value) {
  const auto *bytes = reinterpret_cast<const std::byte *>(&value);
  bytes_.insert(bytes_.end(), bytes, bytes + sizeof value);
  return *this;
}

TcpWriter &TcpWriter::text(const std::string &value) {
  const size_t nbytes = std::min(value.size(), kLongestText);
  number(static_cast<uint64_t>(nbytes));
  const auto *bytes = reinterpret_cast<const std::byte *>(value.data());
  bytes_.insert(bytes_.end(), bytes, bytes + nbytes);
  return *this;
}

TcpWriter &TcpWriter::rank(const TcpRank &value) {
  uint64_t halves[2];
  std::memcpy(halves, value.address.bytes.data(), sizeof halves);
  number(value.host_id).number(value.process).text(value.host_name);
  number(static_cast<uint64_t>(value.address.kind)).number(halves[0]).number(halves[1]);
  return number(static_cast<uint64_t>(value.address.port));
}

TcpReader::TcpReader(std::span<const std::byte> frame) : rest_(frame) {
  const bool known = number() == kTcpMagic && number() == kTcpVersion;
  const uint64_t word = known ? number() : 0;
  if (word <= static_cast<uint64_t>(TcpBootstrapWord::greeted)) word_ = static_cast<TcpBootstrapWord>(word);
}

std::span<const std::byte> TcpReader::take(size_t nbytes) {
  good_ = good_ && nbytes <= rest_.size();
  if (!good_) return {};
  const auto taken = rest_.first(nbytes);
  rest_ = rest_.subspan(nbytes);
  return taken;
}

uint64_t TcpReader::number() {
  uint64_t value = 0;
  const auto bytes = take(sizeof value);
  if (!bytes.empty()) std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

std::string TcpReader::text(size_t longest) {
  const uint64_t nbytes = number();
  good_ = good_ && nbytes <= longest;
  const auto bytes = take(good_ ? static_cast<size_t>(nbytes) : 0);
  return {reinterpret_cast<const char *>(bytes.data()), bytes.size()};
}

TcpRank TcpReader::rank() {
  TcpRank out;
  out.host_id = number();
  out.process = signed_number();
  out.host_name = text(kLongestName);
  const uint64_t kind = number();
  const uint64_t halves[2] = {number(), number()};
  const uint64_t port = number();
  good_ = good_ && kind <= static_cast<uint64_t>(TcpAddress::Kind::ipv6) && port <= UINT16_MAX;
  if (!good_) return {};
  out.address.kind = static_cast<TcpAddress::Kind>(kind);
  std::memcpy(out.address.bytes.data(), halves, sizeof halves);
  out.address.port = static_cast<uint16_t>(port);
  return out;
}

TcpWriter write_hello(const TcpHello &hello) {
  TcpWriter writer(TcpBootstrapWord::hello);
  writer.text(hello.token).number(hello.instance).number(hello.rank).number(hello.size).number(hello.agree).rank(hello.who);
  return writer;
}

bool read_hello(std::span<const std::byte> frame, TcpHello *out) {
  TcpReader reader(frame);
  if (reader.word() != TcpBootstrapWord::hello) return false;
  out->token = reader.text(kLongestName);
  out->instance = reader.number();
  out->rank = reader.signed_number();
  out->size = reader.signed_number();
  out->agree = reader.number();
  out->who = reader.rank();
  return reader.whole();
}

TcpWriter write_refusal(const Status &cause) {
  TcpWriter writer(TcpBootstrapWord::refusal);
  writer.number(static_cast<int64_t>(cause.code())).text(cause.text());
  return writer;
}

Status read_refusal(TcpReader *reader) {
  const int64_t code = reader->signed_number();
  const std::string text = reader->text(TcpWriter::kLongestText);
  return Status::error(code < 0 && code >= INT32_MIN ? static_cast<int32_t>(code) : ZERO_E_RENDEZVOUS, "%s", text.c_str());
}

}  // namespace zero
