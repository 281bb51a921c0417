# train_gpt, with OpenBLAS for its matrix products where that is found. Sanitizers would see a BLAS
# only in part, and its products hide what they look for.
zero_example(
  train_gpt
  check.c
  counters.c
  gpt/hugging_face.c
  gpt/layers.c
  gpt/model.c
  gpt/options.c
  gpt/parameters.c
  gpt/plot.c
  gpt/products.c
  gpt/progress.c
  gpt/report.c
  gpt/sample.c
  gpt/shape.c
  gpt/text.c
  gpt/trainer.c
  precision.c
  ranks.c
  replicas.c
  saves.c
  servers.c)
target_link_libraries(train_gpt PRIVATE ZLIB::ZLIB m)
target_compile_definitions(train_gpt PRIVATE GPT_PLOT="${CMAKE_CURRENT_SOURCE_DIR}/gpt/plot.py")
set_source_files_properties(gpt/layers.c gpt/products.c precision.c PROPERTIES COMPILE_OPTIONS "-O3;-fno-trapping-math;-fno-math-errno")

set_property(TARGET train_gpt PROPERTY ZERO_PRODUCTS plain)

find_library(ZERO_OPENBLAS openblas PATH_SUFFIXES openblas-pthread)
find_path(ZERO_OPENBLAS_INCLUDE openblas_config.h PATH_SUFFIXES openblas-pthread openblas)
if(ZERO_SANITIZE OR NOT ZERO_OPENBLAS OR NOT ZERO_OPENBLAS_INCLUDE)
  if(NOT ZERO_SANITIZE)
    message(STATUS "train_gpt is without a BLAS, which leaves out its speed: OpenBLAS was not found (Debian: libopenblas-dev)")
  endif()
  return()
endif()
target_compile_definitions(train_gpt PRIVATE GPT_BLAS)

# Layers are compiled for several vector widths where the compiler and the system can choose among them.
include(CheckCSourceCompiles)
set(CMAKE_REQUIRED_FLAGS -Werror)
check_c_source_compiles("
  __attribute__((target_clones(\"default\", \"avx2\", \"avx512f\"))) int same(int x) { return x; }
  int main(void) { return same(0); }" ZERO_TARGET_CLONES)
unset(CMAKE_REQUIRED_FLAGS)
if(ZERO_TARGET_CLONES)
  target_compile_definitions(train_gpt PRIVATE GPT_CLONES)
endif()
target_include_directories(train_gpt PRIVATE ${ZERO_OPENBLAS_INCLUDE})
target_link_libraries(train_gpt PRIVATE ${ZERO_OPENBLAS})
set_property(TARGET train_gpt PROPERTY ZERO_PRODUCTS blas)
