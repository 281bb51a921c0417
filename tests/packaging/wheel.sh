#!/usr/bin/env bash
# Builds the Python wheel, installs it into an empty environment, and trains 4 ranks there with the program of the package's README.
# usage: wheel.sh SOURCE SCRATCH      exit code 77 says why it cannot run here
set -euo pipefail
source=$1
scratch=$2

[ -n "${ZERO_TEST_FULL:-}" ] || {
  echo "it fetches and builds for minutes: only with ZERO_TEST_FULL=1 (tools/test.sh --full)"
  exit 77
}
rm -rf "$scratch"
trap 'rm -rf "$scratch"' EXIT
python3 -m venv "$scratch"
"$scratch/bin/pip" download --quiet --no-deps --dest "$scratch/reached" numpy 2>"$scratch/log" || {
  echo "no packages can be fetched: $(tail -n 1 "$scratch/log")"
  exit 77
}
"$source/tools/wheel.sh"
"$scratch/bin/pip" install --quiet "$source"/build/wheel/libzero_dp-*.whl
awk '/^```python$/ { inside = 1; next } /^```$/ { if (inside) exit } inside' "$source/bindings/python/README.md" >"$scratch/program.py"
[ "$(wc -l <"$scratch/program.py")" -ge 20 ] || { echo "the package's README shows no program"; exit 1; }
cd "$scratch"
env -u LD_LIBRARY_PATH -u PYTHONPATH bin/python program.py | tee told
grep -qxF '[2.0, 1.0] [2.0, 1.0] [2.0, 1.0] [2.0, 1.0]' told
bin/python -c '
import importlib.metadata, libzero
versions = importlib.metadata.version("libzero-dp"), libzero.__version__, libzero.version()
print(*versions)
assert len(set(versions)) == 1'