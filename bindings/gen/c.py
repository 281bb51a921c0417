"""Writes the C side of the comparison: a table of constants and of where every field of every struct lies, as the compiler has them."""

HEAD = "/* Written by bindings/gen/generate.py from bindings/zero.i. Do not edit. */\n"


def write(interface):
    named = [name for enumeration in interface.enumerations for name, _ in enumeration.items]
    named += [name for name, _ in interface.constants]
    constants = "".join(f'    {{"{name}", {name}}},\n' for name in named)
    rows = []
    for struct in interface.structs:
        rows.append(f'    {{"{struct.name}", "", 0, sizeof({struct.name})}},\n')
        for field in struct.fields:
            size = f"sizeof((({struct.name} *)0)->{field.name})"
            rows.append(f'    {{"{struct.name}", "{field.name}", offsetof({struct.name}, {field.name}), {size}}},\n')
    return (
        f"{HEAD}#include <stddef.h>\n#include <zero/zero.h>\n\n"
        "static const struct {\n  const char *name;\n  int64_t value;\n} constants[] = {\n"
        f"{constants}}};\n\n"
        "/* Field \"\" stands for the whole struct. */\n"
        "static const struct {\n  const char *structure, *field;\n  size_t offset, nbytes;\n} layout[] = {\n"
        f"{''.join(rows)}}};\n"
    )
