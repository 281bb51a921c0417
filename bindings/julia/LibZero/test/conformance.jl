# Prints one line for each scenario of bindings/conformance/README.md. All languages must print the same.
#   julia --project=<LibZero> conformance.jl

using LibZero

include("conformance/text.jl")
include("conformance/ranks.jl")
include("conformance/library.jl")
include("conformance/groups.jl")
include("conformance/buffers.jl")
include("conformance/servers.jl")
include("conformance/model.jl")
include("conformance/optimizers.jl")
include("conformance/saves.jl")
include("conformance/misuse.jl")
include("conformance/tables.jl")

library_scenarios()
group_scenarios()
buffer_scenarios()
server_scenarios()
optimizer_scenarios()
save_scenarios()
misuse_scenarios()
print_tables()
