"""The source tree as the laws see it: which files there are, their text with and without comments, and where functions begin and end."""
import os
import re
import subprocess

C_SUFFIXES = (".c", ".h", ".cpp", ".hpp", ".cu", ".cuh")
TEXT_SUFFIXES = C_SUFFIXES + (".py", ".sh", ".cmake", ".txt", ".md", ".json", ".map", ".in", ".i", ".go", ".rs", ".jl")
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"]', re.M)
COMMENT_OR_LITERAL = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"([^(\s]{0,16})\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])\'(?:\\.|[^\'\\\n])+\'', re.S)


def blank(match):
    """Comments and literals give way to blanks, so that lines and braces outside them stay where they are."""
    return re.sub(r"[^\n]", " ", match.group(0))


class Tree:
    """All files of the project: those in git, or, without git, those outside build folders."""

    def __init__(self, root):
        self.root = root
        self.files = sorted(self._from_git() or self._from_disk())
        self._texts = {}
        self._names = set(self.files)

    def _from_git(self):
        if not os.path.exists(os.path.join(self.root, ".git")):
            return []
        command = ["git", "-c", "safe.directory=*", "ls-files", "-z"]
        try:
            listed = subprocess.run(command, cwd=self.root, capture_output=True, check=True).stdout.decode()
        except (OSError, subprocess.CalledProcessError):
            return []
        return [name for name in listed.split("\0") if name and os.path.isfile(os.path.join(self.root, name))]

    def _from_disk(self):
        for folder, folders, names in os.walk(self.root):
            folders[:] = [name for name in folders if name not in (".git", "build", "__pycache__")]
            for name in names:
                yield os.path.relpath(os.path.join(folder, name), self.root)

    def has(self, path):
        return path in self._names

    def text(self, path):
        if path not in self._texts:
            with open(os.path.join(self.root, path), encoding="utf-8", errors="replace") as file:
                self._texts[path] = file.read()
        return self._texts[path]

    def code(self, path):
        """The text without comments and literals, line for line."""
        return COMMENT_OR_LITERAL.sub(blank, self.text(path))

    def includes(self, path):
        """Pairs (bracket, name) of every #include."""
        text = re.sub(r"//[^\n]*|/\*.*?\*/", blank, self.text(path), flags=re.S)
        return [(match.group(1), match.group(2)) for match in INCLUDE.finditer(text)]

    def under(self, *folders, suffixes=C_SUFFIXES):
        return [path for path in self.files if path.endswith(suffixes) and path.startswith(tuple(folder + "/" for folder in folders))]


TRANSPARENT = re.compile(r"\b(namespace|class|struct|union|enum|extern)\b[^;(){}=]*$|\bextern\s*$")
FUNCTION = re.compile(r"\)[^;{}]*$|\boperator\b[^;{}]*$")


def functions(code):
    """Yields (name, first line, lines) of every function body that is not inside another one. `code` has no comments or literals."""
    code = re.sub(r"^[ \t]*#(?:[^\n\\]|\\.|\\\n)*", blank, code, flags=re.M)
    stack = []  # for each open brace: None, or (name, line) when it begins a function
    inside = 0
    head_begin = 0
    for match in re.finditer(r"[{};]", code):
        at, mark = match.start(), match.group(0)
        if mark == "{":
            head = code[head_begin:at].strip()
            begins = inside == 0 and FUNCTION.search(head) is not None and TRANSPARENT.search(head) is None
            name = re.search(r"([~\w:]+)\s*\(", head)
            line = code.count("\n", 0, at - len(code[head_begin:at].lstrip())) + 1
            stack.append((name.group(1) if name else "?", line) if begins else None)
            inside += begins
        elif mark == "}" and stack:
            opened = stack.pop()
            if opened is not None:
                inside -= 1
                yield opened[0], opened[1], code.count("\n", 0, at) + 1 - opened[1] + 1
        head_begin = match.end()
