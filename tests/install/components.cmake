# What find_package(sotto COMPONENTS …) says of a component that is not to be had, and why.
include(${CMAKE_CURRENT_LIST_DIR}/common.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/fake_libtorch.cmake)

install_build()
# asked(STATUS TEXT COMPONENT [OPTION…]): 0 or 1, and what is said.
function(asked status text component)
  file(REMOVE_RECURSE ${WORK}/build)
  execute_process(COMMAND ${CMAKE_COMMAND} -S ${SOURCE}/components -B ${WORK}/build -DCOMPONENT=${component}
                          -DCMAKE_CXX_COMPILER=${CXX} -Dsotto_ROOT=${WORK}/prefix ${ARGN}
                  RESULT_VARIABLE code OUTPUT_VARIABLE out ERROR_VARIABLE out)
  string(REGEX REPLACE "[ \n]+" " " out "${out}")
  if(NOT code EQUAL status OR NOT out MATCHES "${text}")
    message(FATAL_ERROR "${component} ${ARGN}: ${code}, not ${status} with '${text}':\n${out}")
  endif()
endfunction()

asked(0 "" trainers)
asked(0 "" sites)
asked(1 "component 'nonsense': sotto has none of this name" nonsense)
if(NOT USES_TORCH)
  asked(1 "component 'torch': this installation was built without it" torch)
  return()
endif()
set(built "it was built with libtorch [0-9.]+ in [^ ]+")
asked(0 "" torch)
asked(1 "component 'torch': no libtorch in /nowhere, .*; ${built}: say with -DCMAKE_PREFIX_PATH" torch
      -DTorch_DIR=/nowhere)
fake_libtorch(${WORK}/other 99.1.0)
asked(1 "component 'torch': ${built}, and libtorch 99.1.0 in ${WORK}/other was found: say" torch
      -DCMAKE_PREFIX_PATH=${WORK}/other)
# Nobody who leaves the component out hears of it.
asked(0 "" trainers -DCMAKE_PREFIX_PATH=${WORK}/other)
# The same version elsewhere is taken, and said.
file(STRINGS ${BUILD}/sottoConfig.cmake version REGEX "set\\(_sotto_built_with")
string(REGEX MATCH "[0-9]+[.][0-9]+" series "${version}")
fake_libtorch(${WORK}/moved ${series}.77)
asked(0 "sotto::torch: ${built}, and libtorch ${series}.77 in ${WORK}/moved was found" torch
      -DTorch_DIR=${WORK}/moved)
# As on a host without any: nothing has the header that is looked for.
file(GLOB_RECURSE finds ${WORK}/prefix/*/SottoFindTorch.cmake)
file(READ ${finds} text)
string(REPLACE "csrc/Export.h" "csrc/is_nowhere.h" text "${text}")
file(WRITE ${finds} "${text}")
asked(1 "component 'torch': libtorch was not found; ${built}: say" torch)
asked(0 "" trainers)
