# The pkg-config files. A static library passes on what it needs, a shared one has it inside, so that
# the same needs stand in a field or in its `.private` twin. Each key stands once in a file: pkg-config
# 0.29 refuses a second one, and pkgconf lets one of the two win.
#
# It reads nothing but variables, so that a test can write the files of every kind of build.
include(${CMAKE_CURRENT_LIST_DIR}/SottoExternals.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/SottoLibraries.cmake)
set(SOTTO_PC_TEMPLATE ${CMAKE_CURRENT_LIST_DIR}/module.pc.in)

# Sets ${variable} to the lines of a field: `passed_on` is for every user, `needed` for users of the
# static library. A line without a value is left out.
function(sotto_pc_field variable field passed_on needed)
  if(BUILD_SHARED_LIBS)
    set(private "${needed}")
  else()
    list(APPEND passed_on ${needed})
    set(private)
  endif()
  set(lines)
  if(passed_on)
    list(JOIN passed_on " " values)
    list(APPEND lines "${field}: ${values}")
  endif()
  if(private)
    list(JOIN private " " values)
    list(APPEND lines "${field}.private: ${values}")
  endif()
  list(JOIN lines "\n" lines)
  set(${variable} "${lines}" PARENT_SCOPE)
endfunction()

# Writes the .pc file of a module into a directory, with these fields, and appends its path to
# ${files}.
function(sotto_write_module files directory module description)
  # Found from where the file lies, so that `cmake --install --prefix` and moved trees work.
  file(RELATIVE_PATH SOTTO_PC_TO_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
  string(REGEX REPLACE "/$" "" SOTTO_PC_TO_PREFIX "${SOTTO_PC_TO_PREFIX}")
  list(JOIN ARGN "\n" fields)
  configure_file(${SOTTO_PC_TEMPLATE} ${directory}/${module}.pc @ONLY)
  set(${files} ${${files}} ${directory}/${module}.pc PARENT_SCOPE)
endfunction()

# Writes the .pc files of this build's components into a directory, and sets ${files} to their
# paths.
function(sotto_write_pkgconfig files directory)
  set(requires fmt libsodium zlib)
  if(SOTTO_HAVE_XXHASH_DISPATCH)
    list(APPEND requires libxxhash)
  endif()
  sotto_used_externals(MODULE used)
  foreach(name IN LISTS used)
    list(APPEND requires ${SOTTO_EXTERNAL_${name}_MODULE})
  endforeach()
  set(needed_libs)
  sotto_used_externals(LIBRARY used)
  foreach(name IN LISTS used)
    list(APPEND needed_libs -l${SOTTO_EXTERNAL_${name}_LIBRARY})
  endforeach()
  if(SOTTO_HAVE_NCCL)
    list(APPEND needed_libs ${SOTTO_NCCL_LIBRARY})
  endif()
  if(SOTTO_HAVE_CUDA)
    list(APPEND needed_libs -L${CUDAToolkit_LIBRARY_DIR} -lcudart_static -ldl -lrt)
  endif()
  list(APPEND needed_libs -lpthread)
  sotto_pc_field(requires Requires "" "${requires}")
  set(libs "-L\${libdir}")
  set(libraries ${SOTTO_LIBRARIES})
  list(REVERSE libraries)  # each before those that it needs
  foreach(library IN LISTS libraries)
    list(APPEND libs -lsotto_${library})
  endforeach()
  sotto_pc_field(libs Libs "${libs}" "${needed_libs}")
  set(includes "Cflags: -I\${includedir}")
  set(written)
  sotto_write_module(written ${directory} sotto "${PROJECT_DESCRIPTION}"
                     "${requires}" "${includes}" "${libs}")

  if(SOTTO_HAVE_OBSERVE)
    set(needed cpp-httplib)
    if(SOTTO_HAVE_ISAL)
      list(APPEND needed libisal)
    endif()
    sotto_pc_field(requires Requires sotto "${needed}")
    sotto_write_module(written ${directory} sotto-observe
                       "${PROJECT_DESCRIPTION}: a run's figures for dashboards"
                       "${requires}" "Libs: -L\${libdir} -lsotto_observe")
  endif()
  if(SOTTO_HAVE_STUDY)
    sotto_pc_field(requires Requires sotto tomlplusplus)
    sotto_write_module(written ${directory} sotto-study
                       "${PROJECT_DESCRIPTION}: scenarios that are simulated and planned"
                       "${requires}" "Libs: -L\${libdir} -lsotto_study")
  endif()
  if(SOTTO_BUILD_BINDINGS)
    sotto_write_module(written ${directory} sotto-c "${PROJECT_DESCRIPTION}: the C library"
                       "${includes}" "Libs: -L\${libdir} -lsotto")
  endif()
  set(${files} ${written} PARENT_SCOPE)
endfunction()
