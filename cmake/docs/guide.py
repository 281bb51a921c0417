"""Doxygen's view of one README.md: headings get the names that links use elsewhere, links to other guides and to headers become references,
and links to files that are not rendered become their text. usage: guide.py FILE"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")


def page(path):
    """The name of a guide's page: that of the README.md at the top is the first page."""
    folder = path.parent.relative_to(ROOT)
    return "_".join(("guide", *folder.parts)) if folder.parts else "mainpage"


def slug(heading):
    """The anchor that a heading of a README.md has."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def section(path, anchor):
    return f"{page(path)}_{anchor}"


def link(path, match):
    image, text, target = match.groups()
    if image:
        return f"![{text}]({target.rpartition('/')[2]})"
    if "://" in target:
        return match.group()
    name, _, anchor = target.partition("#")
    file = (path.parent / name).resolve() if name else path
    if (file / "README.md").exists():
        file /= "README.md"
    if not file.exists():
        sys.exit(f"{path}: the link to {target} names no file")
    if file.name == "README.md" and file.parent != ROOT / ".github":
        return f"[{text}](@ref {section(file, anchor) if anchor else page(file)})"
    if file.suffix == ".h" and ROOT / "include" in file.parents:
        return f"[{text}](@ref {file.relative_to(ROOT / 'include')})"
    return text


def lines(path):
    in_code = False
    for line in path.read_text().splitlines():
        if line.lstrip().startswith("```"):
            in_code = not in_code
        elif not in_code and (heading := re.match(r"(#+) (.*)", line)):
            name = page(path) if heading[1] == "#" else section(path, slug(heading[2]))
            line = f"{line} {{#{name}}}"
        elif not in_code:
            line = LINK.sub(lambda match: link(path, match), line)
            line = re.sub(r"(?<!\w)::(?=\w)", "::%", line)  # else Doxygen looks for a global name of C++
        yield line


if __name__ == "__main__":
    print("\n".join(lines(pathlib.Path(sys.argv[1]).resolve())))
