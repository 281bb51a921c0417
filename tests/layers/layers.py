"""The laws of libzero's layout, each as a function that lists what breaks it. usage: layers.py ROOT"""
import ast
import re
import sys

from graph import includes_between, levels
from source import TEXT_SUFFIXES, Tree, blank, functions

# What each folder may include besides itself and the public headers: downwards only, never a sibling.
BELOW = {
    "core": set(),
    "memory": {"core"},
    "group": {"core"},
    "checkpoint": {"core"},
    "kernels": {"core"},
    "engine": {"core", "memory", "group", "checkpoint", "kernels"},
    "api": {"core", "memory", "group", "checkpoint", "kernels", "engine"},
}
# The rooms of lib/engine, bottom up: each may include from those before it.
ROOMS = ("config", "compute", "ranks", "stats", "layout", "storage", "buffer", "parameters", "gradients", "update", "replicas", "integrity", "optimizer", "checkpoint", "server")
SIBLINGS = {"memory", "group", "checkpoint", "kernels"}
TRANSPORTS = {"local", "mpi", "nccl", "tcp"}
TOP_FOLDERS = {".ci", ".github", "abi", "bindings", "cmake", "examples", "include", "kernels", "lib", "tests", "tools"}
TOP_FILES = {".clang-format", ".clang-tidy", ".editorconfig", ".gitattributes", ".gitignore", "CMakeLists.txt", "CMakePresets.json", "LICENSE", "README.md"}
VENDOR_HEADERS = re.compile(
    r"^(mpi|mpi-ext|nccl\w*|cuda\w*|cu(blas|dnn|rand|fft|solver|sparse)\w*|nvml|nvrtc|device_launch_parameters)\.h$|^(cuda|cub|thrust)/")
# The files that wrap them.
VENDOR_WRAPPERS = ("lib/group/module/zero_mpi_module.c", "lib/group/module/zero_nccl_module.c", "lib/memory/module/zero_cuda_module.c",
                   "kernels/cuda/launch.h", "examples/fashion/device.h")
# What the headers that lib's layers precompile (cmake/ZeroBuild.cmake) are for: with them, a file compiles that lacks an include.
NAMES_OF = {
    "algorithm": r"min|max|(?:min|max)_element|clamp|(?:stable_)?sort|copy(?:_n)?|fill(?:_n)?|find(?:_if)?|(?:any|all|none)_of|count(?:_if)?|"
                 r"transform|(?:lower|upper)_bound|reverse|rotate|unique|equal|remove_if|swap_ranges",
    "array": "array",
    "atomic": r"atomic\w*|memory_order\w*",
    "coroutine": r"coroutine_handle|suspend_\w+",
    "cstdio": "v?snprintf|sscanf|FILE|fopen|fclose",
    "cstring": r"mem(?:cpy|set|cmp|move|chr)|str(?:len|n?cmp|error|r?chr|str)",
    "functional": "function|less|greater|reference_wrapper|c?ref",
    "map": "(?:multi)?map",
    "memory": r"(?:shared|unique|weak)_ptr|make_(?:shared|unique)|enable_shared_from_this",
    "mutex": "(?:recursive_|timed_)?mutex|lock_guard|scoped_lock|unique_lock|call_once|once_flag",
    "optional": "optional|nullopt",
    "span": "span",
    "string": "string|to_string",
    "thread": "thread|this_thread",
    "utility": "move|pair|exchange|forward|swap",
    "vector": "vector",
}
# The system's calls whose result is a descriptor, or a stream with one, and those that open some on their way.
OPENING_CALLS = ("open|openat2?|creat|fopen|freopen|fdopen|tmpfile|mkstemp|opendir|popen|memfd_create|shm_open|mq_open|socket|socketpair|"
                 "accept4?|epoll_create1?|eventfd2?|timerfd_create|signalfd4?|inotify_init1?|pipe2?|dup[23]?|pidfd_open|pidfd_getfd|"
                 "userfaultfd|io_uring_setup|perf_event_open|memfd_secret|open_by_handle_at")
