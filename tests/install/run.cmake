# Installs the build into a fresh prefix, then builds and runs tests/install against it, once through
# find_package and once through pkg-config.
#   cmake -DBUILD=… -DSOURCE=… -DWORK=… -DCXX=… -P run.cmake
function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE code OUTPUT_VARIABLE out ERROR_VARIABLE out)
  if(NOT code EQUAL 0)
    message(FATAL_ERROR "failed (${code}): ${ARGN}\n${out}")
  endif()
  message(STATUS "${out}")
endfunction()

file(REMOVE_RECURSE ${WORK})
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/prefix)
run(${CMAKE_COMMAND} -S ${SOURCE} -B ${WORK}/build -DCMAKE_PREFIX_PATH=${WORK}/prefix
    -DCMAKE_CXX_COMPILER=${CXX} -DCMAKE_BUILD_TYPE=Debug)
run(${CMAKE_COMMAND} --build ${WORK}/build)
run(${WORK}/build/uses_sotto)

file(GLOB_RECURSE pc ${WORK}/prefix/*/sotto.pc)
cmake_path(GET pc PARENT_PATH pc_dir)
execute_process(
  COMMAND ${CMAKE_COMMAND} -E env PKG_CONFIG_PATH=${pc_dir} pkg-config
          --cflags --libs sotto
  OUTPUT_VARIABLE flags COMMAND_ERROR_IS_FATAL ANY OUTPUT_STRIP_TRAILING_WHITESPACE)
separate_arguments(flags)
run(${CXX} -std=c++20 ${SOURCE}/main.cc -o ${WORK}/with_pkg_config ${flags}
    -Wl,-rpath,${WORK}/prefix/lib)
run(${WORK}/with_pkg_config)
