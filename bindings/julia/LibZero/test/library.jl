"What a new Julia prints that loads LibZero with these variables and then runs some code."
function in_new_process(code, variables...; before = "")
    script = """
        $before
        try
            @eval using LibZero
        catch error
            showerror(stdout, error)
        end
        $code
        """
    return withenv(() -> read(`$(Base.julia_cmd()) --startup-file=no --project=$(Base.active_project()) -e $script`, String), variables...)
end

"A library that is libzero but for the ABI that it says it has. Needs a C compiler."
function library_of_abi(folder, major, minor)
    path = joinpath(folder, "libzero_$(major)_$minor.so")
    source = joinpath(folder, "abi.c")
    write(source, "long long zero_abi_version(void) { return $(65536major + minor); }\n")
    real = first(filter(path -> occursin("libzero.so", path), LibZero.Libdl.dllist()))
    run(`$(get(ENV, "CC", "cc")) -shared -fPIC -o $path $source -Wl,--no-as-needed $real`)
    return path
end

@testset "the library that is loaded" begin
    version = "print(LibZero.version())"
    major, minor = LibZero.abi_version()
    @test LibZero.version() isa VersionNumber
    @test LibZero.has_feature(:local) && !LibZero.has_feature(99)
    @test (major, minor) >= (LibZero.ZERO_ABI_MAJOR, LibZero.ZERO_ABI_MINOR)

    @testset "is missing: an error that says what to do, then errors" begin
        again = "using LibZero; try LibZero.version() catch error; showerror(stdout, error) end"
        said = in_new_process(again, "ZERO_LIBRARY" => "/nowhere/libzero.so")
        @test occursin("libzero cannot be loaded", said) && occursin("/nowhere/libzero.so", said) && occursin("ZERO_LIBRARY", said)
        @test occursin("no libzero is loaded", said)
    end

    mktempdir() do folder
        @testset "is found by the variable, whatever pkg-config says" begin
            path = library_of_abi(folder, LibZero.ZERO_ABI_MAJOR, LibZero.ZERO_ABI_MINOR + 1)
            @test in_new_process(version, "ZERO_LIBRARY" => path, "PKG_CONFIG_PATH" => "/nowhere") == string(LibZero.version())
        end

        @testset "is found by a preference, unless the variable names another" begin
            path = library_of_abi(folder, LibZero.ZERO_ABI_MAJOR, LibZero.ZERO_ABI_MINOR + 2)
            uuid = Base.PkgId(LibZero).uuid
            if isdefined(Base, :get_preferences)
                write(joinpath(folder, "Project.toml"), "[extras]\nLibZero = \"$uuid\"\n")
                write(joinpath(folder, "LocalPreferences.toml"), "[LibZero]\nlibrary = \"$path\"\n")
                before = "push!(LOAD_PATH, $(repr(folder)))"
            else # what Julia does from 1.6 on
                before = "@eval Base get_preferences(uuid) = string(uuid) == \"$uuid\" ? Dict(\"library\" => $(repr(path))) : Dict()"
            end
            loaded = "print(filter(path -> occursin(\"libzero\", path), LibZero.Libdl.dllist()))"
            said = in_new_process(loaded, "ZERO_LIBRARY" => nothing; before = before)
            @test occursin(path, said)
            said = in_new_process("", "ZERO_LIBRARY" => "/nowhere/libzero.so"; before = before)
            @test occursin("/nowhere/libzero.so", said) && !occursin(path, said)
        end

        @testset "has another ABI" begin
            major, minor = LibZero.ZERO_ABI_MAJOR, LibZero.ZERO_ABI_MINOR
            for (other_major, other_minor) in ((major + 1, minor), (major, minor - 1))
                said = in_new_process("", "ZERO_LIBRARY" => library_of_abi(folder, other_major, other_minor))
                @test occursin("has ABI $other_major.$other_minor", said) && occursin("needs ABI $major.$minor", said)
            end
        end
    end

    @testset "is no libzero at all" begin
        @test occursin("is no libzero", in_new_process("", "ZERO_LIBRARY" => "libm.so.6"))
    end
end
