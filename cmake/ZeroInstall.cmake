# cmake --install: library, headers, the zero command, a CMake package and a pkg-config file, and the MPI module's source for sites that build
# it with their own mpicc.

include(CMakePackageConfigHelpers)

install(TARGETS zero EXPORT zeroTargets
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime NAMELINK_COMPONENT development)
install(DIRECTORY include/zero DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development FILES_MATCHING PATTERN "*.h")
# What joins libzero to a C++ framework: headers alone, which include one another by these folders.
foreach(header embedding/handles.h embedding/memory.h libtorch/sharded_adamw.h libtorch/adamw_states.h dlib/sharded_adamw.h dlib/net_memory.h
        ggml/sharded_graph.h)
  get_filename_component(folder ${header} DIRECTORY)
  install(FILES examples/${header} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/zero_frameworks/${folder} COMPONENT development)
endforeach()
install(DIRECTORY lib/group/module/ DESTINATION ${CMAKE_INSTALL_DATADIR}/libzero/mpi COMPONENT development PATTERN "*nccl*" EXCLUDE)

install(DIRECTORY examples/ DESTINATION ${CMAKE_INSTALL_DOCDIR}/examples COMPONENT development
        FILES_MATCHING PATTERN "*.c" PATTERN "*.h" PATTERN "*.cpp" PATTERN "README.md")

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/zero)
install(EXPORT zeroTargets NAMESPACE zero:: DESTINATION ${package_dir} COMPONENT development)
configure_package_config_file(cmake/zeroConfig.cmake.in ${PROJECT_BINARY_DIR}/zeroConfig.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/zeroConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/zeroConfig.cmake ${PROJECT_BINARY_DIR}/zeroConfigVersion.cmake DESTINATION ${package_dir}
        COMPONENT development)

# The prefix as seen from the .pc file, so that an installed tree may be moved.
if(IS_ABSOLUTE ${CMAKE_INSTALL_LIBDIR})
  set(ZERO_PC_PREFIX ${CMAKE_INSTALL_PREFIX})
else()
  file(RELATIVE_PATH ZERO_PC_PREFIX /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
  string(REGEX REPLACE "/$" "" ZERO_PC_PREFIX "\${pcfiledir}/${ZERO_PC_PREFIX}")
endif()
foreach(kind LIBDIR INCLUDEDIR)
  if(IS_ABSOLUTE ${CMAKE_INSTALL_${kind}})
    set(ZERO_PC_${kind} ${CMAKE_INSTALL_${kind}})
  else()
    set(ZERO_PC_${kind} "\${prefix}/${CMAKE_INSTALL_${kind}}")
  endif()
endforeach()
configure_file(cmake/zero.pc.in ${PROJECT_BINARY_DIR}/zero.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/zero.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)
