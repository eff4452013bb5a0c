# Builds and runs tests/install/main.cc against an installation, once through find_package and once
# through pkg-config.
include(${CMAKE_CURRENT_LIST_DIR}/common.cmake)

install_build()
run(${CMAKE_COMMAND} -S ${SOURCE} -B ${WORK}/build -DCMAKE_PREFIX_PATH=${WORK}/prefix
    -DCMAKE_CXX_COMPILER=${CXX} -DCMAKE_BUILD_TYPE=Debug -DUSES_TORCH=${USES_TORCH}
    -DUSES_OBSERVE=${USES_OBSERVE} -DUSES_STUDY=${USES_STUDY}
    -DEXAMPLES=${EXAMPLES})
run(${CMAKE_COMMAND} --build ${WORK}/build)
run(${WORK}/build/trainer)
# Four lines: it began, the loss, the end, it ended.
function(run_watched program)
  run(${program} ${WORK}/run.jsonl)
  file(STRINGS ${WORK}/run.jsonl lines)
  list(LENGTH lines told)
  if(NOT told EQUAL 4)
    message(FATAL_ERROR "run.jsonl has ${told} lines: ${lines}")
  endif()
endfunction()
if(USES_OBSERVE)
  run_watched(${WORK}/build/watched)
endif()
if(USES_STUDY)
  run(${WORK}/build/what_if)
  run(${WORK}/build/own_site)
endif()
if(USES_TORCH)
  run(${WORK}/build/uses_torch)
endif()

pkg_config(flags sotto)
run(${CXX} -std=c++20 ${SOURCE}/main.cc -o ${WORK}/with_pkg_config ${flags}
    -Wl,-rpath,${WORK}/prefix/lib)
run(${WORK}/with_pkg_config)
if(USES_OBSERVE)
  pkg_config(flags sotto-observe)
  run(${CXX} -std=c++20 ${SOURCE}/watched.cc -o ${WORK}/watched_with_pkg_config ${flags}
      -Wl,-rpath,${WORK}/prefix/lib)
  run_watched(${WORK}/watched_with_pkg_config)
endif()
if(USES_STUDY)
  pkg_config(flags sotto-study)
  run(${CXX} -std=c++20 ${EXAMPLES}/what_if.cc -o ${WORK}/what_if_with_pkg_config ${flags}
      "-DSOTTO_SCENARIO=\"${EXAMPLES}/what_if.toml\"" -Wl,-rpath,${WORK}/prefix/lib)
  run(${WORK}/what_if_with_pkg_config)
endif()
