# The target docs: reference and guides as HTML, in docs/html of the build tree. Doxygen's warnings are errors, and so is what is
# undocumented.

option(ZERO_DOCS "Render the documentation in every build, and install it" OFF)
find_program(ZERO_DOXYGEN doxygen)
mark_as_advanced(ZERO_DOXYGEN)
find_package(Python3 COMPONENTS Interpreter)
if(NOT ZERO_DOXYGEN OR NOT Python3_FOUND)
  message(STATUS "the target docs is left out: doxygen or python3 was not found")
  return()
endif()

set(ZERO_DOCS_DIR ${PROJECT_BINARY_DIR}/docs)
file(GLOB headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/include/zero/*.h)
set(guides ${PROJECT_SOURCE_DIR}/README.md)
foreach(folder abi bindings cmake examples include kernels lib tests)
  file(GLOB_RECURSE found CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/README.md)
  list(APPEND guides ${found})
endforeach()
list(JOIN guides "\" \"" ZERO_DOCS_GUIDES)
configure_file(cmake/docs/Doxyfile.in ${ZERO_DOCS_DIR}/Doxyfile @ONLY)

add_custom_command(OUTPUT ${ZERO_DOCS_DIR}/rendered
                   COMMAND ${CMAKE_COMMAND} -E rm -rf ${ZERO_DOCS_DIR}/html ${ZERO_DOCS_DIR}/xml
                   COMMAND ${ZERO_DOXYGEN} ${ZERO_DOCS_DIR}/Doxyfile
                   COMMAND ${Python3_EXECUTABLE} -B ${PROJECT_SOURCE_DIR}/cmake/docs/check.py ${PROJECT_SOURCE_DIR}/abi ${ZERO_DOCS_DIR}
                   COMMAND ${CMAKE_COMMAND} -E touch ${ZERO_DOCS_DIR}/rendered
                   DEPENDS ${headers} ${guides} ${ZERO_DOCS_DIR}/Doxyfile ${PROJECT_SOURCE_DIR}/cmake/docs/check.py
                           ${PROJECT_SOURCE_DIR}/cmake/docs/guide.py ${PROJECT_SOURCE_DIR}/abi/symbols.txt
                           ${PROJECT_SOURCE_DIR}/abi/constants.txt
                   COMMENT "Rendering reference and guides into ${ZERO_DOCS_DIR}/html" VERBATIM)
if(ZERO_DOCS)
  set(all ALL)
  install(DIRECTORY ${ZERO_DOCS_DIR}/html DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT development)
endif()
add_custom_target(docs ${all} DEPENDS ${ZERO_DOCS_DIR}/rendered)