CALLS_THAT_OPEN_INSIDE = "recvmsg|recvmmsg|dlopen|getaddrinfo|getnameinfo|getifaddrs|hardware_concurrency"
MAX_FILE_LINES = 450
MAX_FUNCTION_LINES = 100
P90_FUNCTION_LINES = 50
GENERATED = ("abi/libzero.abi.xml", "bindings/conformance/c/generated.h", "bindings/go/internal/czero/czero_wrap.c",
             "bindings/go/internal/czero/generated.go", "bindings/go/internal/czero/zero.go", "bindings/julia/LibZero/src/generated.jl",
             "bindings/python/libzero/generated.py", "bindings/python/libzero/zero.py", "bindings/python/libzero/zero_wrap.c",
             "bindings/rust/libzero-sys/src/generated.rs")


def layer_of(path):
    """The layer a file of lib/ or kernels/ belongs to, or None."""
    parts = path.split("/")
    if parts[0] == "kernels":
        return "kernels"
    return parts[1] if parts[0] == "lib" and len(parts) > 2 else None


def included_layers(tree, path):
    for bracket, name in tree.includes(path):
        first = name.split("/")[0]
        if bracket == '"' and first in BELOW:
            yield first, name


def includes_point_down(tree):
    for path in tree.under("lib", "kernels"):
        layer = layer_of(path)
        if layer not in BELOW:
            yield f"{path}: lies in no layer; layers are {', '.join(sorted(BELOW))}"
            continue
        for first, name in included_layers(tree, path):
            if first != layer and first not in BELOW[layer] and not {first, layer} <= SIBLINGS:
                yield f"{path}: {layer} includes {name}, which is above it"
        for bracket, name in tree.includes(path):
            if ".." in name.split("/"):
                yield f"{path}: includes {name}; name headers from their root"


def siblings_do_not_meet(tree):
    for path in tree.under("lib", "kernels"):
        layer = layer_of(path)
        for first, name in included_layers(tree, path):
            if first != layer and {first, layer} <= SIBLINGS:
                yield f"{path}: {layer} includes {name} of its sibling {first}"


def rooms_are_in_order(tree):
    for path in tree.under("lib/engine"):
        parts = path.split("/")
        own = parts[2] if len(parts) == 4 else None
        if own not in ROOMS:
            yield f"{path}: lies in no room of the engine; rooms are {', '.join(ROOMS)}"
            continue
        for bracket, name in tree.includes(path):
            room = name.split("/")[1] if bracket == '"' and name.startswith("engine/") else own
            if room not in ROOMS or ROOMS.index(room) > ROOMS.index(own):
                yield f"{path}: {own} includes {name}, which is above it"


def folders_form_no_circle(tree):
    folders, arrows = includes_between(tree)
    for folder, below in arrows.items():  # circles between layers break other laws
        arrows[folder] = {other: count for other, count in below.items() if other.split("/")[0] == folder.split("/")[0]}
    for folder in levels(folders, arrows)[1]:
        yield f"lib/{folder}: includes from a folder that includes from it; graph.py shows the way"


def headers_have_names_of_their_own(tree):
    first = {}
    for path in sorted(tree.under("lib", "kernels")):
        name = path.split("/")[-1]
        if name.endswith(".h") and first.setdefault(name, path) != path:
            yield f"{path}: {first[name]} has the same file name"


def transports_do_not_meet(tree):
    for path in tree.under("lib/group"):
        own = path.split("/")[2]
        for bracket, name in tree.includes(path):
            parts = name.split("/")
            other = parts[1] if bracket == '"' and parts[0] == "group" and len(parts) > 2 else None
            if own in TRANSPORTS and other in TRANSPORTS - {own}:
                yield f"{path}: {own} includes {name} of another transport"


def users_see_public_headers_only(tree):
    for path in tree.under("include"):
        for _, name in tree.includes(path):
            if name != "stdint.h" and not name.startswith("zero/"):
                yield f"{path}: a public header includes {name}; only stdint.h and zero/ are allowed"
    for path in tree.under("examples", "tools"):
        for first, name in included_layers(tree, path):
            yield f"{path}: a program for users includes {name} from inside the library"


