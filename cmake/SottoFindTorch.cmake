# Looks for libtorch and makes the target sotto_libtorch of it. Used by sotto's build and by its
# installed package. TorchConfig.cmake asks for all that libtorch was built with, CUDA's toolkit
# say, so that headers and libraries are looked up directly: below Torch_DIR or Torch_ROOT where one
# is set, else where find_path looks (CMAKE_PREFIX_PATH), below SOTTO_TORCH_HINT, and where the
# system has its libraries. Headers and libraries are of one prefix, so that no two versions are
# mixed. Nothing is kept in the cache but what takes time to find out: another libtorch is taken as
# soon as CMake is told of it.
#
# Sets SOTTO_TORCH_PREFIX and SOTTO_TORCH_VERSION where there is a libtorch; SOTTO_TORCH_PROBLEM
# says why there is no target; SOTTO_TORCH_NOTE, which may be empty, says what programs need where
# they run.

# The nearest folder that holds libtorch's headers: one of `folders`, or one above it. CMake's files
# of libtorch lie below the prefix, and torch.utils.cmake_prefix_path of Python names their folder.
function(_sotto_torch_prefix variable)
  foreach(folder IN LISTS ARGN)
    foreach(level RANGE 4)
      if(EXISTS ${folder}/include/torch/csrc/Export.h)
        set(${variable} ${folder} PARENT_SCOPE)
        return()
      endif()
      cmake_path(GET folder PARENT_PATH folder)
    endforeach()
  endforeach()
  set(${variable} "" PARENT_SCOPE)
endfunction()

# Sets SOTTO_TORCH_PREFIX, or SOTTO_TORCH_PROBLEM.
function(_sotto_find_torch_prefix)
  set(told)
  foreach(name IN ITEMS Torch_DIR Torch_ROOT)
    if(${name})
      list(APPEND told ${${name}})
    elseif(DEFINED ENV{${name}})
      list(APPEND told $ENV{${name}})
    endif()
  endforeach()
  if(told)
    _sotto_torch_prefix(prefix ${told})
    if(NOT prefix)
      set(SOTTO_TORCH_PROBLEM "no libtorch in ${told}, which Torch_DIR or Torch_ROOT names" PARENT_SCOPE)
    endif()
    set(SOTTO_TORCH_PREFIX "${prefix}" PARENT_SCOPE)
    return()
  endif()
  set(prefixes $ENV{CMAKE_PREFIX_PATH})
  string(REPLACE ":" ";" prefixes "${prefixes}")
  list(PREPEND prefixes ${CMAKE_PREFIX_PATH})
  list(FILTER prefixes INCLUDE REGEX "/share/cmake/?$")
  _sotto_torch_prefix(hint ${prefixes})
  find_path(include torch/csrc/Export.h HINTS ${hint}/include ${SOTTO_TORCH_HINT}/include NO_CACHE)
  if(include)
    string(REGEX REPLACE "/include/?$" "" prefix ${include})
    set(SOTTO_TORCH_PREFIX ${prefix} PARENT_SCOPE)
  else()
    set(SOTTO_TORCH_PREFIX "" PARENT_SCOPE)
    set(SOTTO_TORCH_PROBLEM "libtorch was not found" PARENT_SCOPE)
  endif()
endfunction()

# Sets `variable` to the version that the headers below a prefix state.
function(_sotto_torch_version variable include)
  set(version "")
  foreach(header IN ITEMS torch/headeronly/version.h torch/csrc/api/include/torch/version.h)
    if(EXISTS ${include}/${header} AND version STREQUAL "")
      file(STRINGS ${include}/${header} version REGEX "^#define TORCH_VERSION_(MAJOR|MINOR|PATCH) +[0-9]+")
      string(REGEX MATCHALL "[0-9]+" version "${version}")
      list(JOIN version "." version)
    endif()
  endforeach()
  set(${variable} "${version}" PARENT_SCOPE)
endfunction()

# Sets `variable` to whether a program that does nothing can be linked with libraries, and all that
# these need is found.
function(_sotto_torch_links variable)
  string(MD5 key "${ARGN}")
  if(NOT DEFINED SOTTO_TORCH_LINKS_${key})
    file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/CMakeFiles/sotto_torch_links.cc "int main() { return 0; }\n")
    try_compile(links SOURCES ${CMAKE_CURRENT_BINARY_DIR}/CMakeFiles/sotto_torch_links.cc
                LINK_OPTIONS -Wl,--no-as-needed,--fatal-warnings LINK_LIBRARIES ${ARGN} NO_CACHE)
    set(SOTTO_TORCH_LINKS_${key} ${links} CACHE INTERNAL "A program can be linked with ${ARGN}")
  endif()
  set(${variable} ${SOTTO_TORCH_LINKS_${key}} PARENT_SCOPE)
