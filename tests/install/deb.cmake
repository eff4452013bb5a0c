# Packs a Debian package, unpacks it without installing it, and runs what is in it.
include(${CMAKE_CURRENT_LIST_DIR}/common.cmake)

need_program(DPKG_DEB dpkg-deb dpkg)
need_program(SHLIBDEPS dpkg-shlibdeps dpkg-dev)
file(REMOVE_RECURSE ${WORK})
file(MAKE_DIRECTORY ${WORK})
run(${CPACK} --config ${BUILD}/CPackConfig.cmake -B ${WORK})
file(GLOB package ${WORK}/sotto_${VERSION}_*.deb)
run(${DPKG_DEB} -x ${package} ${WORK}/root)

execute_process(COMMAND ${DPKG_DEB} -f ${package} Depends OUTPUT_VARIABLE depends
                COMMAND_ERROR_IS_FATAL ANY)
message(STATUS "Depends: ${depends}")
if(NOT depends MATCHES "libc6" OR NOT depends MATCHES "libsodium")
  message(FATAL_ERROR "the package lacks dependencies: ${depends}")
endif()
foreach(file IN ITEMS bin/sotto include/sotto.h lib/libsotto.so.0 lib/pkgconfig/sotto-c.pc
                      share/man/man1/sotto-train.1 share/bash-completion/completions/sotto
                      share/doc/sotto/LICENSE)
  if(NOT EXISTS ${WORK}/root/usr/${file})
    message(FATAL_ERROR "the package lacks /usr/${file}")
  endif()
endforeach()

set(env ${CMAKE_COMMAND} -E env --unset=SOTTO_LIBRARY PYTHONDONTWRITEBYTECODE=1
        PYTHONPATH=${WORK}/root/usr/lib/python3/dist-packages)
run(${env} ${WORK}/root/usr/bin/sotto train --rounds 5 --nodes 2 --quiet)
execute_process(COMMAND ${PYTHON} -c "import numpy" RESULT_VARIABLE missing OUTPUT_QUIET ERROR_QUIET)
if(missing EQUAL 0)
  run(${env} ${PYTHON} ${SOURCE}/python/main.py ${WORK}/root)
endif()
