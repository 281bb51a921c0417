/// @file The messages of ranks that meet over TCP, as frames. Knows their form, not their order.
#pragma once

#include "group/tcp/tcp_link.h"
#include "group/tcp/tcp_socket.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace zero {

inline constexpr uint64_t kTcpMagic = 0x0a7063746f72657aULL;
inline constexpr uint64_t kTcpVersion = 1;

/// The kinds of messages, with their sender and content. The root is rank 0; clients are the
/// others.
enum class TcpBootstrapWord : uint64_t {
  none = 0,       ///< no message of this protocol and version
  hello = 1,      ///< client to root: TcpHello
  welcome = 2,    ///< root to a client that has joined: the root's process and host name
  refusal = 3,    ///< root to client, or reverse: code and text of an error that ends the meeting
  entries = 4,    ///< root to client: meeting name, first rank, count, and each rank's TcpRank
  complaint = 5,  ///< client to root: text that names the connection it lacks
  ready = 6,      ///< client to root: it has its connections
  go = 7,         ///< root to client: all ranks are ready
  greeting = 8,   ///< client to a lower client: meeting name, rank
  greeted = 9,    ///< the reply: meeting name
};

/// A rank, as it is described to the others.
struct TcpRank {
  uint64_t host_id = 0;
  int64_t process = 0;
  std::string host_name;
  TcpAddress address;  ///< the address it listens at; Kind::none: that of rank 0

  std::string text(int64_t rank) const;  ///< "rank 3 (process 17 on node7)"
};

struct TcpHello {
  std::string token;
  uint64_t instance = 0;  ///< random; the same in all attempts of one call
  int64_t rank = 0;
  int64_t size = 0;
  uint64_t agree = 0;
  TcpRank who;  ///< the rank itself; only the port of its address is valid
};

/// Builds a frame.
class TcpWriter {
 public:
  explicit TcpWriter(TcpBootstrapWord word);
  TcpWriter &number(uint64_t value);
  TcpWriter &number(int64_t value) { return number(static_cast<uint64_t>(value)); }
  TcpWriter &text(const std::string &value);  ///< cut at kLongestText
  TcpWriter &rank(const TcpRank &value);
  std::span<const std::byte> bytes() const { return bytes_; }

  static constexpr size_t kLongestText = 65536;

 private:
  std::vector<std::byte> bytes_;
};

/// Parses a frame. Missing values read as 0 or an empty text, and whole() is false then.
class TcpReader {
 public:
  /// The frame must outlive the reader.
  explicit TcpReader(std::span<const std::byte> frame);
  TcpBootstrapWord word() const { return word_; }
  uint64_t number();
  int64_t signed_number() { return static_cast<int64_t>(number()); }
  std::string text(size_t longest);
  TcpRank rank();
  /// True if all values were present and no bytes are left.
  bool whole() const { return good_ && rest_.empty(); }

 private:
  std::span<const std::byte> take(size_t nbytes);

  std::span<const std::byte> rest_;
  TcpBootstrapWord word_ = TcpBootstrapWord::none;
  bool good_ = true;
};

/// The longest hello or greeting.
inline constexpr size_t kLongestGreeting = 1024;
inline constexpr size_t kLongestName = 255;  ///< for names of hosts, and for tokens

TcpWriter write_hello(const TcpHello &hello);
/// Returns false if the frame is no hello.
bool read_hello(std::span<const std::byte> frame, TcpHello *out);

TcpWriter write_refusal(const Status &cause);
/// Reads the rest of a refusal. Always returns an error.
Status read_refusal(TcpReader *reader);

}  // namespace zero
