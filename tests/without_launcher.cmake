# zero_without_launcher: a value of ENVIRONMENT_MODIFICATION with which a test begins in a world of
# one, also where a launcher started ctest: what lib/group/launcher.cpp reads is not the test's.
set(zero_without_launcher OMPI_COMM_WORLD_RANK OMPI_COMM_WORLD_SIZE PMI_RANK PMI_SIZE SLURM_STEP_ID SLURM_STEP_NUM_TASKS SLURM_PROCID
    PMIX_NAMESPACE PMIX_RANK PET_NNODES RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE)
list(TRANSFORM zero_without_launcher APPEND "=unset:")