def vendor_headers_are_wrapped(tree):
    for path in tree.under("lib", "kernels", "include", "examples", "tools"):
        for _, name in tree.includes(path):
            if VENDOR_HEADERS.search(name) and not path.startswith(VENDOR_WRAPPERS):
                yield f"{path}: includes {name}; only the file that wraps it may"


def headers_within_reach(tree, path, known):
    """The headers outside the project that a file includes, itself or through headers of the project."""
    if path not in known:
        known[path] = set()
        for _, name in tree.includes(path):
            inside = next((root + name for root in ("", "lib/", "include/") if tree.has(root + name)), None)
            known[path] |= headers_within_reach(tree, inside, known) if inside else {name}
    return known[path]


def files_include_what_they_use(tree):
    known = {}
    for path in tree.under("lib", suffixes=(".h", ".cpp")):
        code = tree.code(path)
        for header, names in NAMES_OF.items():
            used = re.search(rf"\bstd::(?:{names})\b", code)
            if used and header not in headers_within_reach(tree, path, known):
                yield f"{path}: uses {used.group(0)} without <{header}>"


def exported_names(tree):
    for path in tree.under("include"):
        yield from re.findall(r"\bZERO_API\b[^;(]*?\b(zero_\w+)\s*\(", tree.code(path))


def exports_are_defined_in_api(tree):
    names = set(exported_names(tree))
    definition = re.compile(r"^[ \t]*(?:extern\s+)?[\w:*&\s]*?\b(zero_\w+)\s*\([^;{}]*\)\s*(?:noexcept\s*)?\{", re.M)
    for path in tree.under("lib", "kernels"):
        code = tree.code(path)
        for name in definition.findall(code):
            if name in names and not path.startswith("lib/api/"):
                yield f"{path}: defines {name}; exported functions are defined in lib/api"
        if re.search(r"\bZERO_API\b|\bvisibility\b", code) and not path.startswith(("lib/api/", "lib/group/module/", "lib/memory/module/")):
            yield f"{path}: marks something as exported; only public headers and modules do"


def library_is_quiet(tree):
    forbidden = re.compile(r"(?:\bstd::|(?<![\w:])::)(?:abort|exit|_exit|quick_exit|atexit|signal|terminate)\s*\(|"
                           r"(?<![\w.>])(?:printf|fprintf|puts|fputs|putchar|perror)\s*\(|\bstd::c(?:out|err|log)\b")
    for path in tree.under("lib", "kernels"):
        for match in forbidden.finditer(tree.code(path)):
            yield f"{path}: uses {match.group(0).rstrip('( ')}; the library never ends the process, prints or handles signals"


def descriptors_are_above_two(tree):
    through_door = re.compile(r"\bopen_fd\(\[[^\]]*\]\s*\{\s*return\s+(?:static_cast<int>\()?::(?:syscall\(SYS_\w+|\w+\()")
    opens = re.compile(rf"(?<![\w.>:])(?:::|std::)?(?:{OPENING_CALLS})\s*\(|\bF_DUPFD\w*|\bSYS_(?:{OPENING_CALLS})\b|\bstd::[io]?fstream\b")
    opens_inside = re.compile(rf"(?<![\w.>])(?:::|std::thread::)(?:{CALLS_THAT_OPEN_INSIDE})\s*\(")
    for path in tree.under("lib", "kernels"):
        if path.startswith("lib/core/owned_fd."):
            continue
        code = through_door.sub(lambda match: blank(match), tree.code(path))
        for match in opens.finditer(code):
            # A method of that name is none of the system's calls.
            if "::" in match.group(0) or path.endswith(".c") or not re.match(r"\w+\s*\(", match.group(0)):
                yield f"{path}: uses {match.group(0).rstrip('( ')}; every descriptor comes from open_fd() or duplicate()"
        for match in opens_inside.finditer(code):
            if "StandardFdsHeld " not in function_around(code, match.start()):
                yield f"{path}: calls {match.group(0).rstrip('( ')}, which opens descriptors, without StandardFdsHeld"


def function_around(code, at):
    """From the beginning of the function, or lambda, that holds this place, up to it."""
    line = code.count("\n", 0, at) + 1
    lines = code.split("\n")
    for _, first, count in functions(code):
        if first <= line < first + count:
            return "\n".join(lines[first - 1:line])
    return ""


