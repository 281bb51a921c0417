# How everything is compiled: one place for flags. Each layer is an object library that sees only the folders it may include.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 99)
set(CMAKE_C_EXTENSIONS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(PROJECT_IS_TOP_LEVEL AND NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "Build type" FORCE)
endif()

# Compiler and sanitizer options of every target of the project.
add_library(zero_options INTERFACE)
target_compile_options(zero_options INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wno-missing-field-initializers -ffp-contract=off)
# ccache takes part in what has precompiled headers only where it is told that one stands for what it includes, and gcc keeps that visible.
if(CMAKE_CXX_COMPILER_LAUNCHER MATCHES "ccache$")
  list(PREPEND CMAKE_CXX_COMPILER_LAUNCHER env CCACHE_SLOPPINESS=pch_defines,time_macros)
endif()
target_compile_options(zero_options INTERFACE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fpch-preprocess>)
if(ZERO_SANITIZE)
  target_compile_options(zero_options INTERFACE -fsanitize=${ZERO_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(zero_options INTERFACE -fsanitize=${ZERO_SANITIZE})
  # Checks of every access to a member would take a third of the compiler's time: what is null, freed or too small is found by the address
  # sanitizer; objects of a wrong class are not looked for, and what is not aligned in the library alone.
  define_property(TARGET PROPERTY ZERO_IGNORES_ALIGNMENT INITIALIZE_FROM_VARIABLE ZERO_IGNORES_ALIGNMENT)
  target_compile_options(zero_options INTERFACE
    -fno-sanitize=null,object-size,vptr $<$<BOOL:$<TARGET_PROPERTY:ZERO_IGNORES_ALIGNMENT>>:-fno-sanitize=alignment>)
endif()
if(ZERO_COVERAGE)
  target_link_options(zero_options INTERFACE --coverage)
endif()

# find_package(CUDAToolkit ...). CMake 3.25 sets a property of the library nvToolsExt, which CUDA 13 no longer has, in projects that require
# CMake 3.25.
macro(zero_find_cuda_toolkit)
  set(zero_minimum_required_version ${CMAKE_MINIMUM_REQUIRED_VERSION})
  set(CMAKE_MINIMUM_REQUIRED_VERSION 3.24)
  find_package(CUDAToolkit ${ARGN})
  set(CMAKE_MINIMUM_REQUIRED_VERSION ${zero_minimum_required_version})
endmacro()

# Compiles a target's files a few at a time, where ZERO_UNITY asks for it: what they include is then read and expanded once for each few.
function(zero_unity target batch)
  if(ZERO_UNITY)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${batch})
    # Files that are included look like headers to this warning.
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-subobject-linkage>)
  endif()
endfunction()

# The roots that a layer may include from: a folder of links to just the folders it may see, so that a forbidden include does not compile.
#   zero_layer_roots(<target> <folders...>)
function(zero_layer_roots target)
  set(roots ${PROJECT_BINARY_DIR}/layers/${target})
  file(MAKE_DIRECTORY ${roots})
  foreach(folder ${ARGN})
    get_filename_component(leaf ${folder} NAME)
    file(CREATE_LINK ${PROJECT_SOURCE_DIR}/${folder} ${roots}/${leaf} SYMBOLIC)
  endforeach()
  target_include_directories(${target} PRIVATE ${roots} ${PROJECT_SOURCE_DIR}/include)
endfunction()

# The same, and the options of all targets.
#   zero_layer_includes(<target> <folders...>)
function(zero_layer_includes target)
  zero_layer_roots(${target} ${ARGN})
  target_link_libraries(${target} PRIVATE zero_options)
endfunction()

# One layer as an object library.
#   zero_layer(<name> FOLDER <folder> MAY_INCLUDE <folders...> SOURCES <files...>)
function(zero_layer name)
  cmake_parse_arguments(ARG "" "FOLDER" "MAY_INCLUDE;SOURCES" ${ARGN})
  add_library(${name} OBJECT ${ARG_SOURCES})
  zero_layer_includes(${name} ${ARG_FOLDER} ${ARG_MAY_INCLUDE})
  # What nearly every file includes, compiled once for all layers. Files include what they use all the same.
  if(name STREQUAL zero_core)
    target_precompile_headers(zero_core PRIVATE <algorithm> <array> <atomic> <coroutine> <cstdint> <cstdio> <cstring> <functional> <map>
                              <memory> <mutex> <optional> <span> <string> <thread> <utility> <vector>)
  else()
    target_precompile_headers(${name} REUSE_FROM zero_core)
  endif()
  zero_unity(${name} 8)
  if(ZERO_COVERAGE)
    # Only layers have counters: kernels and tests run at their usual speed.
    target_compile_options(${name} PRIVATE --coverage -O0 -fprofile-update=atomic)
    foreach(folder ${ARG_FOLDER} ${ARG_MAY_INCLUDE})
      # Counters of a header belong to the one file, whichever link it was included through.
      get_filename_component(leaf ${folder} NAME)
      target_compile_options(${name} PRIVATE -fprofile-prefix-map=${PROJECT_BINARY_DIR}/layers/${name}/${leaf}=${PROJECT_SOURCE_DIR}/${folder})
    endforeach()
  endif()
endfunction()
