#!/usr/bin/env python3
"""Checks the words of the project: its public headers, its READMEs, and the comments of its sources.

Headers, READMEs and the comments of lib/ and kernels/ must keep the rules: no sentence of more than 35 words, none that begins with
What, Who, Where, Whether or Of (questions may), no line of more than 100 columns, and a Doxygen comment for each public symbol.
Comments of the other folders are counted. Exit codes: 0 all of these keep the rules, 1 they do not.
"""
import argparse
import collections
import os
import re
import subprocess
import sys

MAX_WORDS = 35
MAX_COLUMNS = 100
HEADERS = "include/zero/"
STRICT_FOLDERS = ("lib", "kernels")  # comments must keep the rules
COUNTED_FOLDERS = ("tests", "bindings", "examples")
SLASH_SUFFIXES = (".c", ".h", ".cpp", ".hpp", ".cu", ".cuh", ".go", ".rs")
HASH_SUFFIXES = (".py", ".sh", ".jl", ".cmake", "CMakeLists.txt")
GENERATED = re.compile(r"(Written|generated) by (bindings/gen/generate\.py|SWIG)")

FRAGMENT = re.compile(r"^[\s\"'(*]*(what|who|where|whether|of)\b", re.I)
SENTENCE_END = re.compile(r"(?<=[.!?])[\"')\]*]*\s+")
ABBREVIATION = re.compile(r"\b(e\.g|i\.e|et al|vs|cf|etc|approx|no)\.", re.I)
LITERAL = r"\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])+'"
SLASH_COMMENT = re.compile(rf"(?P<comment>/\*.*?\*/|//[^\n]*)|{LITERAL}", re.S)
CODE_BLOCK = re.compile(r"@code\b.*?@endcode|@verbatim\b.*?@endverbatim|@f\[.*?@f\]", re.S)
# A tag of Doxygen begins a text of its own; what stands before the text (a direction, a name) belongs to the tag.
TAG = re.compile(r"^\[(?:in|out|in, out)\]\s*|^@(?:param(?:\[[a-z, ]+\])?\s+[\w, ]+?(?:\s{2,}|\s-\s|\s(?=[A-Z`])|$)|retval\s+\S+\s*|file\b(?:\s+[\w.]+:)?\s*|[a-z]+\s*)")
ITEM = re.compile(r"^(?:[-*+]|\d+[.)])\s+")

# What stands in place of a Doxygen comment that belongs to the symbol after it, or to the one before it.
BEFORE, BEHIND = "\u2460", "\u2461"
DECLARATIONS = [re.compile(pattern, re.M) for pattern in (
    rf"(?:{BEFORE}\s*)?^ZERO_API\s[^;(]*?\b(?P<name>\w+)\s*\(",
    rf"(?:{BEFORE}\s*)?^#define[ \t]+(?P<name>ZERO_\w+)(?<!_H)\b(?!_)[^\n]*$",
    rf"(?:{BEFORE}\s*)?^typedef\s+struct\s+\w+\s+(?P<name>\w+);",
    rf"(?:{BEFORE}\s*)?^typedef\b[^;{{(]*\(\*(?P<name>\w+)\)\s*\([^;]*;",
    rf"(?:{BEFORE}\s*)?^(?:typedef\s+)?(?:struct|enum)\s+(?P<name>\w+)\s*\{{")]
MEMBER = re.compile(rf"(?:{BEFORE}\s*)?(?:\b[\w]+[\s*]+)*\b(?P<name>[A-Za-z_]\w*)\s*(?:=[^,;{BEFORE}{BEHIND}]*)?[,;]?[ \t]*(?:\n?[ \t]*{BEHIND})?")

Text = collections.namedtuple("Text", "line words")  # the line it begins at, and its sentences as one string


def sentences(text):
    """The sentences of a running text; code in backquotes counts as one word, a range such as 1 .. 4 ends none."""
    text = re.sub(r"`[^`]*`", "`code`", text)
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"\.\.+", "\u2026", text)
    text = ABBREVIATION.sub(lambda match: match.group(0).replace(".", "\u00b7"), text)
    return [sentence.strip() for sentence in SENTENCE_END.split(text.strip()) if sentence.strip()]


