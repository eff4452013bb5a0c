# The table of libraries of others that the libraries of sotto::sotto use where they are found.
# Options, the search, the summary, pkg-config files, the installed package and the Debian package
# read it.
#
# sotto_external(NAME LABEL label DEBIAN package… OPTION text PRESENT text ABSENT text
#                [HEADER path] MODULE module | LIBRARY library)
# It is found as pkg-config's MODULE (target PkgConfig::NAME) or, with HEADER, as a LIBRARY that the
# linker knows (target sotto_NAME in small letters). HEADER must be there in any case. The option
# SOTTO_WITH_NAME, with this text, switches it off, and SOTTO_HAVE_NAME says whether it is used.
# PRESENT is what it brings, ABSENT what its absence costs. find_package has a component of its name
# in small letters.
#
# This file reads nothing, so that it can be included anywhere.
set(SOTTO_EXTERNALS)
function(sotto_external name)
  set(keys LABEL OPTION PRESENT ABSENT HEADER MODULE LIBRARY)
  cmake_parse_arguments(arg "" "${keys}" "DEBIAN" ${ARGN})
  foreach(key IN LISTS keys ITEMS DEBIAN)
    set(SOTTO_EXTERNAL_${name}_${key} "${arg_${key}}" PARENT_SCOPE)
  endforeach()
  string(TOLOWER ${name} component)
  set(SOTTO_EXTERNAL_${name}_COMPONENT ${component} PARENT_SCOPE)
  set(SOTTO_EXTERNALS ${SOTTO_EXTERNALS} ${name} PARENT_SCOPE)
endfunction()

sotto_external(HIGHWAY MODULE libhwy DEBIAN libhwy-dev LABEL "Highway"
  OPTION "SIMD kernels through Google Highway" PRESENT "SIMD kernels, chosen at run time"
  ABSENT "plain loops only: codecs several times slower")
# Debian's GlooConfig.cmake names build paths, so the library is looked up directly.
sotto_external(GLOO LIBRARY gloo HEADER gloo/transport/unbound_buffer.h DEBIAN libgloo-dev LABEL "Gloo"
  OPTION "The Gloo transport" PRESENT "--transport gloo" ABSENT "no --transport gloo")
sotto_external(ZMQ MODULE libzmq HEADER zmq.hpp DEBIAN libzmq3-dev cppzmq-dev LABEL "ZeroMQ"
  OPTION "The ZeroMQ transport and the TCP rendezvous" PRESENT "--transport zmq, tcp:// rendezvous"
  ABSENT "no --transport zmq, no tcp:// rendezvous")
sotto_external(REDIS MODULE hiredis DEBIAN libhiredis-dev LABEL "hiredis"
  OPTION "Rendezvous through a Redis server" PRESENT "redis:// rendezvous"
  ABSENT "no redis:// rendezvous")

# sotto_used_externals(KEY VARIABLE): the names of those that are used and have this key.
function(sotto_used_externals key variable)
  set(used)
  foreach(name IN LISTS SOTTO_EXTERNALS)
    if(SOTTO_HAVE_${name} AND SOTTO_EXTERNAL_${name}_${key})
      list(APPEND used ${name})
    endif()
  endforeach()
  set(${variable} "${used}" PARENT_SCOPE)
endfunction()
