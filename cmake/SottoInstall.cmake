# Installation: the libraries and headers, a CMake package with components, pkg-config files, and a
# Debian package of all of it.
include(CMakePackageConfigHelpers)

add_library(sotto INTERFACE)
add_library(sotto::sotto ALIAS sotto)
list(TRANSFORM SOTTO_LIBRARIES PREPEND sotto:: OUTPUT_VARIABLE targets)
list(REVERSE targets)  # each before those that it needs
target_link_libraries(sotto INTERFACE ${targets})
# <sotto/sotto.h>: all their public headers.
set(includes)
foreach(library IN LISTS SOTTO_LIBRARIES)
  get_target_property(headers sotto_${library} HEADER_SET)
  list(APPEND includes ${headers})
endforeach()
list(TRANSFORM includes REPLACE "^${PROJECT_BINARY_DIR}/include/(.*)$" "#include <\\1>")
list(SORT includes)
list(JOIN includes "\n" SOTTO_INCLUDES)
set(umbrella ${PROJECT_BINARY_DIR}/include/sotto/sotto.h)
configure_file(${PROJECT_SOURCE_DIR}/cmake/sotto.h.in ${umbrella} @ONLY)
target_sources(sotto INTERFACE FILE_SET HEADERS BASE_DIRS ${PROJECT_BINARY_DIR}/include
                                                FILES ${umbrella})
install(TARGETS sotto EXPORT sottoTargets FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/sotto)
install(EXPORT sottoTargets NAMESPACE sotto:: DESTINATION ${package_dir})
if(SOTTO_BUILD_BINDINGS)
  # Apart, for hosts that lack what the C++ libraries are built on.
  install(EXPORT sottoCTargets NAMESPACE sotto:: DESTINATION ${package_dir})
endif()
if(SOTTO_HAVE_OBSERVE)
  install(EXPORT sottoObserveTargets NAMESPACE sotto:: DESTINATION ${package_dir})
endif()
if(SOTTO_HAVE_STUDY)
  # Apart, for hosts that lack what reads scenarios.
  install(EXPORT sottoStudyTargets NAMESPACE sotto:: DESTINATION ${package_dir})
endif()
if(SOTTO_HAVE_CUDA)
  install(EXPORT sottoCudaTargets NAMESPACE sotto:: DESTINATION ${package_dir})
endif()
# What a static library's users link; a shared one has it with it.
set(SOTTO_OBSERVE_MODULES)
if(NOT BUILD_SHARED_LIBS)
  set(SOTTO_OBSERVE_MODULES "HTTPLIB=cpp-httplib")
  if(SOTTO_HAVE_ISAL)
    string(APPEND SOTTO_OBSERVE_MODULES " ISAL=libisal")
  endif()
endif()
list(JOIN SOTTO_LIBRARIES ", " SOTTO_LIBRARIES_TEXT)
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/sottoConfig.cmake.in
                              ${PROJECT_BINARY_DIR}/sottoConfig.cmake
                              INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/sottoConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/sottoConfig.cmake ${PROJECT_BINARY_DIR}/sottoConfigVersion.cmake
        DESTINATION ${package_dir})

if(SOTTO_HAVE_NCCL)
  install(FILES ${PROJECT_SOURCE_DIR}/cmake/SottoFindNccl.cmake DESTINATION ${package_dir})
endif()
if(TARGET sotto_torch)
  # Its targets apart, for hosts that have the package but not libtorch.
  install(EXPORT sottoTorchTargets NAMESPACE sotto:: DESTINATION ${package_dir})
  install(FILES ${PROJECT_SOURCE_DIR}/cmake/SottoFindTorch.cmake DESTINATION ${package_dir})
endif()

include(SottoPkgConfig)
sotto_write_pkgconfig(pc_files ${PROJECT_BINARY_DIR})
install(FILES ${pc_files} DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})

# `cpack --config build/CPackConfig.cmake`: one package, as program, libraries and headers are of
# one version and of no use to each other in different ones.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME sotto)
set(CPACK_PACKAGE_CONTACT "the sotto authors")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${PROJECT_BINARY_DIR}/lib)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "python3-numpy, libtorch-dev, libfmt-dev, libsodium-dev, zlib1g-dev, libhwy-dev, \
libzmq3-dev, libgloo-dev, libhiredis-dev, libcpp-httplib-dev, libisal-dev, libxxhash-dev, \
libtomlplusplus-dev")
include(CPack)
