# First values of parameters.

"""
    init_param!(optimizer, param, initialiser, a, b = 0; seed)

Fills a parameter between `seal!` and `begin!(optimizer, :shards)`: `:constant` (`a`), `:uniform` in [a, b) or `:normal` with mean `a` and
deviation `b`. No rank holds more of it than it updates, and the bits are the same at any number of ranks.
"""
init_param!(optimizer::Optimizer, param::Parameter, initialiser, a::Real, b::Real = 0; seed::Integer) =
    zero_optimizer_init_param(optimizer, id(optimizer, param), code(INITIALISER, initialiser), a, b, seed)

"""
    begin!(optimizer, source)

Takes first values over, and parameters that were edited later: `:local` (every rank wrote the same into acquired parameters), `:root` (rank
0 did) or `:shards` (written by `init_param!` or `write`). A collective.
"""
begin!(optimizer::Optimizer, source) = zero_optimizer_begin(optimizer, code(SOURCE, source))
