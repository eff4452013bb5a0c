# Installation: the libraries and headers, a CMake package with components, and pkg-config files.
include(CMakePackageConfigHelpers)

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
