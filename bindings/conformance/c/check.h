/// @file check: calls that a scenario needs and that must not fail.
#pragma once

#include <stdint.h>

/// Ends the program with the error's text unless `status` is ZERO_OK.
void must(int32_t status);
