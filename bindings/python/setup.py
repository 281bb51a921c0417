"""Builds the extension module against the libzero that pkg-config finds, which it remembers as the place to load it from."""

import shlex
import subprocess

from setuptools import Extension, setup


def pkg_config(option):
    found = subprocess.run(["pkg-config", option, "zero"], check=True, stdout=subprocess.PIPE, encoding="utf-8")
    return shlex.split(found.stdout)


setup(
    ext_modules=[
        Extension(
            "libzero._zero",
            ["libzero/zero_wrap.c"],
            extra_compile_args=pkg_config("--cflags"),
            extra_link_args=pkg_config("--libs") + [f"-Wl,-rpath,{folder}" for folder in pkg_config("--variable=libdir")],
        )
    ]
)
