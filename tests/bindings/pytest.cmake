# Runs tests of the Python module; says SKIPPED where a module that they need is missing.
#   cmake -DPYTHON=… -DTESTS=FOLDER -DTORCH=ON|OFF [-DLIBRARY=… -DPROGRAM=…] -P pytest.cmake
include(${CMAKE_CURRENT_LIST_DIR}/../install/common.cmake)

need_python_module(pytest python3-pytest)
need_python_module(numpy python3-numpy)
if(TORCH)
  need_python_module(torch python3-torch)
  file(GLOB tests ${TESTS}/test_torch*.py)
else()
  set(tests ${TESTS} --ignore-glob=${TESTS}/test_torch*.py)
endif()
execute_process(
  COMMAND ${CMAKE_COMMAND} -E env --unset=RANK --unset=WORLD_SIZE PYTHONDONTWRITEBYTECODE=1
          OMP_NUM_THREADS=1 SOTTO_LIBRARY=${LIBRARY} SOTTO_PROGRAM=${PROGRAM}
          ${PYTHON} -m pytest -q -rs -p no:cacheprovider ${tests}
  RESULT_VARIABLE code)
if(NOT code EQUAL 0)
  message(FATAL_ERROR "pytest: ${code}")
endif()
