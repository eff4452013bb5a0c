# Installation: the libraries and headers, a CMake package with components, and pkg-config files.
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/sotto)
install(EXPORT sottoTargets NAMESPACE sotto:: DESTINATION ${package_dir})
# Others apart, for hosts that lack what they need.
set(SOTTO_COMPONENTS_FOUND)
foreach(component IN LISTS SOTTO_COMPONENTS)
  string(REPLACE "=" ";" component ${component})
  list(GET component 0 name)
  list(GET component 1 condition)
  if(${condition})
    string(SUBSTRING ${name} 0 1 first)
    string(SUBSTRING ${name} 1 -1 rest)
    string(TOUPPER ${first} first)
    install(EXPORT sotto${first}${rest}Targets NAMESPACE sotto:: DESTINATION ${package_dir})
  endif()
  string(APPEND SOTTO_COMPONENTS_FOUND "set(sotto_${name}_FOUND ${${condition}})\n")
endforeach()
set(SOTTO_EXTERNALS_NEEDED)
foreach(name IN LISTS SOTTO_EXTERNALS)
  set(component ${SOTTO_EXTERNAL_${name}_COMPONENT})
  string(APPEND SOTTO_COMPONENTS_FOUND "set(sotto_${component}_FOUND ${SOTTO_HAVE_${name}})\n")
  if(SOTTO_HAVE_${name} AND SOTTO_EXTERNAL_${name}_MODULE)
    string(APPEND SOTTO_EXTERNALS_NEEDED "  _sotto_need_module(${name} ${SOTTO_EXTERNAL_${name}_MODULE})\n")
  elseif(SOTTO_HAVE_${name})
    string(APPEND SOTTO_EXTERNALS_NEEDED
           "  _sotto_need_library(sotto_${component} SOTTO_${name}_LIBRARY ${SOTTO_EXTERNAL_${name}_LIBRARY})\n")
  endif()
endforeach()
string(APPEND SOTTO_COMPONENTS_FOUND "set(sotto_nccl_FOUND ${SOTTO_HAVE_NCCL})")
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
  install(FILES ${PROJECT_SOURCE_DIR}/cmake/SottoFindTorch.cmake DESTINATION ${package_dir})
endif()

include(SottoPkgConfig)
sotto_write_pkgconfig(pc_files ${PROJECT_BINARY_DIR})
install(FILES ${pc_files} DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
