# Builds and runs tests/install/c/main.c against an installation, once through find_package and once
# through pkg-config.
include(${CMAKE_CURRENT_LIST_DIR}/common.cmake)

install_build()
# As on a host that has nothing of what the C++ libraries are built on.
set(without)
foreach(package IN ITEMS fmt ZLIB PkgConfig Threads)
  list(APPEND without -DCMAKE_DISABLE_FIND_PACKAGE_${package}=ON)
endforeach()
run(${CMAKE_COMMAND} -S ${SOURCE}/c -B ${WORK}/build -DCMAKE_PREFIX_PATH=${WORK}/prefix
    -DCMAKE_C_COMPILER=${CC} -DCMAKE_BUILD_TYPE=Debug ${without})
run(${CMAKE_COMMAND} --build ${WORK}/build)
run(${WORK}/build/uses_sotto)

pkg_config(flags sotto-c)
run(${CC} -std=c99 -Wall -Wextra -pedantic -Werror ${SOURCE}/c/main.c -o ${WORK}/with_pkg_config
    ${flags} -Wl,-rpath,${WORK}/prefix/lib)
run(${WORK}/with_pkg_config)
