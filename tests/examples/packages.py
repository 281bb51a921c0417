"""Packages of PyPI in a virtual environment of the build, for tests that compare with other tools."""
import os
import subprocess
import sys


def enter(venv, packages, imports):
    """Runs the program again with the environment's Python, after it has installed what is missing. Exit 77: it cannot be installed here."""
    python = os.path.join(venv, "bin", "python")
    probe = "import " + ", ".join(imports)
    if not os.path.exists(python) or subprocess.run([python, "-c", probe], capture_output=True).returncode != 0:
        made = subprocess.run([sys.executable, "-m", "venv", venv], capture_output=True, text=True)
        if made.returncode == 0:
            made = subprocess.run([python, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--only-binary", ":all:", *packages],
                                  capture_output=True, text=True)
        if made.returncode != 0:
            print(f"skipped: {', '.join(packages)} cannot be installed: {made.stderr.strip()[-300:]}")
            sys.exit(77)
    if os.path.realpath(sys.prefix) != os.path.realpath(venv):
        os.execv(python, [python, "-B", *sys.argv])
