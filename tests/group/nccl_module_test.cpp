/// @file Finding and judging the NCCL module: files that are missing, are something else, were built for another library, or bring an old
/// NCCL, and a variable that makes NCCL wait.
#include "group/nccl/nccl_module.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>

namespace zero::nccl_module_test {
namespace {

Status load(const std::string &path) {
  const zero_nccl_table *table = nullptr;
  return load_nccl_module(path, &table);
}

void expect_refused(const Status &status, const char *part) {
  EXPECT_EQ(status.code(), ZERO_E_MODULE);
  EXPECT_NE(std::strstr(status.text(), part), nullptr) << status.text();
}

// What fits but for its NCCL stays, so what must be refused for other reasons comes first.
TEST(NcclModule, FilesThatAreMissingAreNamedWithTheReasonAndWhatToInstall) {
  expect_refused(load("/no/such/module.so"), "/no/such/module.so: cannot open");
  expect_refused(load("/no/such/module.so"), "install NCCL 2.28 or newer (libnccl.so.2)");
  expect_refused(load("/no/such/module.so"), "ZERO_NCCL=ON");
  expect_refused(load("/no/such/module.so"), "ZERO_KEY_NCCL_MODULE");
  ::setenv("ZERO_NCCL_MODULE", "/no/such/variable.so", 1);
  expect_refused(load(""), "/no/such/variable.so");
  ::unsetenv("ZERO_NCCL_MODULE");
}

TEST(NcclModule, LibrariesThatAreNoModuleOrOfAnotherBuildAreRefused) {
  expect_refused(load("libm.so.6"), "it has no symbol zero_nccl_module");
  expect_refused(load(ZERO_BAD_MODULES "1.so"), "\"libzero 0.0.0\"");
}

TEST(NcclModule, CommunicatorsThatAVariableMakesWaitAreRefused) {
  ::setenv("NCCL_COMM_BLOCKING", "1", 1);
  expect_refused(load(ZERO_BAD_MODULES "2.so"), "NCCL_COMM_BLOCKING is 1, which makes calls of NCCL wait without a limit");
  ::setenv("NCCL_COMM_BLOCKING", "0", 1);
  expect_refused(load(ZERO_BAD_MODULES "2.so"), "does not tell its version: error 3 on demand");
  ::unsetenv("NCCL_COMM_BLOCKING");
}

TEST(NcclModule, AnNcclThatIsTooOldIsRefusedEachTime) {
  for (int i = 0; i < 2; ++i) expect_refused(load(ZERO_BAD_MODULES "2.so"), "is 2.18.1, libzero needs 2.28.0 or newer");
  expect_refused(load(""), "is 2.18.1, libzero needs 2.28.0 or newer");
}

}  // namespace
}  // namespace zero::nccl_module_test
