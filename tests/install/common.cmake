# What the tests of an installation share.

function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE code OUTPUT_VARIABLE out ERROR_VARIABLE out)
  if(NOT code EQUAL 0)
    message(FATAL_ERROR "failed (${code}): ${ARGN}\n${out}")
  endif()
  message(STATUS "${out}")
endfunction()

# Installs the build into ${WORK}/prefix, which is made anew.
function(install_build)
  file(REMOVE_RECURSE ${WORK})
  run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/prefix)
endfunction()

# Sets ${variable} to what pkg-config says of a module installed there.
function(pkg_config variable module)
  file(GLOB_RECURSE pc ${WORK}/prefix/*/${module}.pc)
  cmake_path(GET pc PARENT_PATH pc_dir)
  execute_process(
    COMMAND ${CMAKE_COMMAND} -E env PKG_CONFIG_PATH=${pc_dir} pkg-config --cflags --libs ${module}
    OUTPUT_VARIABLE flags COMMAND_ERROR_IS_FATAL ANY OUTPUT_STRIP_TRAILING_WHITESPACE)
  separate_arguments(flags)
  set(${variable} ${flags} PARENT_SCOPE)
endfunction()

# Ends the script with SKIPPED unless Python has a module; a macro, so that return() does.
macro(need_python_module module debian)
  execute_process(COMMAND ${PYTHON} -c "import ${module}" RESULT_VARIABLE missing OUTPUT_QUIET
                  ERROR_QUIET)
  if(NOT missing EQUAL 0)
    message("SKIPPED: ${debian} is not installed")
    return()
  endif()
endmacro()

# The same for a program.
macro(need_program variable name debian)
  find_program(${variable} ${name})
  if(NOT ${variable})
    message("SKIPPED: ${name} (${debian}) is not installed")
    return()
  endif()
endmacro()
