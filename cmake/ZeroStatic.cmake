# libzero.a: the objects of libzero.so as an archive, for programs that carry libzero inside. Sanitizers and counters are never installed.
if(ZERO_SANITIZE OR ZERO_COVERAGE)
  return()
endif()

set(objects "")
foreach(layer core memory group checkpoint engine api kernels kernels_reference)
  list(APPEND objects $<TARGET_OBJECTS:zero_${layer}>)
endforeach()
foreach(target ${ZERO_SIMD_TARGETS})
  list(APPEND objects $<TARGET_OBJECTS:zero_kernels_${target}>)
endforeach()
add_library(zero_static STATIC ${objects})
add_library(zero::zero_static ALIAS zero_static)
# Programs in C may link it: the C++ run time is named as a library.
set_target_properties(zero_static PROPERTIES OUTPUT_NAME zero LINKER_LANGUAGE C ARCHIVE_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)
target_link_libraries(zero_static INTERFACE stdc++ m pthread ${CMAKE_DL_LIBS})
target_include_directories(zero_static INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
                                                 $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
install(TARGETS zero_static EXPORT zeroTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development)
# CMake strips libraries that are shared.
if(PROJECT_IS_TOP_LEVEL AND CMAKE_STRIP)
  install(CODE "
    get_filename_component(folder \"${CMAKE_INSTALL_LIBDIR}\" ABSOLUTE BASE_DIR \"\${CMAKE_INSTALL_PREFIX}\")
    execute_process(COMMAND \"${CMAKE_STRIP}\" --strip-debug --enable-deterministic-archives \"\$ENV{DESTDIR}\${folder}/libzero.a\"
                    COMMAND_ERROR_IS_FATAL ANY)"
          COMPONENT development)
endif()
