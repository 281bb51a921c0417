"""Writes what Python takes from the interface besides SWIG's functions: enumerations, constants, and structs as ctypes lays them out."""

HEAD = '"""Written by bindings/gen/generate.py from bindings/zero.i. Do not edit."""\n'
SCALARS = {"int64_t": "c_int64", "uint64_t": "c_uint64", "double": "c_double"}
PREFIX = "ZERO_"


def write(interface):
    parts = [f"{HEAD}\nimport ctypes\nimport enum\n\nfrom .structure import Structure\n"]
    parts += [_enumeration(enumeration) for enumeration in interface.enumerations]
    parts += ["".join(f"{name.removeprefix(PREFIX)} = {value}\n" for name, value in interface.constants)]
    parts += [_struct(struct) for struct in interface.structs]
    parts += [_constants_table(interface), _structs_table(interface)]
    return "\n\n".join(parts)


def _class_name(name):
    """"zero_step_result" as "StepResult"."""
    return "".join(part.capitalize() for part in name.removeprefix("zero_").split("_"))


def _members(enumeration):
    """(name in C, name in Python, value): ZERO_DTYPE_F32 of zero_dtype is F32, ZERO_OK of zero_status is OK."""
    for name, value in enumeration.items:
        yield name, name.removeprefix(enumeration.prefix), value


def _enumeration(enumeration):
    members = "".join(f"    {member} = {value}\n" for _, member, value in _members(enumeration))
    return f'class {_class_name(enumeration.name)}(enum.IntEnum):\n    """{enumeration.name}."""\n\n{members}'


def _struct(struct):
    fields = "".join(f'        ("{field.name}", ctypes.{SCALARS[field.type]}),\n' for field in struct.fields)
    return f'class {_class_name(struct.name)}(Structure):\n    """{struct.name}."""\n\n    _fields_ = (\n{fields}    )\n'


def _constants_table(interface):
    rows = "".join(
        f'    ("{name}", {_class_name(enumeration.name)}.{member}),\n'
        for enumeration in interface.enumerations
        for name, member, _ in _members(enumeration)
    )
    rows += "".join(f'    ("{name}", {name.removeprefix(PREFIX)}),\n' for name, _ in interface.constants)
    return f"# Every constant by its name in C, for checks against other languages.\nCONSTANTS = (\n{rows})\n"


def _structs_table(interface):
    rows = "".join(f'    ("{struct.name}", {_class_name(struct.name)}),\n' for struct in interface.structs)
    return f"# Every struct by its name in C.\nSTRUCTS = (\n{rows})\n"
