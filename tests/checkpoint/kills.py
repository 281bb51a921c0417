"""Kills a program that saves at each of its system calls on files, and looks at what is left.

usage: kills.py PROGRAM SCRATCH; ZERO_TEST_FULL takes every call, otherwise a part. Exit 77: there is no strace that may trace.
"""
import collections
import os
import re
import shutil
import subprocess
import sys
import tempfile

CALLS = ["openat", "mkdirat", "pread64", "pwrite64", "fallocate", "ftruncate", "fsync", "close", "renameat", "unlinkat", "getdents64",
         "newfstatat", "fstatfs", "fcntl"]
SEAM = ["openat", "mkdirat", "pread64", "pwrite64", "fallocate", "ftruncate", "fsync", "renameat", "unlinkat"]
FULL = os.environ.get("ZERO_TEST_FULL", "0") not in ("", "0")
WANTED = 500 if FULL else 40


def run(*command):
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def acknowledged(output):
    return re.findall(r"^acknowledged (\S+)", output, re.M)


def saved(program, folder, step):
    done = run(program, "save", folder, str(step))
    if done.returncode != 0:
        sys.exit(f"FAILED a save that nobody disturbed: {done.stderr}")
    return acknowledged(done.stdout)


def template(program, scratch, name, steps, leftover):
    """A folder with saves, and with what a killed save has left."""
    folder = os.path.join(scratch, name)
    os.mkdir(folder)
    names = [one for step in steps for one in saved(program, folder, step)]
    if leftover:
        trace(program, folder, 90, "-e", "inject=renameat:signal=SIGKILL:when=1")
    return folder, names


def trace(program, folder, step, *options):
    log = folder + ".trace"
    done = run("strace", "-f", "-qq", "-o", log, *options, program, "save", folder, str(step))
    with open(log, encoding="utf-8", errors="replace") as file:
        text = file.read()
    os.unlink(log)
    return done, text


def count_calls(text):
    """For each call: how often before the save begins, and how often until it has ended."""
    before, total, begun = collections.Counter(), collections.Counter(), False
    for line in text.splitlines():
        if "the-save-ends" in line:
            break
        begun = begun or "the-save-begins" in line
        name = re.match(r"\d+\s+(\w+)\(", line)
        if name:
            total[name.group(1)] += 1
            if not begun:
                before[name.group(1)] += 1
    return before, total


def check_seam(done, before, total):
    """What the trace saw is what went through the seam."""
    counted = dict(re.findall(r"^(\w+)=(\d+)$", done.stdout, re.M))
    for call in SEAM:
        seen = total[call] - before[call]
        if seen != int(counted.get(call, 0)):
            sys.exit(f"FAILED {call}: the system saw {seen} calls, but {counted.get(call, 0)} went through the seam")
    others = {name for name in total if total[name] > before[name]} & {"open", "creat", "rename", "renameat2", "unlink", "rmdir", "mkdir", "write",
                                                                       "writev", "pwritev", "truncate", "fdatasync", "link", "linkat"}
    if others - {"write"}:  # write: the program's own output
        sys.exit(f"FAILED calls go round the seam: {sorted(others)}")


def kill_one(program, source, names, call, number, scratch):
    folder = tempfile.mkdtemp(dir=scratch)
    shutil.rmtree(folder)
    shutil.copytree(source, folder)
    done, _ = trace(program, folder, 95, "-e", f"inject={call}:signal=SIGKILL:when={number}")
    killed = done.returncode != 0
    must = (names + acknowledged(done.stdout))[-2:]
    looked = run(program, "check", folder, *must)
    if looked.returncode != 0:
        sys.exit(f"FAILED killed at {call} {number} of {os.path.basename(source)}: {looked.stderr}")
    shutil.rmtree(folder)
    return killed


def main():
    program, parent = sys.argv[1:]
    if not shutil.which("strace") or run("strace", "-qq", "-o", "/dev/null", "true").returncode != 0:
        print("skipped: there is no strace, or it may not trace here (Debian: strace)")
        sys.exit(77)
    kills = 0
    with tempfile.TemporaryDirectory(dir=parent) as scratch:
        cases = []
        for name, steps, leftover in (("first", [], False), ("second", [1], False), ("rotation", [1, 2], False), ("after_a_kill", [1, 2], True)):
            source, names = template(program, scratch, name, steps, leftover)
            probe = source + ".probe"
            shutil.copytree(source, probe)
            done, text = trace(program, probe, 95)
            before, total = count_calls(text)
            check_seam(done, before, total)
            cases += [(source, names, call, k) for call in CALLS for k in range(before[call] + 1, total[call] + 1)]
        step = 1 if FULL else max(1, len(cases) // (WANTED + 5))
        for source, names, call, number in cases[::step]:
            kills += kill_one(program, source, names, call, number, scratch)
    print(f"{kills} kills at {len(cases[::step])} of {len(cases)} calls, wanted {WANTED}: none lost, none torn, none stuck; "
          "every call on files went through the seam")
    if kills < WANTED:
        sys.exit("FAILED too few kills")


main()
