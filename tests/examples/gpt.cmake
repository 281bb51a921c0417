# train_gpt: its layers in fp64, its text, and the program.
set(gpt_folder ${PROJECT_SOURCE_DIR}/examples/gpt)

# gpt_library(<name> <definitions> <files...>): what a test computes with, optimised as in train_gpt.
function(gpt_library name definitions)
  list(TRANSFORM ARGN PREPEND ${gpt_folder}/)
  add_library(${name} STATIC ${ARGN})
  target_compile_options(${name} PRIVATE -O2)
  target_compile_definitions(${name} PRIVATE _GNU_SOURCE PUBLIC ${definitions})
  set_target_properties(${name} PROPERTIES C_STANDARD 11)
  target_link_libraries(${name} PUBLIC zero_options m)
endfunction()

gpt_library(gpt_double GPT_DOUBLE layers.c model.c products.c shape.c)
zero_test(gpt_model_test SOURCES gpt_model_test.cpp LIBRARIES gpt_double LABELS "examples;ranks")
find_package(ZLIB QUIET)
gpt_library(gpt_text "" text.c)
zero_test(gpt_text_test SOURCES gpt_text_test.cpp LIBRARIES gpt_text ZLIB::ZLIB LABELS "examples;ranks")

get_property(products TARGET train_gpt PROPERTY ZERO_PRODUCTS)
zero_script_test(gpt_bad_input gpt_bad_input.sh $<TARGET_FILE:train_gpt> ${scratch}/gpt_bad_input ${products})
zero_script_test(gpt_outputs gpt_outputs.sh $<TARGET_FILE:train_gpt> ${scratch}/gpt_outputs ${products})
zero_script_test(gpt_same_hash gpt_same_hash.sh $<TARGET_FILE:train_gpt> ${scratch}/gpt_same_hash ${products})
zero_script_test(gpt_servers gpt_servers.sh $<TARGET_FILE:train_gpt> ${scratch}/gpt_servers ${products})
set_tests_properties(gpt_bad_input gpt_same_hash PROPERTIES LABELS "examples;ranks")
zero_script_test(gpt_files gpt_files.sh $<TARGET_FILE:train_gpt> ${scratch}/gpt_files ${products})
zero_script_test(gpt_saves saves.sh ${scratch}/gpt_saves 2 2 $<TARGET_FILE:train_gpt> --ranks 2 --steps 40 --batch 4 --context 32)
add_dependencies(rank_tests train_gpt)
get_property(flavours GLOBAL PROPERTY ZERO_MPI_FLAVOURS)
foreach(flavour ${flavours})
  get_property(mpirun GLOBAL PROPERTY ZERO_MPI_${flavour}_MPIRUN)
  zero_script_test(gpt_same_hash_${flavour} gpt_same_hash_mpi.sh $<TARGET_FILE:train_gpt> ${scratch}/gpt_${flavour} ${products} ${mpirun})
  zero_mpi_environment(gpt_same_hash_${flavour} ${flavour})
endforeach()

if(openmpi IN_LIST flavours)
  zero_script_test(slurm_requeue slurm_requeue.sh ${PROJECT_SOURCE_DIR}/examples/slurm/train.sh $<TARGET_FILE:train_gpt>
                   ${scratch}/slurm_requeue)
  zero_mpi_environment(slurm_requeue openmpi)
  set_tests_properties(slurm_requeue PROPERTIES PROCESSORS 2)
endif()

if(Python3_FOUND)
  zero_script_test(gpt_python gpt_python.sh ${Python3_EXECUTABLE} ${gpt_folder}/train_gpt.py ${scratch}/gpt_python)
  zero_script_test(gpt_torch gpt_torch.sh $<TARGET_FILE:train_gpt> ${gpt_folder}/compare_torch.py ${scratch}/gpt_torch ${products}
                   ${PROJECT_SOURCE_DIR}/build/peers/bin/python ${Python3_EXECUTABLE})
  set_tests_properties(gpt_torch PROPERTIES SKIP_RETURN_CODE 77)
  # The packages are in environments of their own: safetensors alone is small.
  foreach(test "gpt_safetensors;venv" "gpt_transformers;peers")
    list(GET test 0 name)
    list(GET test 1 venv)
    add_test(NAME ${name} COMMAND ${Python3_EXECUTABLE} -B ${CMAKE_CURRENT_SOURCE_DIR}/${name}.py $<TARGET_FILE:train_gpt> ${scratch}/${name}
                                  ${PROJECT_SOURCE_DIR}/build/${venv} ${products})
    set_tests_properties(${name} PROPERTIES TIMEOUT 1800 LABELS examples SKIP_RETURN_CODE 77 ENVIRONMENT_MODIFICATION "${zero_without_launcher}")
  endforeach()
  set_tests_properties(gpt_safetensors PROPERTIES DEPENDS checkpoint_interop)  # which makes the same environment
  set_tests_properties(gpt_python PROPERTIES SKIP_RETURN_CODE 77 ENVIRONMENT "PYTHONPATH=${PROJECT_BINARY_DIR}/bindings/python")
endif()
