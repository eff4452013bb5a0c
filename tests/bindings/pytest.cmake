# Runs the tests of the Python module; says SKIPPED where what they need is missing.
#   cmake -DPYTHON=… -DTESTS=… [-DLIBRARY=… -DPROGRAM=…] -P pytest.cmake
execute_process(COMMAND ${PYTHON} -c "import numpy, pytest" RESULT_VARIABLE missing
                OUTPUT_QUIET ERROR_QUIET)
if(NOT missing EQUAL 0)
  message("SKIPPED: the tests of the Python module need python3-pytest and python3-numpy")
  return()
endif()
execute_process(
  COMMAND ${CMAKE_COMMAND} -E env --unset=RANK --unset=WORLD_SIZE PYTHONDONTWRITEBYTECODE=1
          OMP_NUM_THREADS=1 SOTTO_LIBRARY=${LIBRARY} SOTTO_PROGRAM=${PROGRAM}
          ${PYTHON} -m pytest -q -rs -p no:cacheprovider ${TESTS}
  RESULT_VARIABLE code)
if(NOT code EQUAL 0)
  message(FATAL_ERROR "pytest: ${code}")
endif()
