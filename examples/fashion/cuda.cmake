# fashion_cuda: the part of train_fashion that computes on a CUDA device, where libzero_cuda.so is built; with an installed libzero where a
# CUDA Toolkit of 12.8 or newer is found, unless -DZERO_CUDA=OFF is given.
zero_find_cuda_toolkit(12.8 QUIET)
if((TARGET zero AND NOT TARGET zero_cuda) OR ZERO_CUDA STREQUAL "OFF" OR NOT TARGET CUDA::cudart_static OR NOT CUDAToolkit_NVCC_EXECUTABLE)
  return()
endif()
set(CMAKE_CUDA_ARCHITECTURES 80)  # of what CMake compiles to try the compiler
if(NOT CMAKE_CUDA_COMPILER)
  set(ENV{CUDACXX} ${CUDAToolkit_NVCC_EXECUTABLE})
  include(CheckLanguage)
  check_language(CUDA)
  if(NOT CMAKE_CUDA_COMPILER)
    message(STATUS "train_fashion is without CUDA: ${CUDAToolkit_NVCC_EXECUTABLE} does not compile with this host's compiler")
    return()
  endif()
endif()
enable_language(CUDA)

add_library(fashion_cuda OBJECT fashion/compute_cuda.cu)
target_link_libraries(fashion_cuda PRIVATE zero::zero)
# Sums are the host's: no product is fused with a sum.
target_compile_options(fashion_cuda PRIVATE -fmad=false -Xcompiler=-Wall,-Wextra,-Wno-parentheses,-ffp-contract=off)
if(NOT DEFINED ZERO_CUDA_ARCHITECTURES)
  set(ZERO_CUDA_ARCHITECTURES "80-real;90-real;100")
endif()
set_target_properties(fashion_cuda PROPERTIES CUDA_STANDARD 17 CUDA_EXTENSIONS OFF CUDA_ARCHITECTURES "${ZERO_CUDA_ARCHITECTURES}")
