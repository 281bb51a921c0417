"""Writes the Julia layer: constants, structs, and one function per C function that takes arrays, returns what C hands out through pointers,
throws errors, and polls where C would wait. What it calls (entry, check, finish, text, address_of, length_of) is written by hand."""

import re

from interface import Array

HEAD = "# Written by bindings/gen/generate.py from bindings/zero.i. Do not edit.\n"
SCALARS = {"int32_t": "Int32", "int64_t": "Int64", "uint64_t": "UInt64", "double": "Float64"}
TEXT = {"char *": "Ptr{UInt8}", "int64_t *": "Ptr{Int64}", "int64_t": "Int64"}
# Errors and polling have another form than the rest; saves wait for other ranks in the call that begins them, unless those are waited for
# before.
BY_HAND = {"zero_last_error_copy", "zero_request_test", "zero_optimizer_save", "zero_checkpoint_save"}
# Errors carry the name that the library gives their code.
UNNAMED = {"zero_status"}
WIDTH = 140


def write(interface):
    functions = [f for f in interface.functions if not f.name.endswith("_async") and f.name not in BY_HAND]
    types = _Types(interface)
    parts = [HEAD]
    parts += [_enumeration(enumeration) for enumeration in interface.enumerations]
    parts += ["".join(f"const {name} = {value}\n" for name, value in interface.constants)]
    named = [enumeration for enumeration in interface.enumerations if enumeration.name not in UNNAMED]
    parts += ["# The values of each enum by the names that callers use.\n" + "".join(_names(enumeration) for enumeration in named)]
    parts += [_struct(struct, types) for struct in interface.structs]
    parts += [_table(interface)]
    parts += [_Writer(function, types).text() for function in functions]
    parts += [_constants_table(interface), _layout(interface, types)]
    return "\n".join(parts)


def _enumeration(enumeration):
    return f"# enum {enumeration.name}\n" + "".join(f"const {name} = Int32({value})\n" for name, value in enumeration.items)


def _names(enumeration):
    """zero_micro_step becomes MICRO_STEP, its ZERO_MICRO_STEP_LAST the name :last."""
    noun = enumeration.name[len("zero_"):]
    rows = "".join(f"    :{name.removeprefix(enumeration.prefix).lower()} => {name},\n" for name, _ in enumeration.items)
    return f'const {noun.upper()} = Enumeration("{noun.replace("_", " ")}", [\n{rows}])\n'


def _struct(struct, types):
    name = types.structs[struct.name]
    fields = "".join(f"    {field.name}::{SCALARS[field.type]}\n" for field in struct.fields)
    zeros = ", ".join([f"sizeof({name})"] + ["0"] * (len(struct.fields) - 1))
    return f"struct {name}\n{fields}end\n{name}() = {name}({zeros})\n"


def _table(interface):
    names = [function.name for function in interface.functions]
    fields = "".join(f"    {name}::Ptr{{Cvoid}}\n" for name in names)
    return (
        f"# Where the functions of the loaded library lie.\nmutable struct Functions\n{fields}"
        f"    Functions() = new(ntuple(_ -> C_NULL, {len(names)})...)\nend\nconst libzero = Functions()\n"
    )


class _Types:
    """C's types as ccall wants them."""

    def __init__(self, interface):
        self.structs = {s.name: "".join(word.title() for word in s.name.split("_")[1:]) for s in interface.structs}
        self.handles = set(interface.handles)

    def of(self, c):
        if c in SCALARS:
            return SCALARS[c]
        if c == "const char *":
            return "Cstring"
        if not c.endswith("*"):
            return "Ptr{Cvoid}"  # a function
        target = self.target(c)
        if target in self.handles:
            return "Handle"
        return f"Ptr{{{self.structs.get(target) or SCALARS.get(target) or self._pointed_at(target)}}}"

    def target(self, c):
        return re.sub(r"^const ", "", c[:-1].rstrip())

    def _pointed_at(self, target):
        if target == "void":
            return "Cvoid"
        return "Handle" if self.target(target) in self.handles else "Ptr{Cvoid}"

    def first(self, c):
        """The expression for what C is to overwrite."""
        target = self.target(c)
        if target in self.structs:
            return f"{self.structs[target]}()"
        return f"{SCALARS[target]}(0)" if target in SCALARS else f"{self._pointed_at(target)}(C_NULL)"


