# libzero_nccl.so, the module through which libzero reaches NCCL. It is linked to libnccl.so.2,
# which the loader must find at run time.
if(ZERO_NCCL STREQUAL "OFF")
  return()
endif()

zero_find_cuda_toolkit(QUIET)
find_path(ZERO_NCCL_INCLUDE_DIR nccl.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
# Some packages have no libnccl.so, so libnccl.so.2 is also tried.
find_library(ZERO_NCCL_LIBRARY NAMES nccl libnccl.so.2 HINTS ${CUDAToolkit_LIBRARY_DIR})
mark_as_advanced(ZERO_NCCL_INCLUDE_DIR ZERO_NCCL_LIBRARY)

# Reads the number that a header defines for a name; 0 if it has no such definition.
function(zero_defined_number header name out)
  file(STRINGS ${header} line REGEX "^#define ${name} +[0-9]+" LIMIT_COUNT 1)
  if(NOT line MATCHES "([0-9]+)$")
    set(CMAKE_MATCH_1 0)
  endif()
  set(${out} ${CMAKE_MATCH_1} PARENT_SCOPE)
endfunction()

set(missing "")
if(NOT ZERO_NCCL_INCLUDE_DIR OR NOT ZERO_NCCL_LIBRARY)
  set(missing "no NCCL was found (ZERO_NCCL_INCLUDE_DIR names the folder of nccl.h, ZERO_NCCL_LIBRARY the file libnccl.so.2)")
elseif(NOT CUDAToolkit_FOUND)
  set(missing "nccl.h needs the headers of a CUDA Toolkit, and none was found (CUDAToolkit_ROOT names its folder)")
else()
  zero_defined_number(${ZERO_NCCL_INCLUDE_DIR}/nccl.h NCCL_VERSION_CODE version)
  zero_defined_number(${CMAKE_CURRENT_LIST_DIR}/zero_nccl_module.h ZERO_NCCL_OLDEST oldest)
  if(version LESS oldest)
    set(missing "${ZERO_NCCL_INCLUDE_DIR}/nccl.h is of NCCL ${version}, older than ${oldest}")
  endif()
endif()
if(missing)
  if(ZERO_NCCL STREQUAL "ON")
    message(FATAL_ERROR "libzero_nccl.so cannot be built: ${missing}")
  endif()
  message(STATUS "libzero_nccl.so is left out: ${missing}")
  return()
endif()

# Headers of NCCL, for the module and for the fake NCCL of the tests.
add_library(zero_nccl_headers INTERFACE)
target_include_directories(zero_nccl_headers SYSTEM INTERFACE ${ZERO_NCCL_INCLUDE_DIR} ${CUDAToolkit_INCLUDE_DIRS})

add_library(zero_nccl MODULE ${CMAKE_CURRENT_LIST_DIR}/zero_nccl_module.c)
set_target_properties(zero_nccl PROPERTIES C_STANDARD 99 C_EXTENSIONS OFF C_VISIBILITY_PRESET hidden
                                           LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)
target_include_directories(zero_nccl PRIVATE ${PROJECT_SOURCE_DIR}/include)
target_compile_options(zero_nccl PRIVATE -Wall -Wextra)
target_link_libraries(zero_nccl PRIVATE zero_nccl_headers ${ZERO_NCCL_LIBRARY})
target_link_options(zero_nccl PRIVATE -Wl,-soname,libzero_nccl.so)
install(TARGETS zero_nccl LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT nccl)
