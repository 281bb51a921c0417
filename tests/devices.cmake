# cuda_caller: a caller of CUDA devices, for tests and benchmarks of memory there, where libzero_cuda.so is built.
if(TARGET zero_cuda)
  zero_find_cuda_toolkit(QUIET)
  add_library(cuda_caller SHARED ${CMAKE_CURRENT_LIST_DIR}/memory/cuda_caller.c)
  set_target_properties(cuda_caller PROPERTIES C_VISIBILITY_PRESET default)
  target_include_directories(cuda_caller PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(cuda_caller PRIVATE CUDA::cudart_static)
endif()
