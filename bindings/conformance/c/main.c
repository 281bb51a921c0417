/// @file conformance: prints one line for each scenario of bindings/conformance/README.md. All languages must print the same.
#include "scenarios.h"

int main(void) {
  library_scenarios();
  group_scenarios();
  buffer_scenarios();
  server_scenarios();
  optimizer_scenarios();
  save_scenarios();
  misuse_scenarios();
  print_tables();
  return 0;
}
