# Builds the wheel that has none of the system's libraries, unpacks it with pip into a folder of its own, and runs
# the module and the program from there.
include(${CMAKE_CURRENT_LIST_DIR}/common.cmake)

need_python_module(numpy python3-numpy)
need_python_module(wheel python3-wheel)
need_python_module(setuptools python3-setuptools)
need_python_module(pip python3-pip)
file(REMOVE_RECURSE ${WORK})
run(${CMAKE_COMMAND} -E env PYTHON=${PYTHON} ${ROOT}/scripts/wheel --linux --build ${BUILD} ${WORK}/dist)
file(GLOB wheel ${WORK}/dist/sotto-${VERSION}-py3-none-linux_*.whl)
list(LENGTH wheel wheels)
if(NOT wheels EQUAL 1)
  message(FATAL_ERROR "one wheel, not ${wheels}: ${wheel}")
endif()
run(${PYTHON} -m pip install --quiet --no-index --no-deps --target ${WORK}/site ${wheel})
run(${CMAKE_COMMAND} -E env --unset=SOTTO_LIBRARY PYTHONPATH=${WORK}/site PYTHONDONTWRITEBYTECODE=1
    ${PYTHON} ${SOURCE}/python/main.py ${WORK}/site)
run(${CMAKE_COMMAND} -E env --unset=SOTTO_LIBRARY --unset=SOTTO_PROGRAM PYTHONPATH=${WORK}/site
    PYTHONDONTWRITEBYTECODE=1 ${PYTHON} -m sotto --version)
if(NOT EXISTS ${WORK}/site/sotto/bin/sotto OR NOT EXISTS ${WORK}/site/sotto/py.typed)
  message(FATAL_ERROR "the wheel lacks the program or the mark of a module with types")
endif()
