"""The recipe for Spack fits the project: it runs beside a stand-in for Spack's own module, and what it asks of CMake, and its version, are
those that CMakeLists.txt has. usage: recipes_test.py SOURCE"""
import pathlib
import re
import runpy
import sys
import types


class CMakePackage:
    def define_from_variant(self, name, variant):
        return name, variant

    def define(self, name, value):
        return name, value


def recipe(path):
    """The calls that the recipe makes as (what, first argument), and its class."""
    calls = []
    module = types.ModuleType("spack.package")
    module.CMakePackage = CMakePackage
    for name in ("version", "variant", "depends_on"):
        setattr(module, name, lambda *arguments, name=name, **options: calls.append((name, arguments[0])))
    sys.modules["spack"], sys.modules["spack.package"] = types.ModuleType("spack"), module
    return calls, runpy.run_path(str(path))["Libzero"]


def main(source):
    calls, package = recipe(source / "cmake/packaging/spack/package.py")
    lists = (source / "CMakeLists.txt").read_text()
    version = re.search(r"project\(libzero VERSION (\S+)", lists)[1]
    assert ("version", version) in calls, f"the recipe has no version {version}"
    assert f"libzero-{version}." in package.url, f"the recipe's url is not of version {version}"
    variants = [first for what, first in calls if what == "variant"]
    asked = package().cmake_args()
    for name, value in asked:
        assert re.search(rf"(?:option\(|set\(){name}\b", lists), f"CMakeLists.txt has no option {name}"
        assert not isinstance(value, str) or value in variants, f"the recipe has no variant {value}"
    for header, needed in {"hwy": "highway", "Random123": "random123", "nlohmann": "nlohmann-json", "xxhash": "xxhash"}.items():
        assert any(what == "depends_on" and first.split("@")[0] == needed for what, first in calls), f"{header} needs {needed}"
    print(f"{len(asked)} options, {len(variants)} variants, version {version}")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