endfunction()

# Sets `variable` to what is linked of the libraries `torch`, `cpu` and `c10`, and SOTTO_TORCH_NOTE.
# Built with CUDA, libtorch.so needs all of CUDA's libraries, libtorch_cpu.so a few, and without
# them neither computes the less on the CPU.
function(_sotto_torch_libraries variable torch cpu c10)
  set(SOTTO_TORCH_NOTE "" PARENT_SCOPE)
  set(${variable} ${torch} ${cpu} ${c10} PARENT_SCOPE)
  if(NOT CMAKE_CXX_COMPILER_LOADED)
    return()
  endif()
  _sotto_torch_links(links ${torch} ${cpu} ${c10})
  if(links)
    return()
  endif()
  set(${variable} ${cpu} ${c10} PARENT_SCOPE)
  set(SOTTO_TORCH_NOTE "for the CPU alone, as CUDA's libraries were not found" PARENT_SCOPE)
  _sotto_torch_links(links ${cpu} ${c10})
  if(NOT links)
    set(${variable} ${cpu} ${c10} -Wl,--allow-shlib-undefined PARENT_SCOPE)
    set(SOTTO_TORCH_NOTE "programs start where the loader finds the libraries that `ldd ${cpu}` misses"
        PARENT_SCOPE)
  endif()
endfunction()

# Makes the target of what lies below SOTTO_TORCH_PREFIX, or sets SOTTO_TORCH_PROBLEM.
function(_sotto_add_libtorch)
  set(include ${SOTTO_TORCH_PREFIX}/include)
  set(api ${include}/torch/csrc/api/include)
  foreach(library IN ITEMS torch torch_cpu c10)
    find_library(${library} ${library} PATHS ${SOTTO_TORCH_PREFIX} NO_DEFAULT_PATH NO_CACHE
                 PATH_SUFFIXES lib lib64 lib/${CMAKE_LIBRARY_ARCHITECTURE})
    if(NOT ${library})
      set(SOTTO_TORCH_PROBLEM
          "there are headers of libtorch in ${include}, but no lib${library} beside them" PARENT_SCOPE)
      return()
    endif()
  endforeach()
  if(NOT EXISTS ${api}/torch/torch.h)
    set(SOTTO_TORCH_PROBLEM "the libtorch in ${SOTTO_TORCH_PREFIX} lacks its C++ headers" PARENT_SCOPE)
    return()
  endif()
  _sotto_torch_version(version ${include})
  _sotto_torch_libraries(libraries ${torch} ${torch_cpu} ${c10})
  add_library(sotto_libtorch INTERFACE IMPORTED GLOBAL)
  target_include_directories(sotto_libtorch SYSTEM INTERFACE ${include} ${api})
  target_link_libraries(sotto_libtorch INTERFACE ${libraries})
  if(EXISTS ${include}/fmt)
    # Who includes fmt finds libtorch's, of which there is no library to link.
    target_compile_definitions(sotto_libtorch INTERFACE FMT_HEADER_ONLY)
  endif()
  if(SOTTO_GLOO_LIBRARY)
    # PyTorch's libtorch_cpu has a Gloo of another version inside, whose functions the loader must
    # not take for those of sotto's: the library that is linked first is asked first, and options
    # stand before all libraries.
    target_link_options(sotto_libtorch INTERFACE
      LINKER:--push-state,--no-as-needed,${SOTTO_GLOO_LIBRARY},--pop-state)
  endif()
  set_target_properties(sotto_libtorch PROPERTIES SOTTO_TORCH_PREFIX "${SOTTO_TORCH_PREFIX}"
    SOTTO_TORCH_VERSION "${version}" SOTTO_TORCH_NOTE "${SOTTO_TORCH_NOTE}")
endfunction()

set(SOTTO_TORCH_PROBLEM "")
if(NOT TARGET sotto_libtorch)
  _sotto_find_torch_prefix()
  if(SOTTO_TORCH_PREFIX)
    _sotto_add_libtorch()
  endif()
endif()
if(TARGET sotto_libtorch)  # perhaps made in another folder of the project
  foreach(fact IN ITEMS SOTTO_TORCH_PREFIX SOTTO_TORCH_VERSION SOTTO_TORCH_NOTE)
    get_target_property(${fact} sotto_libtorch ${fact})
  endforeach()
endif()
