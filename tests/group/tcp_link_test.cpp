/// @file Frames over a connection: whole whatever they are cut into, in order, and none of what is no frame.
/// Knows sockets, not ranks.
#include "group/tcp/tcp_link.h"

#include "tests/core/failures.h"
#include "tests/group/tcp_meetings.h"

#include <gtest/gtest.h>

#include <sys/socket.h>

#include <cstring>
#include <new>
#include <random>

namespace zero::tcp_link_test {
namespace {

using test::await_frame;
using test::bytes_of;
using test::text_of;
using Received = TcpLink::Received;

/// Two ends of a connection: a link and a bare socket, or two links.
struct Ends {
  OwnedFd first, second;
  Ends() {
    OwnedFd listener;
    EXPECT_TRUE(listen_on(0, &listener).ok());
    first = test::connect_anybody(local_address(listener.get()).port);
    const Deadline deadline = Deadline::after_ms(test::kWaitMs);
    while (!second.valid() && !deadline.passed()) second = accept_connection(listener.get());
    EXPECT_TRUE(first.valid() && second.valid());
  }
};

/// What a frame is on the wire.
std::string wire_of(const std::string &text) {
  const auto length = static_cast<uint32_t>(text.size());
  return std::string(reinterpret_cast<const char *>(&length), sizeof length) + text;
}

void write_raw(const OwnedFd &socket, const std::string &bytes) {
  for (size_t sent = 0; sent < bytes.size();) {
    const ssize_t nbytes = ::send(socket.get(), bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
    if (nbytes > 0) sent += static_cast<size_t>(nbytes);
    ASSERT_TRUE(nbytes > 0 || errno == EAGAIN);
  }
}

std::string random_text(size_t nbytes, uint32_t seed) {
  std::mt19937 random(seed);
  std::string text(nbytes, '\0');
  for (char &letter : text) letter = static_cast<char>(random());
  return text;
}

TEST(TcpLink, FramesOfAllSizesArriveWholeAndInOrder) {
  Ends ends;
  TcpLink sender(std::move(ends.first));
  TcpLink receiver(std::move(ends.second));
  const size_t longest = TcpLink::kLongestFrame;
  std::vector<std::string> texts;
  for (const size_t nbytes : {size_t{0}, size_t{1}, size_t{7}, size_t{65535}, longest, size_t{0}, longest - 1, size_t{3}}) {
    texts.push_back(random_text(nbytes, static_cast<uint32_t>(nbytes)));
    sender.send({bytes_of(texts.back())});
  }
  for (const std::string &text : texts) {
    std::vector<std::byte> frame;
    const Deadline deadline = Deadline::after_ms(test::kWaitMs);
    Received received = Received::nothing;
    while (received == Received::nothing && !deadline.passed()) {
      sender.flush();
      received = receiver.receive(&frame);
    }
    ASSERT_EQ(received, Received::frame);
    EXPECT_EQ(text_of(frame), text);
  }
  EXPECT_TRUE(sender.flush());
  std::vector<std::byte> frame;
  EXPECT_EQ(receiver.receive(&frame), Received::nothing);
}

TEST(TcpLink, PartsOfAFrameArriveAsOne) {
  Ends ends;
  TcpLink sender(std::move(ends.first));
  TcpLink receiver(std::move(ends.second));
  sender.send({bytes_of("one "), bytes_of(""), bytes_of("two "), bytes_of("three")});
  sender.send({});
  std::vector<std::byte> frame;
  ASSERT_EQ(await_frame(&receiver, &frame), Received::frame);
  EXPECT_EQ(text_of(frame), "one two three");
  ASSERT_EQ(await_frame(&receiver, &frame), Received::frame);
  EXPECT_TRUE(frame.empty());
}

TEST(TcpLink, AFrameMayComeCutAnywhere) {
  const std::string wire = wire_of("first") + wire_of("") + wire_of("last one");
  for (size_t cut = 0; cut <= wire.size(); ++cut) {
    Ends ends;
    TcpLink receiver(std::move(ends.second));
    write_raw(ends.first, wire.substr(0, cut));
    std::vector<std::byte> frame;
    std::vector<std::string> got;
    while (receiver.receive(&frame) == Received::frame) got.push_back(text_of(frame));
    write_raw(ends.first, wire.substr(cut));
    while (got.size() < 3 && await_frame(&receiver, &frame) == Received::frame) got.push_back(text_of(frame));
    EXPECT_EQ(got, (std::vector<std::string>{"first", "", "last one"})) << "cut at " << cut;
    EXPECT_EQ(receiver.receive(&frame), Received::nothing);
  }
}

TEST(TcpLink, BytesThatComeOneByOneAreAFrame) {
  Ends ends;
  TcpLink receiver(std::move(ends.second));
  std::vector<std::byte> frame;
  const std::string wire = wire_of("slowly");
  for (const char letter : wire) {
    EXPECT_EQ(receiver.receive(&frame), Received::nothing);
    write_raw(ends.first, std::string(1, letter));
  }
  ASSERT_EQ(await_frame(&receiver, &frame), Received::frame);
  EXPECT_EQ(text_of(frame), "slowly");
}

TEST(TcpLink, ALengthBeyondTheLimitEndsTheLinkAfterWhatCameBefore) {
  for (const bool limited : {false, true}) {
    Ends ends;
    TcpLink receiver(std::move(ends.second));
    if (limited) receiver.limit(10);
    const uint32_t length = limited ? 11 : static_cast<uint32_t>(TcpLink::kLongestFrame) + 1;
    write_raw(ends.first, wire_of("0123456789") + std::string(reinterpret_cast<const char *>(&length), sizeof length) + "what follows");
    std::vector<std::byte> frame;
    ASSERT_EQ(await_frame(&receiver, &frame), Received::frame);
    EXPECT_EQ(text_of(frame), "0123456789");
    EXPECT_EQ(await_frame(&receiver, &frame), Received::ended);
    EXPECT_FALSE(receiver.open());
    EXPECT_EQ(receiver.receive(&frame), Received::ended);
  }
}

TEST(TcpLink, ALimitMayBeRaisedAgain) {
  Ends ends;
  TcpLink receiver(std::move(ends.second));
  receiver.limit(5);
  const std::string text = random_text(TcpLink::kLongestFrame, 1);
  std::vector<std::byte> frame;
  write_raw(ends.first, wire_of("hello"));
  ASSERT_EQ(await_frame(&receiver, &frame), Received::frame);
  receiver.limit(TcpLink::kLongestFrame);
  std::jthread writer([&] { write_raw(ends.first, wire_of(text)); });
  ASSERT_EQ(await_frame(&receiver, &frame), Received::frame);
  EXPECT_EQ(text_of(frame), text);
}

TEST(TcpLink, TheEndComesAfterAllFramesAndHalfAFrameIsNone) {
  Ends ends;
  TcpLink receiver(std::move(ends.second));
  write_raw(ends.first, wire_of("one") + wire_of("two") + wire_of("three").substr(0, 6));
  ends.first.reset(-1);
  std::vector<std::byte> frame;
  for (const char *text : {"one", "two"}) {
    ASSERT_EQ(await_frame(&receiver, &frame), Received::frame);
    EXPECT_EQ(text_of(frame), text);
  }
  EXPECT_EQ(await_frame(&receiver, &frame), Received::ended);
}

TEST(TcpLink, WhoSendsToOneThatIsGoneLearnsOfItByReceiving) {
  Ends ends;
  TcpLink sender(std::move(ends.first));
  ends.second.reset(-1);
  const std::string text(1000, 'x');
  std::vector<std::byte> frame;
  sender.send({bytes_of(text)});
  EXPECT_EQ(await_frame(&sender, &frame), Received::ended);
  EXPECT_FALSE(sender.open());
  sender.send({bytes_of(text)});
  EXPECT_TRUE(sender.flush());
}

/// The frame that no memory was left for is sent whole or not at all, and those around it are as they were.
TEST(TcpLink, ASendThatRunsOutOfMemoryLeavesNoPieceOfAFrame) {
  const std::string first = random_text(1000, 3), second = random_text(100'000, 4);
  for (int64_t allowed = 0; allowed < 4; ++allowed) {
    Ends ends;
    TcpLink sender(std::move(ends.first));
    TcpLink receiver(std::move(ends.second));
    sender.send({bytes_of("before")});
    bool sent = true;
    try {
      const test::FailingNew failing(allowed);
      sender.send({bytes_of(first), bytes_of(second)});
    } catch (const std::bad_alloc &) {
      sent = false;
    }
    EXPECT_TRUE(sent || allowed < 3);
    EXPECT_TRUE(!sent || allowed > 0);
    sender.send({bytes_of("after")});
    for (const std::string &text : {std::string("before"), first + second, std::string("after")}) {
      if (!sent && text.size() > 100) continue;
      std::vector<std::byte> frame;
      ASSERT_EQ(await_frame(&receiver, &frame), Received::frame) << allowed;
      EXPECT_TRUE(text_of(frame) == text) << allowed;
      sender.flush();
    }
  }
}

TEST(TcpLink, AReceiveThatRunsOutOfMemoryLosesNothing) {
  const std::string text = random_text(100'000, 5);
  int64_t failed = 0;
  for (int64_t allowed = 0; allowed < 16; ++allowed) {
    Ends ends;
    TcpLink receiver(std::move(ends.second));
    std::vector<std::byte> frame;
    write_raw(ends.first, wire_of("before"));
    ASSERT_EQ(await_frame(&receiver, &frame), Received::frame);
    write_raw(ends.first, wire_of(text));
    Received received = Received::nothing;
    const Deadline deadline = Deadline::after_ms(test::kWaitMs);
    try {
      const test::FailingNew failing(allowed);
      while (received == Received::nothing && !deadline.passed()) received = receiver.receive(&frame);
    } catch (const std::bad_alloc &) {
      ++failed;
    }
    if (received == Received::nothing) received = await_frame(&receiver, &frame);
    ASSERT_EQ(received, Received::frame) << allowed;
    EXPECT_TRUE(text_of(frame) == text) << allowed;
  }
  EXPECT_GT(failed, 1);
  EXPECT_LT(failed, 16);
}

TEST(TcpLink, WhatAFullSocketDoesNotTakeGoesLater) {
  Ends ends;
  TcpLink sender(std::move(ends.first));
  TcpLink receiver(std::move(ends.second));
  const std::string text = random_text(TcpLink::kLongestFrame, 2);
  int64_t sent = 0;
  for (bool full = false; !full; full = !sender.flush()) {
    sender.send({bytes_of(text)});
    ASSERT_LT(++sent, 1000);
  }
  // Going on with something always waiting: it is given in order, and what was sent is forgotten.
  for (int64_t received = 0; received < sent; ++received) {
    if (received < 20) {
      sender.send({bytes_of(text)});
      ++sent;
    }
    std::vector<std::byte> frame;
    Received came = Received::nothing;
    const Deadline deadline = Deadline::after_ms(test::kWaitMs);
    while (came == Received::nothing && !deadline.passed()) {
      sender.flush();
      came = receiver.receive(&frame);
    }
    ASSERT_EQ(came, Received::frame);
    ASSERT_TRUE(text_of(frame) == text);
  }
  EXPECT_TRUE(sender.flush());
}

}  // namespace
}  // namespace zero::tcp_link_test