def word_count(sentence):
    return sum(1 for word in sentence.split() if re.search(r"\w", word))


def faults_of_text(text):
    for sentence in sentences(text.words):
        count = word_count(sentence)
        if count > MAX_WORDS:
            yield text.line, f"a sentence of {count} words: {sentence[:70]} ..."
        if FRAGMENT.match(sentence) and not sentence.rstrip("\"')*").endswith("?"):
            yield text.line, f"begins with a fragment: {sentence[:70]}"


def faults_of_width(lines, exempt=lambda number: False):
    for number, line in enumerate(lines, 1):
        if len(line) > MAX_COLUMNS and not exempt(number):
            yield number, f"{len(line)} columns, at most {MAX_COLUMNS}"


def texts_of_lines(first, lines):
    """Joins lines to texts: a blank line, an item of a list and a tag of Doxygen begin a new one."""
    begin, words = first, []
    for number, line in enumerate(lines, first):
        line = line.strip()
        starts = not line or line.startswith("@") or ITEM.match(line)
        if starts:
            if words:
                yield Text(begin, " ".join(words))
            begin, words = number, []
        line = ITEM.sub("", TAG.sub("", line))
        if line:
            begin = begin if words else number
            words.append(line)
    if words:
        yield Text(begin, " ".join(words))


def comment_lines(comment):
    """The lines of one comment of C, without its marks."""
    body = re.sub(r"^/\*+<?|\*+/$|^//[/!]?<?", "", comment)
    return [re.sub(r"^\s*(?:\*+|//[/!]?<?)(?=\s|$)", "", line) for line in body.split("\n")]


def without_code(comment):
    return CODE_BLOCK.sub(lambda match: "\n" * match.group(0).count("\n"), comment)


def slash_comments(text):
    """Pairs (first line, comment): each block, and each run of lines that hold nothing but a // comment."""
    run, run_line, last = [], 0, -1
    for match in SLASH_COMMENT.finditer(text):
        comment = match.group("comment")
        if comment is None:
            continue
        line = text.count("\n", 0, match.start()) + 1
        alone = not text[text.rfind("\n", 0, match.start()) + 1:match.start()].strip()
        if comment.startswith("//") and alone and run and line == last + 1:
            run.append(comment)
        else:
            if run:
                yield run_line, "\n".join(run)
            run, run_line = [comment], line
        last = line if comment.startswith("//") and alone else -1
    if run:
        yield run_line, "\n".join(run)


def hash_comments(text):
    """Pairs (first line, comment) of the runs of lines that begin with #."""
    run, begin = [], 0
    for number, line in enumerate(text.split("\n") + [""], 1):
        match = re.match(r"\s*#+(?!!)\s?(.*)", line)
        if match:
            begin = begin if run else number
            run.append(match.group(1))
        elif run:
            yield begin, "\n".join(run)
            run = []


def with_marks(text):
    """A header in which each Doxygen comment is one mark, before its symbol or behind it. Lines stay where they are."""
    def mark(match):
        comment = match.group("comment")
        if comment is None:
            return match.group(0)
        lines = "\n" * comment.count("\n")
        if re.match(r"/\*\*<|//[/!]<", comment):
            return BEHIND + lines
        return lines + BEFORE if re.match(r"/\*\*[^*/]|///", comment) else lines
    return SLASH_COMMENT.sub(mark, without_code(text))


def undocumented(text):
    """Pairs (line, name) of the public symbols of a header that have no Doxygen comment."""
    text = with_marks(text)
    line_of = lambda at: text.count("\n", 0, at) + 1
    found = {}  # (struct or enumeration, name) -> line, whether it is documented
    for pattern in DECLARATIONS:
        for match in pattern.finditer(text):
            line, documented = found.get((0, match.group("name")), (line_of(match.start("name")), False))
            found[0, match.group("name")] = (line, documented or BEFORE in match.group(0) or BEHIND in match.group(0))
    for body in re.finditer(r"\b(?:struct|enum)\s+\w+\s*\{(.*?)\}", text, re.S):
        for item in MEMBER.finditer(body.group(1)):
            documented = BEFORE in item.group(0) or BEHIND in item.group(0)
            found[body.start(), item.group("name")] = (line_of(body.start(1) + item.start("name")), documented)
    return [(line, name) for (_, name), (line, documented) in found.items() if not documented]


