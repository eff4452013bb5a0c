# sotto_add_library(FOLDER [PUBLIC lib…] [PRIVATE lib…] [BUILD_ONLY lib…] [PARTS dir…] [SUBDIRS dir…])
#
# One target a folder: every FOLDER/*.cc is compiled, every FOLDER/*.h is a public header, included as
# <sotto/FOLDER/name.h> in the tree and after installation alike (a link in the build tree makes the
# folder visible under that name). PARTS are sub-folders of which the same holds. SUBDIRS adds a
# backend's private sources. BUILD_ONLY names header-only libraries that users of the installed
# package do not need.
file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/include/sotto)
set(CMAKE_VERIFY_INTERFACE_HEADER_SETS ON)

function(sotto_add_library folder)
  cmake_parse_arguments(arg "" "" "PUBLIC;PRIVATE;BUILD_ONLY;PARTS;SUBDIRS" ${ARGN})
  set(here ${PROJECT_SOURCE_DIR}/${folder})
  set(seen ${PROJECT_BINARY_DIR}/include/sotto/${folder})
  file(CREATE_LINK ${here} ${seen} SYMBOLIC)

  file(GLOB sources CONFIGURE_DEPENDS ${here}/*.cc)
  foreach(dir IN LISTS arg_PARTS arg_SUBDIRS)
    file(GLOB more CONFIGURE_DEPENDS ${here}/${dir}/*.cc)
    list(APPEND sources ${more})
  endforeach()
  file(GLOB headers RELATIVE ${here} CONFIGURE_DEPENDS ${here}/*.h)
  foreach(dir IN LISTS arg_PARTS)
    file(GLOB more RELATIVE ${here} CONFIGURE_DEPENDS ${here}/${dir}/*.h)
    list(APPEND headers ${more})
  endforeach()
  list(TRANSFORM headers PREPEND ${seen}/)

  if(NOT sources)
    message(FATAL_ERROR "no sources in ${here}")
  endif()
  add_library(sotto_${folder} ${sources})
  add_library(sotto::${folder} ALIAS sotto_${folder})
  set_target_properties(sotto_${folder} PROPERTIES EXPORT_NAME ${folder})
  target_sources(sotto_${folder} PUBLIC FILE_SET HEADERS BASE_DIRS ${PROJECT_BINARY_DIR}/include
                                        FILES ${headers})
  target_compile_features(sotto_${folder} PUBLIC cxx_std_20)
  target_link_libraries(sotto_${folder} PUBLIC ${arg_PUBLIC} PRIVATE ${arg_PRIVATE})
  foreach(library IN LISTS arg_BUILD_ONLY ITEMS sotto_flags)
    target_link_libraries(sotto_${folder} PRIVATE $<BUILD_INTERFACE:${library}>)
  endforeach()
  install(TARGETS sotto_${folder} EXPORT sottoTargets
          ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
          FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
endfunction()
