# The scripts in Python, as far as they are not tested where they are used.
sotto_add_case("scripts: stand-ins for CUDA's libraries answer that there is no device"
  COMMAND ${CMAKE_COMMAND} -E env PYTHONDONTWRITEBYTECODE=1 ${SOTTO_PYTHON}
          ${CMAKE_CURRENT_LIST_DIR}/cuda_stand_ins_test.py)
