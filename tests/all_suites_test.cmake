# A program whose files are tests of their own (zero_test, BY_FILE) has no case that the filters of the files leave out.
#   cmake -DPROGRAM=<file> -DFILTER=<the files' filters> -P all_suites_test.cmake
function(count_cases out)
  execute_process(COMMAND ${PROGRAM} --gtest_list_tests ${ARGN} OUTPUT_VARIABLE list RESULT_VARIABLE code)
  if(code)
    message(FATAL_ERROR "${PROGRAM} --gtest_list_tests ended with ${code}")
  endif()
  string(REGEX MATCHALL "\n  [^\n]+" cases "${list}")
  list(LENGTH cases count)
  set(${out} ${count} PARENT_SCOPE)
endfunction()

count_cases(all)
count_cases(found --gtest_filter=${FILTER})
if(all EQUAL 0 OR NOT all EQUAL found)
  message(FATAL_ERROR "${PROGRAM} has ${all} cases, and the filters of its files take ${found}: write TEST(Suite, Case) at the start of a line.")
endif()
message(STATUS "${all} cases")
