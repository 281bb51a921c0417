/// @file Finding and judging the MPI module: files that are missing, are something else, or were built for another library or MPI.
#include "group/mpi/mpi_module.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>

/// As in a program that is linked to an MPI.
extern "C" __attribute__((visibility("default"))) int MPI_Init_thread() { return 0; }

namespace zero::mpi_module_test {
namespace {

Status load(const std::string &path) {
  const zero_mpi_table *table = nullptr;
  return load_mpi_module(path, &table);
}

void expect_refused(const Status &status, const char *part) {
  EXPECT_EQ(status.code(), ZERO_E_MODULE);
  EXPECT_NE(std::strstr(status.text(), part), nullptr) << status.text();
}

// The first module that loads stays, so what must be refused comes first.
TEST(MpiModule, FilesThatAreMissingAreNamedWithTheReason) {
  expect_refused(load("/no/such/module.so"), "/no/such/module.so: cannot open");
  ::setenv("ZERO_MPI_MODULE", "/no/such/variable.so", 1);
  expect_refused(load(""), "/no/such/variable.so");
  ::setenv("ZERO_MPI_MODULE", "", 1);
  ::unsetenv("ZERO_MPI_MODULE");
}

TEST(MpiModule, LibrariesThatAreNoModuleOrOfAnotherBuildAreRefused) {
  expect_refused(load("libm.so.6"), "it has no symbol zero_mpi_module");
  expect_refused(load(ZERO_BAD_MODULES "1.so"), "\"libzero 0.0.0\"");
  expect_refused(load(ZERO_BAD_MODULES "2.so"), "it says \"\"");
  expect_refused(load(ZERO_BAD_MODULES "3.so"), "bytes, this library's has");
  expect_refused(load(ZERO_BAD_MODULES "4.so"), "it says \"\"");
}

TEST(MpiModule, AModuleForAnotherMpiThanTheProgramsIsRefused) {
  expect_refused(load(ZERO_BAD_MODULES "5.so"), "this process uses the MPI of");
}

TEST(MpiModule, OneModuleServesTheProcess) {
  ASSERT_TRUE(load(ZERO_FAKE_MPI_FILE).ok());
  EXPECT_TRUE(load("").ok());
  EXPECT_TRUE(load(ZERO_FAKE_MPI_FILE).ok());
  expect_refused(load(ZERO_BAD_MODULES "1.so"), "a second one");
  expect_refused(load("/no/such/module.so"), "a second one");
}

}  // namespace
}  // namespace zero::mpi_module_test
