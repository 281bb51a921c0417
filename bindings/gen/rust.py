"""Writes libzero-sys: the C declarations in Rust, and what the conformance program says about constants and layout."""

from interface import Array

HEAD = "// Written by bindings/gen/generate.py from bindings/zero.i. Do not edit.\n"
SCALARS = {"int32_t": "i32", "int64_t": "i64", "uint64_t": "u64", "double": "f64", "void": "c_void", "char": "c_char"}
KEYWORDS = {"type", "fn", "ref", "use", "move", "in", "as", "mod", "box"}


def write(interface):
    parts = [HEAD, "use core::ffi::c_void;\nuse std::os::raw::c_char;\n"]
    parts += [_handle(name) for name in interface.handles]
    parts += [_callback(callback) for callback in interface.callbacks]
    parts += [_enumeration(enumeration) for enumeration in interface.enumerations]
    parts += ["".join(f"pub const {name}: i64 = {value};\n" for name, value in interface.constants)]
    parts += [_struct(struct) for struct in interface.structs]
    parts += ['extern "C" {\n' + "\n".join(_function(function) for function in interface.functions) + "}\n"]
    parts += [_constants_table(interface), _layout(interface)]
    return "\n".join(parts)


def _type(c):
    """"const zero_group *" as "*const zero_group"."""
    base, _, stars = c.removeprefix("const ").partition(" ")
    base = SCALARS.get(base, base)
    for depth in range(len(stars)):
        base = ("*const " if c.startswith("const ") and depth == 0 else "*mut ") + base
    return base


def _name(name):
    return f"{name}_" if name in KEYWORDS else name


def _handle(name):
    return (
        f"/// An opaque handle.\n#[repr(C)]\npub struct {name} {{\n    _opaque: [u8; 0],\n"
        "    _not_send: core::marker::PhantomData<*mut u8>,\n}\n"
    )


def _callback(callback):
    result = "" if callback.result == "void" else f" -> {_type(callback.result)}"
    return f'pub type {callback.name} = Option<unsafe extern "C" fn({", ".join(map(_type, callback.types))}){result}>;\n'


def _enumeration(enumeration):
    lines = "".join(f"pub const {name}: i32 = {value};\n" for name, value in enumeration.items)
    return f"// enum {enumeration.name}\n{lines}"


def _struct(struct):
    fields = "".join(f"    pub {_name(field.name)}: {_type(field.type)},\n" for field in struct.fields)
    return f"#[repr(C)]\n#[derive(Clone, Copy, Debug, Default, PartialEq)]\npub struct {struct.name} {{\n{fields}}}\n"


def _function(function):
    parameters = ", ".join(f"{_name(p.name)}: {_type(p.type)}" for p in function.parameters)
    result = "" if function.result == "void" else f" -> {_type(function.result)}"
    return f"    /// {_sentence(function)}\n    pub fn {function.name}({parameters}){result};\n"


def _sentence(function):
    """What zero.i knows beyond the declaration; the header holds the rest."""
    notes = []
    for array in (a for a in function.arguments if isinstance(a, Array)):
        pointer, length = array.parameters[:2]
        access = {"in": "reads", "out": "writes", "text": "writes a text to"}[array.mode]
        notes.append(f"{access} `{pointer.name}[..{length.name}]`")
    if function.blocking:
        notes.append("waits for other ranks")
    if function.owned:
        notes.append("what it makes is the caller's")
    if function.keeps:
        notes.append(f"keeps `{function.keeps}` alive")
    return "; ".join([f"See `{function.header}`", *notes]) + "."


def _constants_table(interface):
    rows = "".join(f'    ("{name}", {name} as i64),\n' for enumeration in interface.enumerations for name, _ in enumeration.items)
    rows += "".join(f'    ("{name}", {name}),\n' for name, _ in interface.constants)
    return f"/// Every constant by name, for checks against other languages.\npub const CONSTANTS: &[(&str, i64)] = &[\n{rows}];\n"


def _layout(interface):
    made = "".join(f"    let {_local(struct)} = {struct.name}::default();\n" for struct in interface.structs)
    rows = []
    for struct in interface.structs:
        it = _local(struct)
        rows.append(f'        row("{struct.name}", "", &{it}, &{it}),\n')
        rows += [f'        row("{struct.name}", "{field.name}", &{it}, &{it}.{_name(field.name)}),\n' for field in struct.fields]
    return (
        "/// Struct, field, offset, size.\npub type Row = (&'static str, &'static str, usize, usize);\n\n"
        "/// Where every field of every struct lies: struct, field, offset and size in bytes; field \"\" stands for the whole.\n"
        f"pub fn layout() -> Vec<Row> {{\n{made}    vec![\n{''.join(rows)}    ]\n}}\n\n"
        "fn row<S, F>(name: &'static str, field: &'static str, whole: &S, part: &F) -> Row {\n"
        "    let offset = part as *const F as usize - whole as *const S as usize;\n"
        "    (name, field, offset, core::mem::size_of::<F>())\n}\n"
    )


def _local(struct):
    """A variable for a struct."""
    return struct.name.removeprefix("zero_")
