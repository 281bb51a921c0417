/// @file Status: texts, codes and names.
#include "core/status.h"

#include "core/utf8.h"

#include "tests/core/failures.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace zero::status_test {
namespace {

constexpr int32_t kCodes[] = {ZERO_OK,
                              ZERO_E_INVALID_ARGUMENT,
                              ZERO_E_BAD_HANDLE,
                              ZERO_E_UNSUPPORTED,
                              ZERO_E_STATE,
                              ZERO_E_OUT_OF_MEMORY,
                              ZERO_E_BUSY,
                              ZERO_E_MODULE,
                              ZERO_E_RENDEZVOUS,
                              ZERO_E_SYSTEM,
                              ZERO_E_LAUNCHER,
                              ZERO_E_REPLICAS_DIFFER,
                              ZERO_E_TIMEOUT,
                              ZERO_E_POOL_LIMIT,
                              ZERO_E_PEER_LOST,
                              ZERO_E_PEER_LEFT,
                              ZERO_E_PEER_FAILED,
                              ZERO_E_MISMATCH,
                              ZERO_E_ABORTED,
                              ZERO_E_TRANSPORT,
                              ZERO_E_FORKED,
                              ZERO_E_INTERNAL,
                              ZERO_E_CORRUPT,
                              ZERO_E_DEVICE,
                              ZERO_E_CHECKPOINT,
                              ZERO_E_NOT_FOUND,
                              ZERO_E_DEVICE_FAILED};

TEST(Status, IsOkWithoutTextByDefault) {
  const Status status;
  EXPECT_TRUE(status.ok());
  EXPECT_EQ(status.code(), ZERO_OK);
  EXPECT_STREQ(status.text(), "");
}

TEST(Status, ErrorHoldsCodeAndFormattedText) {
  const Status status = Status::error(ZERO_E_TIMEOUT, "rank %d of %s", 3, "four");
  EXPECT_FALSE(status.ok());
  EXPECT_EQ(status.code(), ZERO_E_TIMEOUT);
  EXPECT_STREQ(status.text(), "rank 3 of four");
}

TEST(Status, LongTextIsCutAt1023Bytes) {
  const std::string text(5000, 'x');
  EXPECT_EQ(std::string(Status::error(ZERO_E_STATE, "%s", text.c_str()).text()), text.substr(0, 1023));
}

/// Characters of one to four bytes, of which no byte, all but the last, or all bytes fit.
TEST(Status, NoCharacterIsCut) {
  for (const std::string character : {"x", "\u00e9", "\u20ac", "\U0001d53d"}) {
    for (size_t before = 0; before < 8; ++before) {
      std::string text(before, 'a');
      while (text.size() < 2000) text += character;
      const std::string cut = Status::error(ZERO_E_STATE, "%s", text.c_str()).text();
      EXPECT_EQ(cut, text.substr(0, before + (1023 - before) / character.size() * character.size()));
    }
  }
  for (const std::string whole : {"", "\u20ac", "a\u00e9"}) EXPECT_EQ(whole_nbytes(whole.data(), whole.size()), whole.size());
  const std::string not_utf8(5, '\x80');
  EXPECT_EQ(whole_nbytes(not_utf8.data(), not_utf8.size()), not_utf8.size());
}

TEST(Status, TextIsUtf8WhateverItIsMadeFrom) {
  const auto shown = [](const char *given) { return std::string(Status::error(ZERO_E_SYSTEM, "<%s>", given).text()); };
  EXPECT_EQ(shown("caf\xe9.weight"), "<caf?.weight>");
  EXPECT_EQ(shown("\xff\xfe"), "<?" "?>");
  EXPECT_EQ(shown("gr\u00f6\u00dfe \u20ac \U0001f600"), "<gr\u00f6\u00dfe \u20ac \U0001f600>");
}

TEST(Utf8, ValidBytesEndBeforeTheFirstThatIsPartOfNoCharacter) {
  const auto valid = [](const std::string &text) { return valid_nbytes(text.data(), text.size()); };
  for (const std::string whole :
       {"", "a", "\u00e9", "\u07ff", "\u0800", "\ud7ff", "\ue000", "\uffff", "\U00010000", "\U0010ffff", "a\u20acb\U0001f600c"}) {
    EXPECT_EQ(valid(whole), whole.size()) << whole;
    EXPECT_EQ(valid("x" + whole + "\xff"), whole.size() + 1) << whole;
  }
  // Continuation bytes alone, cut characters, overlong forms, surrogates, and code points beyond
  // the last character.
  for (const std::string wrong :
       {"\x80", "\xbf", "\xc3", "\xe2\x82", "\xf0\x9f\x98", "\xc0\x80", "\xc1\xbf", "\xe0\x9f\xbf", "\xf0\x8f\xbf\xbf",
        "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff"}) {
    EXPECT_EQ(valid("ab" + wrong), 2U);
    EXPECT_EQ(valid("ab" + wrong + "c"), 2U);
  }
}

TEST(Status, KeepsItsCodeWhenThereIsNoMemoryForTheText) {
  const std::string text(200, 'x');
  const test::FailingNew failing(0);
  const Status status = Status::error(ZERO_E_SYSTEM, "%s", text.c_str());
  EXPECT_EQ(status.code(), ZERO_E_SYSTEM);
  EXPECT_STREQ(status.text(), "");
}

TEST(Status, CopiesNeedNoMemory) {
  const Status status = Status::error(ZERO_E_SYSTEM, "%s", std::string(200, 'x').c_str());
  Status copy;
  {
    const test::FailingNew failing(0);
    copy = status;
  }
  EXPECT_EQ(copy.code(), ZERO_E_SYSTEM);
  EXPECT_EQ(copy.text(), std::string(200, 'x'));
}

Status check_even(int value) {
  ZERO_CHECK(value % 2 == 0, ZERO_E_INVALID_ARGUMENT, "value is %d, but must be even", value);
  return {};
}
Status check_twice(int first, int second) {
  ZERO_TRY(check_even(first));
  ZERO_TRY(check_even(second));
  return {};
}

TEST(Status, TryPassesTheFirstErrorUp) {
  EXPECT_TRUE(check_twice(2, 4).ok());
  EXPECT_STREQ(check_twice(3, 5).text(), "value is 3, but must be even");
  EXPECT_STREQ(check_twice(2, 5).text(), "value is 5, but must be even");
}

TEST(Status, EveryCodeHasItsOwnName) {
  std::set<std::string> names;
  int named = 0;
  for (int32_t code = 10; code > -600; --code) named += std::string(status_name(code)) != "ZERO_E_UNKNOWN";
  for (const int32_t code : kCodes) {
    names.insert(status_name(code));
    EXPECT_STRNE(status_name(code), "ZERO_E_UNKNOWN") << code;
  }
  EXPECT_EQ(names.size(), std::size(kCodes));
  EXPECT_EQ(named, static_cast<int>(std::size(kCodes)));
  EXPECT_STREQ(status_name(ZERO_E_PEER_LOST), "ZERO_E_PEER_LOST");
  EXPECT_STREQ(status_name(INT32_MIN), "ZERO_E_UNKNOWN");
}

TEST(Status, OnlyCodesFromMinus300ToMinus399PoisonAGroup) {
  for (int32_t code = 100; code > -600; --code) EXPECT_EQ(poisons_group(code), code <= -300 && code >= -399) << code;
}

}  // namespace
}  // namespace zero::status_test
