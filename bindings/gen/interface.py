"""The C interface as SWIG parsed it from zero.i: what the writers of the languages are given."""

import dataclasses
import os
import pathlib
import re
import xml.etree.ElementTree as ElementTree


@dataclasses.dataclass(frozen=True)
class Parameter:
    name: str
    type: str  # as C writes it, for example "const zero_group *"


@dataclasses.dataclass(frozen=True)
class Array:
    """Parameters that stand for one array: a pointer, its length, and for texts what the whole needs."""

    mode: str  # "in", "out" or "text"
    parameters: tuple


@dataclasses.dataclass(frozen=True)
class Function:
    name: str
    header: str
    result: str
    arguments: tuple  # of Parameter and Array
    blocking: str  # "" or what the twin's request yields: "nothing", "group", "buffer"
    keeps: str  # the parameter that the new object, or the first argument, keeps alive
    owned: bool  # the caller owns what it makes

    @property
    def parameters(self):
        for argument in self.arguments:
            yield from argument.parameters if isinstance(argument, Array) else (argument,)


@dataclasses.dataclass(frozen=True)
class Struct:
    name: str
    fields: tuple  # of Parameter; each takes 8 bytes


@dataclasses.dataclass(frozen=True)
class Enumeration:
    name: str
    items: tuple  # of (name, value)

    @property
    def prefix(self):
        """The part that the names of all items share: ZERO_DTYPE_ of zero_dtype, ZERO_TEXT_ of zero_text_form, ZERO_ of zero_status."""
        names = [name for name, _ in self.items]
        own = f"{self.name.upper()}_"
        if all(name.startswith(own) for name in names):
            return own
        return os.path.commonprefix(names).rpartition("_")[0] + "_"


@dataclasses.dataclass(frozen=True)
class Callback:
    name: str
    result: str
    types: tuple


class Interface:
    """Everything that the headers declare, in their order."""

    def __init__(self, path):
        self.functions, self.structs, self.enumerations, self.callbacks = [], [], [], []
        self.constants = []  # (name, value) of #define
        self.handles = []
        self._arrays = []
        self._walk(ElementTree.parse(path).getroot(), "")
        structs = {struct.name for struct in self.structs}
        self.handles = [name for name in self.handles if name not in structs]
        self._check_twins()

    def _walk(self, node, header):
        for child in node:
            attributes = _attributes(child)
            if child.tag == "include":
                name = pathlib.PurePath(attributes.get("name", ""))
                self._walk(child, f"zero/{name.name}" if name.parent.name == "zero" else header)
            elif child.tag == "typemap":
                self._add_array(child, attributes)
            elif not header:
                self._walk(child, header)
            elif child.tag == "cdecl":
                self._add_declaration(child, attributes, header)
            elif child.tag == "class":
                self.structs.append(Struct(attributes["name"], tuple(_fields(child))))
            elif child.tag == "enum":
                self.enumerations.append(Enumeration(attributes["name"], tuple(_items(child))))
            elif child.tag == "constant":
                self.constants.append((attributes["name"], _number(attributes["value"])))
            else:
                self._walk(child, header)

    def _add_array(self, node, attributes):
        if attributes.get("method") == "zero":
            self._arrays.append(Array(attributes["code"], tuple(_parameters(node.find("typemapitem")))))

    def _add_declaration(self, node, attributes, header):
        name, declarator, result = attributes["name"], attributes.get("decl", ""), attributes["type"]
        if attributes.get("kind") == "function":
            self.functions.append(
                Function(
                    name,
                    header,
                    _c_type(_split_declarator(declarator)[1] + result),
                    tuple(self._group(tuple(_parameters(node)))),
                    attributes.get("feature_zero_blocking", ""),
                    attributes.get("feature_zero_keeps", ""),
                    "feature_new" in attributes,
                )
            )
        elif attributes.get("storage") == "typedef" and declarator.startswith("p.f("):
            types, after = _split_declarator(declarator[len("p."):])
            self.callbacks.append(Callback(name, _c_type(after + result), tuple(_c_type(t) for t in types.split(","))))
        elif attributes.get("storage") == "typedef" and result == f"struct {name}":
            self.handles.append(name)

    def _group(self, parameters):
        """Parameters in order, with those that form an array taken together."""
        while parameters:
            fitting = [a for a in self._arrays if parameters[: len(a.parameters)] == a.parameters]
            array = max(fitting, key=lambda a: len(a.parameters), default=None)
            yield array or parameters[0]
            parameters = parameters[len(array.parameters) if array else 1 :]

    def _check_twins(self):
        """A function is marked as blocking exactly when it has a twin."""
        names = {function.name for function in self.functions}
        for function in self.functions:
            if bool(function.blocking) != (f"{function.name}_async" in names):
                raise SystemExit(f"zero.i: {function.name}: marked as blocking without a twin, or has a twin and no mark")


def _attributes(node):
    found = node.find("attributelist")
    return {} if found is None else {a.get("name"): a.get("value") for a in found.findall("attribute")}


def _parameters(node):
    for parm in node.findall("./attributelist/parmlist/parm"):
        attributes = _attributes(parm)
        if attributes["type"] != "void":
            yield Parameter(attributes["name"], _c_type(attributes["type"]))


def _fields(node):
    for declaration in node.findall("cdecl"):
        attributes = _attributes(declaration)
        yield Parameter(attributes["name"], _c_type(attributes["type"]))


def _items(node):
    for item in node.findall("enumitem"):
        attributes = _attributes(item)
        yield attributes["name"], _number(attributes["enumvalue"])


def _split_declarator(declarator):
    """SWIG's "f(int64_t,p.q(const).void).p." as the parameters' types and what applies to the result."""
    depth = 0
    for place, character in enumerate(declarator):
        depth += {"(": 1, ")": -1}.get(character, 0)
        if character == ")" and depth == 0:
            return declarator[len("f("):place], declarator[place + len(")."):]
    raise SystemExit(f"not a function: {declarator}")


def _number(text):
    if not re.fullmatch(r"\(?-?\d+\)?", text):
        raise SystemExit(f"a constant that is no plain literal: {text}")
    return int(text.strip("()"))


def _c_type(swig):
    """SWIG's "p.q(const).zero_group" as C's "const zero_group *"."""
    parts = re.findall(r"p\.|q\(const\)\.|[^.]+$", swig)
    if "".join(parts) != swig:
        raise SystemExit(f"a type that the generator does not know: {swig}")
    constant = "const " if "q(const)." in parts else ""
    return constant + parts[-1].replace("struct ", "") + (" " + "*" * parts.count("p.") if "p." in parts else "")
