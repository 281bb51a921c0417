# The NCCL module over an NCCL of threads, and loading it.

zero_test(nccl_module_test SOURCES nccl_module_test.cpp nccl_broadcast_from_all_test.cpp)
foreach(bad RANGE 1 2)
  add_library(bad_nccl_module_${bad} MODULE bad_nccl_module.c)
  set_target_properties(bad_nccl_module_${bad} PROPERTIES PREFIX "")
  target_compile_definitions(bad_nccl_module_${bad} PRIVATE BAD=${bad})
  target_include_directories(bad_nccl_module_${bad} PRIVATE ${PROJECT_SOURCE_DIR}/lib ${PROJECT_SOURCE_DIR}/include)
  add_dependencies(nccl_module_test bad_nccl_module_${bad})
endforeach()
target_compile_definitions(nccl_module_test PRIVATE ZERO_BAD_MODULES="${CMAKE_CURRENT_BINARY_DIR}/bad_nccl_module_")

if(NOT TARGET zero_nccl)
  message(STATUS "tests/group: nccl_table_test and nccl_collectives_test are left out: they need libzero_nccl.so, which is not built")
  return()
endif()

# Its soname is NCCL's, so that in a program that is linked to it libzero_nccl.so is content with it. That it is found by a path in the
# program that comes before LD_LIBRARY_PATH, where a real NCCL may lie, is what --disable-new-dtags is for.
add_library(fake_nccl SHARED fake_nccl.cpp fake_nccl_comm.cpp)
set_target_properties(fake_nccl PROPERTIES OUTPUT_NAME nccl SOVERSION 2 CXX_VISIBILITY_PRESET default
                                           LIBRARY_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/fake_nccl)
target_include_directories(fake_nccl PRIVATE ${PROJECT_SOURCE_DIR})
target_link_libraries(fake_nccl PUBLIC emulated_cuda PRIVATE zero_nccl_headers zero_options pthread)
target_link_options(fake_nccl INTERFACE -Wl,--disable-new-dtags -Wl,--no-as-needed)
target_compile_definitions(fake_nccl INTERFACE ZERO_NCCL_FILE="$<TARGET_FILE:zero_nccl>")
add_dependencies(fake_nccl zero_nccl)

zero_test(nccl_table_test SOURCES nccl_table_test.cpp nccl_failures_test.cpp LIBRARIES zero_internal fake_nccl LABELS ranks)
target_link_libraries(nccl_table_test PRIVATE zero_nccl_headers)
zero_test(nccl_collectives_test SOURCES nccl_collectives_test.cpp nccl_messages_test.cpp LIBRARIES collective_cases zero_internal fake_nccl fake_mpi LABELS ranks
          TIMEOUT 900)
target_compile_definitions(nccl_collectives_test PRIVATE ZERO_FAKE_MPI_FILE="$<TARGET_FILE:fake_mpi>")