class _Writer:
    """One function's text: its Julia arguments, what is prepared, the call, what is returned."""

    def __init__(self, function, types):
        self.function = function
        self.types = types
        self.signature, self.values, self.arrays, self.prepared, self.returned = [], [], [], [], []
        self.is_text = False
        for argument in function.arguments:
            if isinstance(argument, Array):
                self._array(argument)
            elif argument.name.startswith("out") and argument.type.endswith("*"):
                self._out(argument)
            else:
                self._plain(argument)

    def _plain(self, parameter):
        # Streams are for addresses on devices, which the package does not take.
        self.signature.append("stream = C_NULL" if parameter.name == "stream" else parameter.name)
        self.values.append((self.types.of(parameter.type), parameter.name))

    def _array(self, array):
        if array.mode == "text":
            self.is_text = True
            self.values += [(TEXT[parameter.type], parameter.name) for parameter in array.parameters]
            return
        pointer, length = array.parameters
        self.signature.append(pointer.name)
        self.arrays.append(pointer.name)
        self.values += [(self.types.of(pointer.type), f"address_of({pointer.name})"), ("Int64", f"length_of({pointer.name})")]

    def _out(self, parameter):
        if self.function.blocking in ("group", "buffer") and parameter.name == "out":
            return  # comes from the request
        self.prepared.append(f"{parameter.name} = Ref({self.types.first(parameter.type)})")
        self.values.append((self.types.of(parameter.type), parameter.name))
        self.returned.append(f"{parameter.name}[]")

    def text(self):
        lines = self.prepared + self._body()
        return f"function {self.function.name}({', '.join(self.signature)})\n" + "".join(f"    {line}\n" for line in lines) + "end\n"

    def _body(self):
        function = self.function
        if self.is_text:
            return ["return text() do out, out_nbytes, out_needed", *self._call(function.name, "    "), "end"]
        if function.blocking:
            return self._blocking()
        if function.result == "const char *":
            return self._call(function.name, "return unsafe_string(", ")")
        if function.result != "int32_t":
            return self._call(function.name, "return ")
        preserved = f"GC.@preserve {' '.join(self.arrays)} " if self.arrays else ""
        return self._call(function.name, f"{preserved}check(", ")") + [f"return {', '.join(self.returned) or 'nothing'}"]

    def _blocking(self):
        self.values.append(("Ptr{Handle}", "request"))
        call = self._call(self.function.name + "_async", "    ")
        if self.function.blocking != "nothing":
            return [f"return finish(zero_request_{self.function.blocking}) do request", *call, "end"]
        return ["finish() do request", *call, "end", f"return {', '.join(self.returned) or 'nothing'}"]

    def _call(self, name, before="", after=""):
        """The call on one line, or with its values on a second one."""
        types = ", ".join(julia for julia, _ in self.values) + ("," if len(self.values) == 1 else "")
        result = {"void": "Cvoid", "const char *": "Cstring"}.get(self.function.result) or SCALARS[self.function.result]
        head = f"{before}ccall(entry(libzero.{name}), {result}, ({types})" + ("," if self.values else "")
        values = ", ".join(value for _, value in self.values) + f"){after}"
        whole = f"{head} {values}" if self.values else head + values
        indent = " " * (len(before) - len(before.lstrip()) + 6)
        return [whole] if len(whole) + 4 <= WIDTH else [head, indent + values]


def _constants_table(interface):
    named = [name for enumeration in interface.enumerations for name, _ in enumeration.items]
    named += [name for name, _ in interface.constants]
    rows = "".join(f'    "{name}" => Int64({name}),\n' for name in named)
    return f"# Every constant by name, for checks against other languages.\nconst CONSTANTS = [\n{rows}]\n"


def _layout(interface, types):
    rows = "".join(f'    "{struct.name}" => {types.structs[struct.name]},\n' for struct in interface.structs)
    return f"# Every struct by its name in C, for checks of layout.\nconst STRUCTS = [\n{rows}]\n"
