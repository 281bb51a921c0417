# Ranks as processes of mpirun, in both kinds of groups that they have. Rank 0 says what came out.
const LAUNCHED = """
    using LibZero
    env_group() do all
        mpi_group(; deadline_ms = 60000) do world
            sums = [all_reduce!(group, [group_rank(group) + 1], :sum) for group in (all, world)]
            group_rank(all) == 0 && print(group_size(all), " ", sums)
        end
    end
    """

"Open MPI refuses root and more ranks than cores unless told that both are meant; the last name is that of release 5."
const LAUNCHER = (
    "OMPI_ALLOW_RUN_AS_ROOT" => "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM" => "1",
    "OMPI_MCA_rmaps_base_oversubscribe" => "1",
    "PRTE_MCA_rmaps_default_mapping_policy" => ":oversubscribe",
)

if Sys.which("mpirun") !== nothing && LibZero.has_feature(:mpi)
    @testset "ranks may be processes" begin
        julia = `$(Base.julia_cmd()) --startup-file=no --project=$(Base.active_project()) -e $LAUNCHED`
        @test withenv(() -> read(`mpirun -n 2 $julia`, String), LAUNCHER...) == "2 [[3], [3]]"
    end
else
    @info "left out: ranks as processes, because mpirun or libzero's module for it is not here"
end
