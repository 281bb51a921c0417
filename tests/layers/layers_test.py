"""Proof that every law catches what breaks it: a small tree that keeps all laws, and one planted violation after another."""
import os
import sys
import tempfile

import layers
from source import Tree, functions

FILE = "/// @file A file.\n"
CLEAN = {
    "CMakeLists.txt": "project(x)\n",
    "README.md": "x\n",
    "include/zero/group.h": "#include <stdint.h>\n#include <zero/status.h>\nZERO_API int32_t zero_group_rank(const void *g);\n",
    "lib/core/status.h": FILE + "#include <cstdint>\n",
    "lib/core/status.cpp": FILE + '#include "core/status.h"\n',
    "lib/group/group.cpp": FILE + '#include "core/status.h"\n#include "group/group.h"\n'
                                  "OwnedFd a() { return open_fd([] { return ::socket(1, 2, 3); }); }\n"
                                  "void *b() {\n  const StandardFdsHeld held;\n  return ::dlopen(c, 1);\n}\n",
    "lib/group/mpi/mpi_links.cpp": FILE + '#include "group/module/zero_mpi_module.h"\n#include "group/mpi/mpi_root.h"\n',
    "lib/group/module/zero_mpi_module.c": FILE + "#include <mpi.h>\n",
    "lib/group/module/zero_nccl_module.c": FILE + "#include <nccl.h>\n",
    "lib/memory/arena.cpp": FILE + '#include "core/status.h"\n',
    "lib/engine/optimizer/step.cpp": FILE + '#include "kernels/kernels.h"\n#include "group/group.h"\n',
    "lib/api/group.cpp": FILE + '#include "engine/optimizer/step.h"\nextern "C" int32_t zero_group_rank(const void *g) { return 0; }\n',
    "kernels/adam.cpp": FILE + '#include "core/status.h"\n// printf( in a comment, and {\nconst char *kText = "std::exit(";\n',
    "tests/core/status_test.cpp": FILE + '#include "core/status.h"\n',
    "examples/readme.c": FILE + "#include <zero/zero.h>\n",
    "tools/zero.c": FILE + "#include <zero/zero.h>\n",
}
LONG_FUNCTION = FILE + "void f() {\n" + "  g();\n" * 100 + "}\n"
MANY_MIDDLING = FILE + "".join(f"void f{i}() {{\n" + "  g();\n" * 60 + "}\n" for i in range(6))

