"""The documentation renders without a warning, and what breaks it is found: a copy of the tree is rendered as it is, then with planted
faults. usage: docs_test.py SOURCE DOCS_FOLDER      DOCS_FOLDER: where the build keeps its Doxyfile"""
import pathlib
import shutil
import subprocess
import sys
import tempfile

# (file, what is replaced, by what, a part of what is reported)
PLANTED = [
    ("include/zero/dtype.h", "/** Element types. Values are stable; gaps are reserved. */\n", "",
     "zero_dtype (enumeration) of file dtype.h is not documented"),
    ("include/zero/dtype.h", "/**< IEEE 754 binary64. */", "", "no description: enumvalue ZERO_DTYPE_F64"),
    ("include/zero/dtype.h", "@param[in]  dtype ", "@param[in]  type ", "argument 'type' of command @param is not found"),
    ("include/zero/dtype.h", "Bytes of one element.\n", "See zero_no_such() and @ref none.\n", "unable to resolve reference to 'none'"),
    ("include/zero/group.h", "/**< The sum. */", "/* The sum. */", "no description: enumvalue ZERO_REDUCE_SUM"),
    ("include/zero/zero.h", " /**< The release this header belongs to: major number. */", "",
     "ZERO_VERSION_MAJOR (macro definition) of file zero.h is not documented"),
    ("abi/symbols.txt", "zero_version", "zero_version_of_the_future ZERO_0.1 0.1\nzero_version",
     "not in the reference: zero_version_of_the_future"),
    ("abi/constants.txt", "ZERO_OK", "ZERO_NEW = 7\nZERO_OK", "not in the reference: ZERO_NEW"),
    ("README.md", "](tests/README.md)", "](tests/README.txt)", "the link to tests/README.txt names no file"),
    ("lib/README.md", "](../kernels/README.md#adding-an-elementwise-optimizer)", "](../kernels/README.md#nothing)",
     "guide_kernels_nothing"),
    ("tests/benchmarks/README.md", "](scaling.svg)", "](scale.svg)", "scale.svg"),
]


def check(root):
    return [sys.executable, "-B", root / "cmake/docs/check.py", root / "abi", root / "build"]


def render(root, doxyfile):
    """Renders a tree. Returns which of Doxygen and check.py were content, and what they told."""
    docs = root / "build"
    shutil.rmtree(docs, ignore_errors=True)
    docs.mkdir()
    (docs / "Doxyfile").write_text(doxyfile)
    runs = [subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            for command in (["doxygen", docs / "Doxyfile"], check(root))]
    return [run.returncode == 0 for run in runs], "".join(run.stdout for run in runs)


def missed(root, doxyfile):
    """Plants all faults, and lists those that are not reported."""
    for name, old, new, _ in PLANTED:
        text = (root / name).read_text()
        assert old in text, f"{name} has no '{old}' to replace"
        (root / name).write_text(text.replace(old, new, 1))
    content, told = render(root, doxyfile)
    print(told)
    faults = [f"not reported: {report} ({name})" for name, _, _, report in PLANTED if report not in told]
    return faults + [f"content with faults: {tool}" for tool, well in zip(("doxygen", "check.py"), content) if well]


def broken_link_is_found(root):
    (root / "build/html/group_8h.html").unlink()
    run = subprocess.run(check(root), capture_output=True, text=True)
    return run.returncode != 0 and "links to group_8h.html" in run.stderr


def main(source, docs):
    if not shutil.which("doxygen"):
        print("doxygen is not installed")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as scratch:
        root = pathlib.Path(scratch).resolve() / "tree"
        shutil.copytree(source, root, ignore=shutil.ignore_patterns("build", ".git"))
        doxyfile = (docs / "Doxyfile").read_text().replace(str(docs), str(root / "build")).replace(str(source), str(root))
        content, told = render(root, doxyfile)
        print(told, end="")
        if not all(content):
            sys.exit("the documentation does not render")
        if not broken_link_is_found(root):
            sys.exit("a link to a page that is not there is not reported")
        faults = missed(root, doxyfile)
    if faults:
        sys.exit("\n".join(faults))
    print(f"{len(PLANTED) + 1} planted faults were found")


if __name__ == "__main__":
    main(*(pathlib.Path(argument).resolve() for argument in sys.argv[1:]))
