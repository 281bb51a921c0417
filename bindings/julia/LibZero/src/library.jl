# The C library: where it is, whether it fits, what it can do.

const SONAME = "libzero.so.$ZERO_ABI_MAJOR"

"""
Where the library may be: what the variable `ZERO_LIBRARY` or the package's preference `library` names, otherwise the folder that pkg-config
knows, then where the loader looks.
"""
function find_library()
    named = get(ENV, "ZERO_LIBRARY", "")
    isempty(named) && (named = preferred_library())
    isempty(named) || return [named]
    folder = pkg_config_folder()
    return isempty(folder) ? [SONAME] : [joinpath(folder, SONAME), SONAME]
end

"The entry of LocalPreferences.toml, which Julia reads from 1.6 on."
function preferred_library()
    isdefined(Base, :get_preferences) || return ""
    return get(Base.get_preferences(Base.PkgId(@__MODULE__).uuid), "library", "")
end

"It writes paths for a shell, with a backslash before a blank."
function pkg_config_folder()
    Sys.which("pkg-config") === nothing && return ""
    printed = read(pipeline(ignorestatus(`pkg-config --variable=libdir zero`); stderr = devnull), String)
    return replace(strip(printed), r"\\(.)" => s"\1")
end

"Loads the first of these libraries that is there."
function load(candidates...)
    problems = String[]
    for path in candidates
        library = open_library(path, problems)
        library === nothing && continue
        check_abi(library, path)
        for name in fieldnames(Functions)
            setfield!(libzero, name, Libdl.dlsym(library, name))
        end
        return nothing
    end
    error("LibZero: libzero cannot be loaded: ", join(problems, "; "),
          ". Install it where pkg-config or the loader finds it, or let the variable ZERO_LIBRARY name the file")
end

"The address of a function, once it is known: after a failed `using LibZero` a second one gives the module as it is."
@inline entry(address::Ptr{Cvoid}) = address == C_NULL ? not_loaded() : address

@noinline not_loaded() = error("LibZero: no libzero is loaded; the error of the first `using LibZero` says why")

function open_library(path, problems)
    try
        return Libdl.dlopen(path, Libdl.RTLD_LAZY | Libdl.RTLD_LOCAL)
    catch problem
        problem isa ErrorException || rethrow()
        push!(problems, problem.msg)
        return nothing
    end
end

function check_abi(library, path)
    abi_version = Libdl.dlsym(library, :zero_abi_version; throw_error = false)
    abi_version === nothing && error("LibZero: $path is no libzero: it has no function zero_abi_version")
    major, minor = fldmod(ccall(abi_version, Int64, ()), 65536)
    major == ZERO_ABI_MAJOR && minor >= ZERO_ABI_MINOR && return nothing
    needed = "ABI $ZERO_ABI_MAJOR.$ZERO_ABI_MINOR: the same major, and at least this minor"
    error("LibZero: $path has ABI $major.$minor, but this package needs $needed")
end

"""
    LibZero.version()

The release of the library that was loaded.
"""
version() = VersionNumber(zero_version())

"""
    LibZero.abi_version()

Major and minor of the ABI of the library that was loaded.
"""
abi_version() = fldmod(zero_abi_version(), 65536)

"""
    LibZero.has_feature(feature)

Whether the library that was loaded can do it on this machine: `:local` (groups of one host), `:mpi` (libzero_mpi.so and the MPI library it
needs can be loaded), `:cuda` (libzero_cuda.so can be loaded and CUDA offers a device) or `:nccl` (libzero_nccl.so and an NCCL that it works
with can be loaded).
"""
has_feature(feature) = zero_has_feature(code(FEATURE, feature)) == 1
