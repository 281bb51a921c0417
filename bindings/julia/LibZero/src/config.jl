# Configs: keys and values that objects are made from.

"""
    Config(; options...)
    Config(pairs...)

Keys and values that groups, buffers, optimizers and parameters are made from. A key is the lower-case name of one of C's `ZERO_KEY_...`
(zero/config.h lists them with their types, bounds and defaults) or its number:

    config = Config(stage = 3, algorithm = "adamw", bucket_bytes = 1 << 20, divisor = :weights)
    config[:lr] = 0.01

Values of enums are given by name, dtypes by name or as types (`grad_dtype = Float32`), a tied parameter as itself (`tied_to = weight`). An
object copies what it needs, so the config may be changed or closed afterwards. Functions that take a config also take its pairs as
keyword arguments.
"""
mutable struct Config <: Object
    handle::Handle
    open::Bool
    values::Dict{Int32,Any} # what was set: libzero does not tell

    function Config(pairs::Pair...; options...)
        config = finalizer(close_later, new(zero_config_create(), true, Dict{Int32,Any}()))
        for (key, value) in Iterators.flatten((pairs, options))
            config[key] = value
        end
        return config
    end
end

give_back(config::Config) = zero_config_release(config)

function Base.setindex!(config::Config, value, key)
    number = code(KEY, key)
    set_value(config, number, value)
    config.values[number] = value
    return config
end

set_value(config, key, value::AbstractString) = zero_config_set_str(config, key, value)
set_value(config, key, value::AbstractFloat) = zero_config_set_f64(config, key, value)
set_value(config, key, value::Integer) =
    key in f64_keys ? zero_config_set_f64(config, key, value) : set_integer(config, key, value)
set_value(config, key, value::Type) = set_integer(config, key, dtype(value))
set_value(config, key, value::Symbol) = set_integer(config, key, code(values_of(key), value))
set_value(config, key, value) =
    throw(ArgumentError("key $(label(KEY, key)) is given a $(typeof(value)); values are numbers, strings, names of enum values, types or " *
                        "parameters"))

set_integer(config, key, value) = zero_config_set_i64(config, key, Int64(value))

"The number that a key was set to, or what stands for it."
function integer_in(config::Config, key::Int32, otherwise)
    value = get(config.values, key, otherwise)
    return Int64(value isa Symbol ? code(values_of(key), value) : value isa Type ? dtype(value) : value)
end

"The enum whose names a key takes."
function values_of(key::Int32)
    key == ZERO_KEY_DIVISOR && return DIVISOR
    key == ZERO_KEY_NONFINITE && return NONFINITE
    key == ZERO_KEY_ROUNDING && return ROUNDING
    key == ZERO_KEY_UNFILLED && return UNFILLED
    key == ZERO_KEY_CHECKPOINT_SNAPSHOT && return SNAPSHOT
    key == ZERO_KEY_MASTER && return MASTER
    key == ZERO_KEY_TIER && return TIER
    key == ZERO_KEY_SERVER_ORDER && return SERVER_ORDER
    key == ZERO_KEY_SERVER_RULE && return SERVER_RULE
    key in (ZERO_KEY_GRAD_DTYPE, ZERO_KEY_PARAM_DTYPE, ZERO_KEY_ACCUMULATE_DTYPE, ZERO_KEY_FIRST_MOMENT_DTYPE,
            ZERO_KEY_SECOND_MOMENT_DTYPE) && return DTYPE
    throw(ArgumentError("key $(label(KEY, key)) takes no name"))
end

"The keys whose values are floating point numbers, so that `lr = 1` may be written."
const f64_keys = Set{Int32}()

function fill_f64_keys()
    union!(f64_keys, Iterators.filter(key -> bounds(key).type == 2, last.(KEY.items)))
    return nothing
end

"""
    KeyBounds

What [`LibZero.bounds`](@ref) tells of a key: its `type` (1 integer, 2 floating point, 3 string), and the inclusive bounds and default of
that type: `min_i64`, `max_i64`, `default_i64`, or `min_f64`, `max_f64`, `default_f64`.
"""
KeyBounds

"""
    LibZero.bounds(key)

The type, bounds and default of a key, as [`KeyBounds`](@ref).
"""
bounds(key) = zero_config_bounds(code(KEY, key))
