"""Spack's recipe of libzero: a copy belongs into packages/libzero of a Spack repository. homepage, url and git are placeholders: whoever
serves the source sets them, and the checksum of each version's archive."""
from spack.package import *


class Libzero(CMakePackage):
    """Process groups, sharded buffers and ZeRO optimizers behind a C ABI."""

    homepage = "https://example.org/libzero"
    url = "https://example.org/libzero/libzero-0.1.0.tar.gz"
    git = "https://example.org/libzero.git"

    version("main", branch="main")
    version("0.1.0", tag="v0.1.0")

    variant("mpi", default=True, description="Module for ranks of MPI")
    variant("cuda", default=False, description="Module for CUDA devices")
    variant("nccl", default=False, description="Module for NCCL", when="+cuda")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("cmake@3.25:", type="build")
    depends_on("highway@1.0:", type="build")
    depends_on("random123", type="build")
    depends_on("nlohmann-json@3.11:", type="build")
    depends_on("xxhash", type="build")
    depends_on("mpi", when="+mpi")
    depends_on("cuda@12.8:", when="+cuda")
    depends_on("nccl@2.28:", when="+nccl")

    def cmake_args(self):
        return [
            self.define_from_variant("ZERO_MPI", "mpi"),
            self.define_from_variant("ZERO_CUDA", "cuda"),
            self.define_from_variant("ZERO_NCCL", "nccl"),
            self.define("ZERO_UNITY", True),
            self.define("ZERO_TESTS", False),
            self.define("ZERO_EXAMPLES", False),
        ]
