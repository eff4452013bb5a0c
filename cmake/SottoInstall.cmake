# Installation: the libraries and headers, a CMake package with components, and a pkg-config file.
include(CMakePackageConfigHelpers)

add_library(sotto INTERFACE)
add_library(sotto::sotto ALIAS sotto)
target_link_libraries(sotto INTERFACE sotto::trainers sotto::sim)
install(TARGETS sotto EXPORT sottoTargets)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/sotto)
install(EXPORT sottoTargets NAMESPACE sotto:: DESTINATION ${package_dir})
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/sottoConfig.cmake.in
                              ${PROJECT_BINARY_DIR}/sottoConfig.cmake
                              INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/sottoConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/sottoConfig.cmake ${PROJECT_BINARY_DIR}/sottoConfigVersion.cmake
        DESTINATION ${package_dir})

# pkg-config: a static library passes on what it needs, a shared one has it inside.
set(requires fmt libsodium zlib)
set(extra_libs -lpthread)
if(SOTTO_HAVE_HIGHWAY)
  list(APPEND requires libhwy)
endif()
if(SOTTO_HAVE_ZMQ)
  list(APPEND requires libzmq)
endif()
if(SOTTO_HAVE_REDIS)
  list(APPEND requires hiredis)
endif()
if(SOTTO_HAVE_GLOO)
  list(APPEND extra_libs -lgloo)
endif()
list(JOIN requires " " SOTTO_PC_REQUIRES)
list(JOIN extra_libs " " SOTTO_PC_LIBS)
if(BUILD_SHARED_LIBS)
  set(SOTTO_PC_PRIVATE ".private")
else()
  set(SOTTO_PC_PRIVATE "")
endif()
# Found from where the file lies, so that `cmake --install --prefix` and moved trees work.
file(RELATIVE_PATH SOTTO_PC_TO_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" SOTTO_PC_TO_PREFIX "${SOTTO_PC_TO_PREFIX}")
configure_file(${PROJECT_SOURCE_DIR}/cmake/sotto.pc.in ${PROJECT_BINARY_DIR}/sotto.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/sotto.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
