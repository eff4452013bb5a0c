# Whether sotto::torch can be built with the libtorch that SottoFindTorch has found: what it asks of
# one is compiled and linked, which takes some seconds and is done once for each libtorch. Otherwise
# SOTTO_TORCH_PROBLEM says why.

# Sets `variable` to what is wrong, in a line, in the output of a compiler and linker that failed.
function(_sotto_torch_reason variable output)
  if(output MATCHES "undefined reference to [^\n]*__cxx11")
    set(${variable} "it was built with the old ABI of C++'s strings (_GLIBCXX_USE_CXX11_ABI=0), as PyPI's wheels \
before 2.7 are: take a later one" PARENT_SCOPE)
  elseif(output MATCHES "[^\n]*(error: |undefined reference to )[^\n]*")
    string(STRIP "${CMAKE_MATCH_0}" reason)
    set(${variable} "what sotto::torch asks of it does not compile: ${reason}" PARENT_SCOPE)
  else()
    string(STRIP "${output}" output)
    set(${variable} "what sotto::torch asks of it does not compile: ${output}" PARENT_SCOPE)
  endif()
endfunction()

function(sotto_check_torch)
  cmake_path(GET CMAKE_CURRENT_FUNCTION_LIST_DIR PARENT_PATH root)
  file(TIMESTAMP ${SOTTO_TORCH_PREFIX}/include/torch/csrc/Export.h written)
  set(checked "${SOTTO_TORCH_PREFIX} ${SOTTO_TORCH_VERSION} ${written}")
  if(NOT SOTTO_TORCH_CHECKED STREQUAL checked)
    try_compile(compiles SOURCES ${root}/cmake/torch_requirements.cc
                                 ${root}/trainers/torch/backward_hooks.cc
                CMAKE_FLAGS -DINCLUDE_DIRECTORIES=${root}
                LINK_LIBRARIES sotto_libtorch CXX_STANDARD 20 CXX_STANDARD_REQUIRED ON
                OUTPUT_VARIABLE output NO_CACHE)
    set(reason)
    if(NOT compiles)
      _sotto_torch_reason(reason "${output}")
    endif()
    set(SOTTO_TORCH_CHECKED "${checked}" CACHE INTERNAL "The libtorch that was tried")
    set(SOTTO_TORCH_CHECK_FAILED "${reason}" CACHE INTERNAL "What is wrong with it")
  endif()
  if(SOTTO_TORCH_CHECK_FAILED)
    set(SOTTO_TORCH_PROBLEM "libtorch ${SOTTO_TORCH_VERSION} in ${SOTTO_TORCH_PREFIX} is of no use: \
${SOTTO_TORCH_CHECK_FAILED}" PARENT_SCOPE)
  endif()
endfunction()

if(TARGET sotto_libtorch)
  sotto_check_torch()
endif()
