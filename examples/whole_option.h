/// @file whole_option: getopt_long takes any beginning of a name that fits no other; the examples
/// take names that are written in full.
#ifndef EXAMPLES_WHOLE_OPTION_H
#define EXAMPLES_WHOLE_OPTION_H

#include <getopt.h>
#include <stddef.h>
#include <string.h>

/// The argument in which getopt_long has just found an option, when it is not written in full;
/// otherwise NULL.
static inline const char *shortened_option(char **argv, const struct option *found) {
  const int value_follows = found->has_arg == required_argument && optarg == argv[optind - 1];
  const char *argument = argv[optind - (value_follows ? 2 : 1)];
  const size_t length = strlen(found->name);
  const int is_whole = strncmp(argument + 2, found->name, length) == 0 && (argument[2 + length] == '\0' || argument[2 + length] == '=');
  return is_whole ? NULL : argument;
}

#endif
