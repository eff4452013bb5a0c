# sotto_add_library(FOLDER [PUBLIC lib…] [PRIVATE lib…] [BUILD_ONLY lib…]
#                   [PARTS dir…] [SUBDIRS dir…] [EXPORT set])
#
# One target a folder, named after it (sites/core is sotto::sites_core): every FOLDER/*.cc is
# compiled, every FOLDER/*.h is a public header, included as <sotto/FOLDER/name.h> in the tree and
# after installation alike (a link in the build tree makes the folder visible under that name).
# PARTS are sub-folders of which the same holds. SUBDIRS adds a backend's private sources.
# BUILD_ONLY names header-only libraries that users of the installed package do not need. EXPORT:
# the targets that it is installed among, by default sottoTargets.
file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/include/sotto)
set(CMAKE_VERIFY_INTERFACE_HEADER_SETS ON)

# sotto_compile_together(target): with SOTTO_UNITY, batches of its sources are compiled as one. Most
# of the time of a file goes into headers, which a batch reads once.
function(sotto_compile_together target)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${SOTTO_UNITY} UNITY_BUILD_BATCH_SIZE 16)
endfunction()

# sotto_optimize_less(target): for what leaves all work to the libraries. CLI11 takes more than ten
# seconds a file to optimize in full.
function(sotto_optimize_less target)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1>)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # At -O1, GCC 12 takes a short string's own memory for all that a string has.
    target_compile_options(${target} PRIVATE -Wno-array-bounds -Wno-stringop-overflow)
  endif()
endfunction()

# sotto_optimize_nothing(target): for tests of programs. Optimizing assertions takes as long as all
# the rest of compiling them.
function(sotto_optimize_nothing target)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O0>)
endfunction()

function(sotto_add_library folder)
  cmake_parse_arguments(arg "" "EXPORT" "PUBLIC;PRIVATE;BUILD_ONLY;PARTS;SUBDIRS" ${ARGN})
  set(here ${PROJECT_SOURCE_DIR}/${folder})
  set(seen ${PROJECT_BINARY_DIR}/include/sotto/${folder})
  cmake_path(GET seen PARENT_PATH above)
  file(MAKE_DIRECTORY ${above})
  file(CREATE_LINK ${here} ${seen} SYMBOLIC)
  string(REPLACE / _ name ${folder})

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
  add_library(sotto_${name} ${sources})
  add_library(sotto::${name} ALIAS sotto_${name})
  sotto_compile_together(sotto_${name})
  # The shared library of bindings/c is linked from these very objects. Nobody replaces a function
  # of ours at run time, so that what is in one file may be inlined there as in a program.
  set_target_properties(sotto_${name} PROPERTIES EXPORT_NAME ${name} POSITION_INDEPENDENT_CODE ON)
  target_compile_options(sotto_${name} PRIVATE -fno-semantic-interposition)
  target_sources(sotto_${name} PUBLIC FILE_SET HEADERS BASE_DIRS ${PROJECT_BINARY_DIR}/include
                                        FILES ${headers})
  target_compile_features(sotto_${name} PUBLIC cxx_std_20)
  target_link_libraries(sotto_${name} PUBLIC ${arg_PUBLIC} PRIVATE ${arg_PRIVATE})
  foreach(library IN LISTS arg_BUILD_ONLY ITEMS sotto_flags)
    target_link_libraries(sotto_${name} PRIVATE $<BUILD_INTERFACE:${library}>)
  endforeach()
  if(NOT arg_EXPORT)
    set(arg_EXPORT sottoTargets)
  endif()
  install(TARGETS sotto_${name} EXPORT ${arg_EXPORT}
          ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
          FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
endfunction()