def check_header(text):
    for line, comment in slash_comments(text):
        for part in texts_of_lines(line, comment_lines(without_code(comment))):
            yield from faults_of_text(part)
    yield from faults_of_width(text.split("\n"))
    for line, name in undocumented(text):
        yield line, f"{name} has no Doxygen comment"


def readme_parts(text):
    """Cuts a README into its texts, and says which lines may be wide: code, tables and links."""
    texts, wide, fenced, run, begin = [], set(), False, [], 1
    def end_run():
        texts.extend(texts_of_lines(begin, run))
        run.clear()
    for number, line in enumerate(text.split("\n"), 1):
        if re.match(r"\s*(```|~~~)", line):
            fenced = not fenced
            end_run()
            wide.add(number)
        elif fenced:
            wide.add(number)
        elif re.match(r"\s*\|", line):
            end_run()
            wide.add(number)
            cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip().strip("|"))]
            texts.extend(Text(number, cell) for cell in cells if re.search(r"\w", cell))
        elif line.startswith("#"):
            end_run()
            texts.append(Text(number, line.strip("# ")))
        else:
            if re.search(r"\]\(|https?://", line):
                wide.add(number)
            begin = begin if run else number
            run.append(line)
    end_run()
    return texts, wide


def check_readme(text):
    texts, wide = readme_parts(text)
    for part in texts:
        yield from faults_of_text(part)
    yield from faults_of_width(text.split("\n"), lambda number: number in wide)


def check_comments(path, text):
    if GENERATED.search("\n".join(text.split("\n", 3)[:3])):
        return
    comments = slash_comments(text) if path.endswith(SLASH_SUFFIXES) else hash_comments(text)
    for line, comment in comments:
        for part in texts_of_lines(line, comment_lines(without_code(comment))):
            yield from faults_of_text(part)
        lines = text.split("\n")[line - 1:line + comment.count("\n")]
        for number, fault in faults_of_width(lines):
            yield line + number - 1, fault


def files_of(root):
    """The files that git holds or does not ignore; without git, those outside build folders."""
    command = ["git", "-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    if os.path.exists(os.path.join(root, ".git")):
        result = subprocess.run(command, cwd=root, capture_output=True, check=False)
        if result.returncode == 0:
            return sorted(name for name in result.stdout.decode().split("\0") if os.path.isfile(os.path.join(root, name)))
    found = []
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if name not in (".git", "build", "__pycache__")]
        found += [os.path.relpath(os.path.join(folder, name), root) for name in names]
    return sorted(found)


def check_tree(root):
    """Faults as (path, line, text): those that must not be, and those that are only counted."""
    inside = lambda path, folders: path.startswith(tuple(folder + "/" for folder in folders))
    binding, counted = [], []
    for path in files_of(root):
        is_header = path.startswith(HEADERS) and path.endswith(".h")
        is_readme = os.path.basename(path) == "README.md"
        is_source = inside(path, STRICT_FOLDERS + COUNTED_FOLDERS) and path.endswith(SLASH_SUFFIXES + HASH_SUFFIXES)
        if not (is_header or is_readme or is_source):
            continue
        with open(os.path.join(root, path), encoding="utf-8", errors="replace") as file:
            text = file.read()
        found = check_header(text) if is_header else check_readme(text) if is_readme else check_comments(path, text)
        is_counted = is_source and not inside(path, STRICT_FOLDERS)
        (counted if is_counted else binding).extend((path, line, fault) for line, fault in sorted(found))
    return binding, counted


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument("root", nargs="?", default=os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
    parser.add_argument("--all", action="store_true", help="print also each fault that is only counted")
    options = parser.parse_args(arguments)
    binding, counted = check_tree(options.root)
    for path, line, fault in binding + (counted if options.all else []):
        print(f"{path}:{line}: {fault}")
    folders = collections.Counter(path.split("/")[0] for path, _, _ in counted)
    print("comments: " + ", ".join(f"{folder} {folders[folder]}" for folder in COUNTED_FOLDERS))
    print(f"public headers, READMEs, {', '.join(STRICT_FOLDERS)}: {len(binding)} faults")
    return 1 if binding else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
