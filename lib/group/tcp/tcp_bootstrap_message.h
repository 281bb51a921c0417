/// @file What ranks say to each other while they meet over TCP, as frames. Knows the words' form, not when they are said.
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

/// What comes with each is written beside it.
enum class TcpBootstrapWord : uint64_t {
  none = 0,       ///< no word of this protocol and version
  hello = 1,      ///< a rank to rank 0: TcpHello
  welcome = 2,    ///< rank 0 to a rank that has joined: its process and host name
  refusal = 3,    ///< rank 0 to a rank, or a rank that has met to rank 0: code and text of an error that ends the meeting
  entries = 4,    ///< rank 0 to a rank, when all have come: meeting name, first rank, count, and each rank's TcpRank
  complaint = 5,  ///< a rank to rank 0: text that says which connection it lacks
  ready = 6,      ///< a rank to rank 0: it has its connections
  go = 7,         ///< rank 0 to a rank: all have
  greeting = 8,   ///< a rank to a lower one: meeting name, rank
  greeted = 9,    ///< the answer: meeting name
};

/// A rank as it is told to the others.
struct TcpRank {
  uint64_t host_id = 0;
  int64_t process = 0;
  std::string host_name;
  TcpAddress address;  ///< where it listens; without a kind: where rank 0 is

  std::string text(int64_t rank) const;  ///< "rank 3 (process 17 on node7)"
};

struct TcpHello {
  std::string token;
  uint64_t instance = 0;  ///< random, the same whenever one call comes again
  int64_t rank = 0;
  int64_t size = 0;
  uint64_t agree = 0;
  TcpRank who;  ///< of the address only the port
};

/// Puts a frame together.
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

/// Takes a frame apart. What is not there reads as nothing and is remembered.
class TcpReader {
 public:
  /// The frame must outlive the reader.
  explicit TcpReader(std::span<const std::byte> frame);
  TcpBootstrapWord word() const { return word_; }
  uint64_t number();
  int64_t signed_number() { return static_cast<int64_t>(number()); }
  std::string text(size_t longest);
  TcpRank rank();
  /// Whether all that was read was there and nothing is left.
  bool whole() const { return good_ && rest_.empty(); }

 private:
  std::span<const std::byte> take(size_t nbytes);

  std::span<const std::byte> rest_;
  TcpBootstrapWord word_ = TcpBootstrapWord::none;
  bool good_ = true;
};

/// No hello or greeting is longer.
inline constexpr size_t kLongestGreeting = 1024;
inline constexpr size_t kLongestName = 255;  ///< of hosts and tokens

TcpWriter write_hello(const TcpHello &hello);
/// False when the frame is no hello.
bool read_hello(std::span<const std::byte> frame, TcpHello *out);

TcpWriter write_refusal(const Status &cause);
/// Reads on after the word. Always an error.
Status read_refusal(TcpReader *reader);

}  // namespace zero
