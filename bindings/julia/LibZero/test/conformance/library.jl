# Scenarios that need no group.

function library_scenarios()
    say("version", LibZero.version())
    say("abi", LibZero.zero_abi_version())
    say("status-names", [LibZero.zero_status_name(code) for code in (-300, 0, 1)])
    say("dtype-sizes", [LibZero.zero_dtype_nbytes(LibZero.dtype(T)) for T in (Float32, Float64, Float16, BFloat16, Int32, Int64, UInt8)])
    say("dtype-unknown", error_of(() -> LibZero.zero_dtype_nbytes(99)))
    say("feature-local", Int(LibZero.has_feature(:local)))
    say("launcher", launcher())
    config_scenarios()
end

function config_scenarios()
    stage, lr = LibZero.bounds(:stage), LibZero.bounds(:lr)
    say("bounds-stage", stage.type, stage.min_i64, stage.max_i64, stage.default_i64)
    say("bounds-lr", lr.type, bits(lr.min_f64), bits(lr.max_f64), bits(lr.default_f64))
    say("bounds-unknown", error_of(() -> LibZero.bounds(99999)))
    say("config-unknown-key", error_of(() -> Config(99999 => 1)))
    say("config-wrong-type", error_of(() -> Config(stage = 1.0)))
    say("config-out-of-bounds", error_of(() -> Config(stage = 4)))
    say("config-string", error_of(() -> Config(algorithm = "adamw")))
end
