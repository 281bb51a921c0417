# cpack: Debian packages, RPMs and an archive, from the components of cmake --install. tools/package.sh configures, builds and packs.

# Who answers for the packages: the one who builds them for others sets it.
set(ZERO_PACKAGE_CONTACT "libzero packagers <packagers@example.org>" CACHE STRING "Maintainer named in packages")

set(CPACK_PACKAGE_NAME libzero)
set(CPACK_PACKAGE_VENDOR libzero)
set(CPACK_PACKAGE_CONTACT ${ZERO_PACKAGE_CONTACT})
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGING_INSTALL_PREFIX ${CMAKE_INSTALL_PREFIX})
set(CPACK_GENERATOR DEB TGZ)
set(CPACK_OUTPUT_FILE_PREFIX ${PROJECT_BINARY_DIR}/packages)
set(CPACK_COMPONENTS_ALL runtime development)
foreach(module mpi cuda nccl)
  if(TARGET zero_${module})
    list(APPEND CPACK_COMPONENTS_ALL ${module})
  endif()
endforeach()

set(text_runtime "This package holds the shared library. It needs the C library alone.")
set(text_development
    "This package holds headers, their documentation, files for pkg-config and\nCMake, examples, and the command zero, which describes an installation and\nlooks after saves.")
set(text_mpi "This package holds the module through which libzero starts ranks, and\ncrosses hosts, with MPI.")
set(text_cuda
    "This package holds the module through which libzero keeps states and makes\nsteps on CUDA devices. It needs NVIDIA's driver where it runs.")
set(text_nccl
    "This package holds the module through which groups move memory of CUDA\ndevices over NCCL. It needs libnccl.so.2 where it runs.")
set(names runtime libzero0 development libzero-dev mpi libzero-mpi cuda libzero-cuda nccl libzero-nccl)

if(NOT ZERO_GZIP)
  message(STATUS "packages are left out: no gzip was found")
  return()
endif()
string(TIMESTAMP now "%a, %d %b %Y %H:%M:%S +0000" UTC)
file(WRITE ${PROJECT_BINARY_DIR}/changelog
     "libzero (${PROJECT_VERSION}) unstable; urgency=medium\n\n  * Release ${PROJECT_VERSION}.\n\n -- ${ZERO_PACKAGE_CONTACT}  ${now}\n")
execute_process(COMMAND ${ZERO_GZIP} -9nf ${PROJECT_BINARY_DIR}/changelog COMMAND_ERROR_IS_FATAL ANY)

foreach(component ${CPACK_COMPONENTS_ALL})
  list(FIND names ${component} at)
  math(EXPR at "${at} + 1")
  list(GET names ${at} name)
  string(TOUPPER ${component} COMPONENT)
  set(CPACK_COMPONENT_${COMPONENT}_DESCRIPTION
      "libzero shards optimizer states, gradients and parameters over ranks (ZeRO,\nstages 0 to 3) and makes the optimizer's step.\n.\n${text_${component}}")
  set(CPACK_DEBIAN_${COMPONENT}_PACKAGE_NAME ${name})
  set(CPACK_DEBIAN_${COMPONENT}_PACKAGE_SECTION libs)
  set(CPACK_RPM_${COMPONENT}_PACKAGE_NAME ${name})
  # What Debian reads the history of a package from.
  install(FILES ${PROJECT_BINARY_DIR}/changelog.gz DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${name} COMPONENT ${component})
  if(NOT component STREQUAL runtime)
    # Modules and headers go with the very library that they were built with.
    set(CPACK_DEBIAN_${COMPONENT}_PACKAGE_DEPENDS "libzero0 (= ${PROJECT_VERSION})")
    set(CPACK_RPM_${COMPONENT}_PACKAGE_REQUIRES "libzero0 = ${PROJECT_VERSION}")
  endif()
endforeach()
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SUGGESTS "libzero-mpi, libzero-cuda, libzero-nccl")
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
foreach(component RUNTIME MPI CUDA NCCL)
  set(CPACK_DEBIAN_${component}_PACKAGE_CONTROL_EXTRA ${PROJECT_SOURCE_DIR}/cmake/triggers)
endforeach()
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_RUNTIME_DEBUGINFO_PACKAGE ON)

set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${PROJECT_BINARY_DIR}/lib)
# Its library comes from NVIDIA under more than one name, so that only the C library is named.
set(CPACK_DEBIAN_NCCL_PACKAGE_SHLIBDEPS OFF)
string(APPEND CPACK_DEBIAN_NCCL_PACKAGE_DEPENDS ", libc6")
set(CPACK_DEBIAN_NCCL_PACKAGE_SUGGESTS libnccl2)

set(CPACK_RPM_COMPONENT_INSTALL ON)
set(CPACK_RPM_FILE_NAME RPM-DEFAULT)
set(CPACK_RPM_PACKAGE_LICENSE "see the project")
set(CPACK_RPM_PACKAGE_AUTOREQPROV ON)
set(CPACK_RPM_NCCL_PACKAGE_AUTOREQPROV OFF)

# One archive of all components, which runs wherever it is unpacked.
set(CPACK_ARCHIVE_COMPONENT_INSTALL OFF)
include(CPack)