# law, file, what is appended to it (or its text when it is new)
PLANTED = [
    ("includes_point_down", "lib/core/status.cpp", '#include "group/group.h"\n'),
    ("includes_point_down", "lib/core/status.cpp", '#include "kernels/kernels.h"\n'),
    ("includes_point_down", "lib/group/group.cpp", '#include "engine/optimizer/step.h"\n'),
    ("includes_point_down", "lib/engine/optimizer/step.cpp", '#include "api/handles.h"\n'),
    ("includes_point_down", "kernels/adam.cpp", '  #  include "engine/optimizer/step.h"\n'),
    ("includes_point_down", "lib/group/group.cpp", '#include "../core/status.h"\n'),
    ("includes_point_down", "lib/utils/string.cpp", FILE),
    ("siblings_do_not_meet", "lib/group/group.cpp", '#include "memory/arena.h"\n'),
    ("siblings_do_not_meet", "lib/group/group.cpp", '#include "kernels/kernels.h"\n'),
    ("siblings_do_not_meet", "lib/memory/arena.cpp", '#include "group/group.h"\n'),
    ("siblings_do_not_meet", "kernels/adam.cpp", '#include "memory/arena.h"\n'),
    ("rooms_are_in_order", "lib/engine/layout/plan.cpp", FILE + '#include "engine/optimizer/step.h"\n'),
    ("rooms_are_in_order", "lib/engine/step.cpp", FILE),
    ("folders_form_no_circle", "lib/group/module/zero_mpi_module.c", '#include "group/mpi/mpi_root.h"\n'),
    ("headers_have_names_of_their_own", "kernels/status.h", FILE),
    ("transports_do_not_meet", "lib/group/mpi/mpi_links.cpp", '#include "group/tcp/tcp_link.h"\n'),
    ("transports_do_not_meet", "lib/group/tcp/tcp_link.cpp", FILE + '#include "group/local/local_segment.h"\n'),
    ("users_see_public_headers_only", "include/zero/group.h", "#include <stddef.h>\n"),
    ("users_see_public_headers_only", "examples/readme.c", '#include "core/status.h"\n'),
    ("vendor_headers_are_wrapped", "lib/group/group.cpp", "#include <mpi.h>\n"),
    ("vendor_headers_are_wrapped", "lib/engine/optimizer/step.cpp", "#include <cuda_runtime.h>\n"),
    ("vendor_headers_are_wrapped", "lib/memory/arena.cpp", "#include <nccl.h>\n"),
    ("files_include_what_they_use", "lib/core/status.cpp", "std::vector<int> x;\n"),
    ("files_include_what_they_use", "lib/group/group.cpp", "auto x = std::move(y);\n"),
    ("exports_are_defined_in_api", "lib/engine/optimizer/step.cpp", "int32_t zero_group_rank(const void *g) {\n  return 0;\n}\n"),
    ("exports_are_defined_in_api", "lib/engine/optimizer/step.cpp", "ZERO_API int f();\n"),
    ("exports_are_defined_in_api", "kernels/adam.cpp", '__attribute__((visibility("default"))) void f();\n'),
    ("library_is_quiet", "lib/core/status.cpp", "void f() { std::exit(1); }\n"),
    ("library_is_quiet", "lib/core/status.cpp", "void f() { ::abort(); }\n"),
    ("library_is_quiet", "lib/core/status.cpp", 'void f() { std::fprintf(stderr, "x"); }\n'),
    ("library_is_quiet", "kernels/adam.cpp", 'void f() { printf("x"); }\n'),
    ("library_is_quiet", "lib/api/group.cpp", "void f() { std::cerr << 1; }\n"),
    ("descriptors_are_above_two", "lib/core/status.cpp", 'int f() { return ::open("x", 0); }\n'),
    ("descriptors_are_above_two", "lib/group/group.cpp", "void f() { std::ifstream file(name); }\n"),
    ("descriptors_are_above_two", "lib/group/group.cpp", "int f() { return ::fcntl(fd, F_DUPFD_CLOEXEC, 0); }\n"),
    ("descriptors_are_above_two", "lib/group/group.cpp", "long f() { return ::syscall(SYS_pidfd_open, 1, 0); }\n"),
    ("descriptors_are_above_two", "lib/group/module/zero_mpi_module.c", 'FILE *f(void) { return fopen("x", "r"); }\n'),
    ("descriptors_are_above_two", "lib/core/status.cpp", "long f() { const StandardFdsHeld held; }\nlong g() { return ::recvmsg(s, m, 0); }\n"),
    ("numbers_have_points", "lib/core/status.cpp", 'const char *text = "%.17g";\n'),
    ("folders_are_those_of_the_map", "utils/string.c", FILE),
    ("folders_are_those_of_the_map", "NOTES.md", "x\n"),
    ("files_say_what_they_are", "lib/core/other.cpp", "int x;\n"),
    ("sizes_stay_readable", "lib/core/long.cpp", FILE + "int x;\n" * 450),
    ("sizes_stay_readable", "lib/core/long_function.cpp", LONG_FUNCTION),
    ("sizes_stay_readable", "lib/core/middling.cpp", MANY_MIDDLING),
    ("sizes_stay_readable", "tests/long.py", "def f():\n" + "    g()\n" * 100),
    ("nothing_is_left_over", "lib/core/status.cpp", "// TO" + "DO\n"),
    ("nothing_is_left_over", "tools/test.sh", "# FIX" + "ME\n"),
    ("nothing_is_left_over", "abi/libzero.abi.xml", "path='/wo" + "rk/x'\n"),
    ("nothing_is_left_over", "README.md", "see /ho" + "me/somebody/x\n"),
]


def write(root, files):
    for path, text in files.items():
        os.makedirs(os.path.dirname(os.path.join(root, path)) or root, exist_ok=True)
        with open(os.path.join(root, path), "w", encoding="utf-8") as file:
            file.write(text)


def broken_laws(files):
    with tempfile.TemporaryDirectory() as root:
        write(root, files)
        tree = Tree(root)
        return {law.__name__ for law in layers.LAWS if list(law(tree))}


def check(condition, text):
    if not condition:
        print(f"FAILED {text}")
        sys.exit(1)


def check_function_measure():
    code = ("namespace a {\nstruct S {\n  int f() const {\n    if (x) { y(); }\n    return [&] { return 1; }();\n  }\n};\n"
            "S::S() : a_(1), b_{2} {\n}\nint x = 3;\nint y[] = {1, 2};\nenum E { kA };\nauto g() -> int {\n}\n}\n")
    found = [(name, line) for name, line, _ in functions(code) if name != "b_"]
    check(("f", 3) in found and ("g", 13) in found and len(found) <= 4, f"functions are measured: {found}")
    check([lines for name, _, lines in functions(code) if name == "f"] == [4], "the length of f is 4")


def main():
    check_function_measure()
    check(broken_laws(CLEAN) == set(), f"the clean tree keeps all laws, but broke {broken_laws(CLEAN)}")
    for law, path, text in PLANTED:
        broken = broken_laws({**CLEAN, path: CLEAN.get(path, "") + text})
        check(broken == {law}, f"{law}: planted {text[:60]!r} in {path}, but what was found is {broken or 'nothing'}")
    proven = {law for law, _, _ in PLANTED}
    check(proven == {law.__name__ for law in layers.LAWS}, "every law has a planted violation")
    print(f"{len(PLANTED)} planted violations of {len(proven)} laws caught, each by its own law")


main()
