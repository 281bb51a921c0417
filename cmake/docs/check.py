"""Whether the rendered reference is whole: every function of abi/symbols.txt, every constant of abi/constants.txt, every type, field and
macro has a description, and every link of a page leads somewhere. usage: check.py ABI_FOLDER DOCS_FOLDER"""
import html
import pathlib
import re
import sys
import xml.etree.ElementTree as xml
from urllib.parse import unquote

TYPES = {"typedef", "enum", "struct"}
VALUES = {"enumvalue", "define", "variable"}


def described(element):
    return any("".join(element.find(part).itertext()).strip() for part in ("briefdescription", "detaileddescription"))


def members(folder):
    """(kind, name, whether it is described) of all that the reference knows."""
    for path in sorted(folder.glob("*.xml")):
        for compound in xml.parse(path).iter("compounddef"):
            if compound.get("kind") == "struct":
                yield "struct", compound.findtext("compoundname"), described(compound)
            for member in compound.iter("memberdef"):
                yield member.get("kind"), member.findtext("name"), described(member)
                for value in member.iter("enumvalue"):
                    yield "enumvalue", value.findtext("name"), described(value)


def first_words(path):
    return {line.split()[0] for line in path.read_text().splitlines() if line and not line.startswith("#")}


def broken_links(folder):
    pages = {path.name: path.read_text() for path in folder.glob("*.html")}
    names = {name: set(re.findall(r'\b(?:id|name)="([^"]*)"', text)) for name, text in pages.items()}
    for name, text in pages.items():
        for target in map(html.unescape, re.findall(r'\b(?:href|src|data)="([^"]*)"', text)):
            file, _, anchor = unquote(target).partition("#")
            if re.match(r"[a-z]+:", target):
                continue
            if file and not (folder / file).is_file():
                yield f"{name} links to {target}, which is no file"
            elif anchor and (file or name) in names and anchor not in names[file or name]:
                yield f"{name} links to {target}, which is no place of that page"


def main(abi, docs):
    known = list(members(docs / "xml"))
    faults = [f"no description: {kind} {name}" for kind, name, has_one in known if not has_one]
    functions = [name for kind, name, _ in known if kind == "function"]
    values = [name for kind, name, _ in known if kind in VALUES]
    faults += [f"not in the reference: {name}" for name in sorted(first_words(abi / "symbols.txt") - set(functions))]
    faults += [f"not in the reference: {name}" for name in sorted(first_words(abi / "constants.txt") - set(values))]
    faults += broken_links(docs / "html")
    if faults:
        sys.exit("docs: " + "\ndocs: ".join(faults))
    print(f"0 undocumented of {len(functions)} functions, {sum(kind in TYPES for kind, *_ in known)} types, "
          f"{len(values)} values; {len(list((docs / 'html').glob('*.html')))} pages without a broken link")


if __name__ == "__main__":
    main(*map(pathlib.Path, sys.argv[1:]))
