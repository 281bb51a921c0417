/// @file tables: constants and layout of structs, as this compiler has them.
#include <inttypes.h>
#include <stdio.h>

#include "generated.h"
#include "scenarios.h"

void print_tables(void) {
  for (size_t i = 0; i < sizeof constants / sizeof *constants; i++) {
    printf("constant %s: %" PRId64 "\n", constants[i].name, constants[i].value);
  }
  for (size_t i = 0; i < sizeof layout / sizeof *layout; i++) {
    const char *field = *layout[i].field ? layout[i].field : "*";
    printf("field %s %s: %zu %zu\n", layout[i].structure, field, layout[i].offset, layout[i].nbytes);
  }
}