def numbers_have_points(tree):
    for path in tree.under("lib", "kernels"):
        for match in re.finditer(r"%[-+#0]*[\d.*]*[aefgAEFG]\b", tree.text(path)):
            yield f"{path}: formats with {match.group(0)}, which writes what the locale has for a point; number_text does not"


def folders_are_those_of_the_map(tree):
    for path in tree.files:
        first, _, rest = path.partition("/")
        if (rest and first not in TOP_FOLDERS) or (not rest and first not in TOP_FILES):
            yield f"{path}: '{first}' is not in the map of the folders"


def files_say_what_they_are(tree):
    for path in tree.under("lib", "kernels", "tests", "examples", "tools"):
        if not re.match(r"(#!.*\n)?(///|/\*\*?) ?@file ", tree.text(path)):
            yield f"{path}: does not begin with /// @file"


def sizes_stay_readable(tree):
    lengths = []
    for path in tree.files:
        if not path.endswith(TEXT_SUFFIXES) or path.startswith(GENERATED):
            continue
        count = tree.text(path).count("\n")
        # Public headers are the manual: each noun is one header, whatever there is to say of it.
        if count > MAX_FILE_LINES and not path.endswith((".md", ".txt")) and not path.startswith("include/zero/"):
            yield f"{path}: {count} lines; at most {MAX_FILE_LINES}"
        for name, line, lines in functions_of(tree, path):
            lengths.append(lines)
            if lines > MAX_FUNCTION_LINES:
                yield f"{path}:{line}: {name} has {lines} lines; at most {MAX_FUNCTION_LINES}"
    lengths.sort()
    if lengths and lengths[len(lengths) * 9 // 10] > P90_FUNCTION_LINES:
        yield f"nine in ten functions have at most {lengths[len(lengths) * 9 // 10]} lines; wanted: {P90_FUNCTION_LINES}"


def functions_of(tree, path):
    if path.endswith(".py"):
        for node in ast.walk(ast.parse(tree.text(path))):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                yield node.name, node.lineno, node.end_lineno - node.lineno + 1
    elif path.endswith((".c", ".h", ".cpp", ".hpp", ".cu", ".cuh")):
        yield from functions(tree.code(path))


def nothing_is_left_over(tree):
    unfinished = re.compile(r"\b(TO" + r"DO|FIX" + r"ME|X" + r"XX|HA" + r"CK)\b")
    machine = re.compile(r"(?<![\w.])/(?:home|root|work|Users)/\w")
    for path in tree.files:
        if not (path.endswith(TEXT_SUFFIXES) or path.startswith((".ci/", "tools/")) or path in GENERATED):
            continue
        for number, line in enumerate(tree.text(path).splitlines(), 1):
            if unfinished.search(line) and path not in GENERATED:
                yield f"{path}:{number}: {unfinished.search(line).group(1)}"
            if machine.search(line):
                yield f"{path}:{number}: names a path of one machine"


LAWS = [includes_point_down, siblings_do_not_meet, rooms_are_in_order, folders_form_no_circle,
        headers_have_names_of_their_own, transports_do_not_meet, users_see_public_headers_only, vendor_headers_are_wrapped,
        files_include_what_they_use, exports_are_defined_in_api, library_is_quiet, descriptors_are_above_two, numbers_have_points,
        folders_are_those_of_the_map, files_say_what_they_are, sizes_stay_readable, nothing_is_left_over]


def main(root):
    tree = Tree(root)
    broken = 0
    for law in LAWS:
        violations = list(law(tree))
        broken += len(violations)
        print(f"{'ok    ' if not violations else 'BROKEN'} {law.__name__.replace('_', ' ')}")
        for violation in violations:
            print(f"       {violation}")
    lengths = sorted(lines for path in tree.files for _, _, lines in functions_of(tree, path))
    p90 = lengths[len(lengths) * 9 // 10] if lengths else 0
    print(f"{len(LAWS)} laws over {len(tree.files)} files; {len(lengths)} functions, 90 % of at most {p90} lines; {broken} violations")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else "."))
