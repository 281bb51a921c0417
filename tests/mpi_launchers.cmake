# Tests that run as ranks of an MPI job, once for every MPI found: Open MPI and MPICH as Debian installs them side by side, otherwise
# the one MPI of the machine. Each has the module built for it, as a site would build it: alone, with its own mpicc.

include_guard(GLOBAL)
find_program(ZERO_MPICC_OPENMPI mpicc.openmpi)
find_program(ZERO_MPIRUN_OPENMPI mpirun.openmpi)
find_program(ZERO_MPICC_MPICH mpicc.mpich)
find_program(ZERO_MPIRUN_MPICH NAMES mpirun.mpich mpiexec.hydra)

#   zero_mpi_flavour(<name> <mpicc> <mpirun> <package>)
function(zero_mpi_flavour name mpicc mpirun package)
  if(NOT mpicc OR NOT mpirun)
    message(STATUS "tests over ${name} are left out: no mpicc or mpirun (Debian: ${package})")
    return()
  endif()
  set(folder ${PROJECT_BINARY_DIR}/mpi-${name})
  set(module ${PROJECT_SOURCE_DIR}/lib/group/module)
  add_custom_command(
    OUTPUT ${folder}/libzero_mpi.so
    COMMAND ${CMAKE_COMMAND} -S ${module} -B ${folder} -G ${CMAKE_GENERATOR} -DCMAKE_C_COMPILER=${mpicc}
            -DZERO_INCLUDE_DIR=${PROJECT_SOURCE_DIR}/include
    COMMAND ${CMAKE_COMMAND} --build ${folder}
    DEPENDS ${module}/zero_mpi_module.c ${module}/zero_mpi_module.h ${module}/CMakeLists.txt
    COMMENT "Building the MPI module alone for ${name}"
    VERBATIM)
  add_custom_target(zero_mpi_for_${name} ALL DEPENDS ${folder}/libzero_mpi.so)
  set_property(GLOBAL APPEND PROPERTY ZERO_MPI_FLAVOURS ${name})
  set_property(GLOBAL PROPERTY ZERO_MPI_${name}_MODULE ${folder}/libzero_mpi.so)
  set_property(GLOBAL PROPERTY ZERO_MPI_${name}_MPIRUN ${mpirun})
endfunction()

if(NOT ZERO_MPI STREQUAL "OFF")
  zero_mpi_flavour(openmpi "${ZERO_MPICC_OPENMPI}" "${ZERO_MPIRUN_OPENMPI}" "openmpi-bin libopenmpi-dev")
  zero_mpi_flavour(mpich "${ZERO_MPICC_MPICH}" "${ZERO_MPIRUN_MPICH}" "mpich libmpich-dev")
  get_property(flavours GLOBAL PROPERTY ZERO_MPI_FLAVOURS)
  if(NOT flavours)
    find_package(MPI COMPONENTS C)
    zero_mpi_flavour(default "${MPI_C_COMPILER}" "${MPIEXEC_EXECUTABLE}" "openmpi-bin libopenmpi-dev")
  endif()
endif()

# What mpirun needs where ranks outnumber cores or root runs the tests, and what the sanitizers must not report of MPI itself. Open MPI's
# plugins leak and are unloaded before leaks are counted, so they cannot be suppressed by name.
function(zero_mpi_environment name flavour)
  get_property(module GLOBAL PROPERTY ZERO_MPI_${flavour}_MODULE)
  set(suppressions ${PROJECT_SOURCE_DIR}/tests/group/mpi.supp)
  set_tests_properties(
    ${name} PROPERTIES
    SKIP_RETURN_CODE 77
    ENVIRONMENT "ZERO_MPI_MODULE=${module};OMPI_ALLOW_RUN_AS_ROOT=1;OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1;\
OMPI_MCA_rmaps_base_oversubscribe=1;PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe;\
ASAN_OPTIONS=detect_leaks=0;TSAN_OPTIONS=suppressions=${suppressions}")
endfunction()

# A program run by every mpirun with each number of ranks.
#   zero_mpi_test(<target> RANKS <numbers...> [ARGUMENTS <...>] [SUFFIX <text>] [TIMEOUT <seconds>])
function(zero_mpi_test target)
  cmake_parse_arguments(ARG "" "SUFFIX;TIMEOUT" "RANKS;ARGUMENTS" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
  endif()
  get_property(flavours GLOBAL PROPERTY ZERO_MPI_FLAVOURS)
  foreach(flavour ${flavours})
    get_property(mpirun GLOBAL PROPERTY ZERO_MPI_${flavour}_MPIRUN)
    foreach(ranks ${ARG_RANKS})
      set(name ${target}${ARG_SUFFIX}_${flavour}_${ranks})
      add_test(NAME ${name} COMMAND ${mpirun} -n ${ranks} $<TARGET_FILE:${target}> ${ARG_ARGUMENTS})
      set_tests_properties(${name} PROPERTIES TIMEOUT ${ARG_TIMEOUT} LABELS "mpi;ranks" PROCESSORS 2)
      zero_mpi_environment(${name} ${flavour})
    endforeach()
  endforeach()
endfunction()

# A program run as 2 x 2 ranks in two network namespaces (Open MPI).
#   zero_netns_test(<target> [ARGUMENTS <...>] [TIMEOUT <seconds>])
function(zero_netns_test target)
  cmake_parse_arguments(ARG "" "TIMEOUT" "ARGUMENTS" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
  endif()
  get_property(flavours GLOBAL PROPERTY ZERO_MPI_FLAVOURS)
  if(NOT openmpi IN_LIST flavours)
    return()
  endif()
  add_test(NAME ${target}_netns COMMAND sh ${PROJECT_SOURCE_DIR}/tests/group/netns_mpirun.sh $<TARGET_FILE:${target}> ${ARG_ARGUMENTS})
  set_tests_properties(${target}_netns PROPERTIES TIMEOUT ${ARG_TIMEOUT} LABELS "mpi;ranks" PROCESSORS 2)
  zero_mpi_environment(${target}_netns openmpi)
endfunction()
