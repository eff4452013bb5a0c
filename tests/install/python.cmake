# Runs tests/install/python/main.py with the module and the library of an installation.
include(${CMAKE_CURRENT_LIST_DIR}/common.cmake)

need_python_module(numpy python3-numpy)
install_build()
file(GLOB_RECURSE module ${WORK}/prefix/*/__init__.py)
cmake_path(GET module PARENT_PATH package)
cmake_path(GET package PARENT_PATH path)
run(${CMAKE_COMMAND} -E env --unset=SOTTO_LIBRARY PYTHONPATH=${path} PYTHONDONTWRITEBYTECODE=1
    ${PYTHON} ${SOURCE}/python/main.py ${WORK}/prefix)
# The program of the installation, and none that PATH may lead to.
run(${CMAKE_COMMAND} -E env --unset=SOTTO_LIBRARY --unset=SOTTO_PROGRAM PATH=/nonexistent PYTHONPATH=${path}
    PYTHONDONTWRITEBYTECODE=1 ${PYTHON} -m sotto --version)
