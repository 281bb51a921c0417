# train_fashion with --device cuda: the program, and a test of what it computes, with the kernels' source on the host, in streams and on
# memory of the emulation of CUDA. The test and the program's own on the first CUDA device, where there is one.
find_package(ZLIB QUIET)
set(fashion_folder ${PROJECT_SOURCE_DIR}/examples/fashion)
# A kernel has no padding: the emulation translates what looks like an address of a device, and left-over bytes may.
set_source_files_properties(${fashion_folder}/compute_cuda.cu PROPERTIES LANGUAGE CXX COMPILE_OPTIONS -Werror=padded)

# What the model is computed with, optimised as in train_fashion.
function(fashion_library name)
  add_library(${name} STATIC ${ARGN})
  target_compile_options(${name} PRIVATE -O3)
  target_compile_definitions(${name} PRIVATE _GNU_SOURCE)
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  set_target_properties(${name} PROPERTIES C_STANDARD 11)
  target_link_libraries(${name} PUBLIC zero zero_options)
endfunction()

fashion_library(fashion_host ${fashion_folder}/compute_host.c ${fashion_folder}/model.c ${PROJECT_SOURCE_DIR}/examples/precision.c
                ${fashion_folder}/product.c)
fashion_library(fashion_emulated ${fashion_folder}/compute_cuda.cu fashion_emulated_device.cpp)
target_link_libraries(fashion_emulated PUBLIC emulated_cuda)

zero_test(fashion_compute_test SOURCES fashion_compute_test.cpp LIBRARIES fashion_host fashion_emulated m LABELS examples)
if(TARGET fashion_cuda)
  zero_test(fashion_compute_cuda_test SOURCES fashion_compute_test.cpp $<TARGET_OBJECTS:fashion_cuda>
            LIBRARIES fashion_host cuda_caller CUDA::cudart_static m LABELS examples)
  zero_script_test(fashion_cuda fashion_cuda.sh $<TARGET_FILE:train_fashion>)
  set_tests_properties(fashion_cuda PROPERTIES SKIP_RETURN_CODE 77)
endif()

get_target_property(fashion_sources train_fashion SOURCES)
list(FILTER fashion_sources EXCLUDE REGEX "compute_|model|precision|product|fashion_cuda")
list(TRANSFORM fashion_sources PREPEND ${PROJECT_SOURCE_DIR}/examples/)
add_executable(train_fashion_emulated ${fashion_sources})
target_compile_definitions(train_fashion_emulated PRIVATE _GNU_SOURCE)
set_target_properties(train_fashion_emulated PROPERTIES C_STANDARD 11)
target_link_libraries(train_fashion_emulated PRIVATE fashion_host fashion_emulated ZLIB::ZLIB m)
zero_script_test(fashion_device fashion_device.sh $<TARGET_FILE:train_fashion_emulated> ${scratch}/device)
set_tests_properties(fashion_device PROPERTIES SKIP_RETURN_CODE 77 ENVIRONMENT "ZERO_CUDA_MODULE=$<TARGET_FILE:emulated_cuda>")
