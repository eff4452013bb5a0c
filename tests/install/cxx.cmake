# Builds and runs tests/install/main.cc against an installation, once through find_package and once
# through pkg-config.
include(${CMAKE_CURRENT_LIST_DIR}/common.cmake)

install_build()
run(${CMAKE_COMMAND} -S ${SOURCE} -B ${WORK}/build -DCMAKE_PREFIX_PATH=${WORK}/prefix
    -DCMAKE_CXX_COMPILER=${CXX} -DCMAKE_BUILD_TYPE=Debug -DUSES_TORCH=${USES_TORCH})
run(${CMAKE_COMMAND} --build ${WORK}/build)
run(${WORK}/build/trainer)
run(${WORK}/build/watched ${WORK}/run.jsonl)
file(STRINGS ${WORK}/run.jsonl lines)
list(LENGTH lines told)
if(NOT told EQUAL 4)  # began, the loss, the end, ended
  message(FATAL_ERROR "run.jsonl has ${told} lines: ${lines}")
endif()
if(USES_TORCH)
  run(${WORK}/build/uses_torch)
endif()

pkg_config(flags sotto)
run(${CXX} -std=c++20 ${SOURCE}/main.cc -o ${WORK}/with_pkg_config ${flags}
    -Wl,-rpath,${WORK}/prefix/lib)
run(${WORK}/with_pkg_config)
