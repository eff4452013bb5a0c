# The CUDA toolkit, and how targets of it are built: docs/gpu.md. Sets SOTTO_HAVE_CUDA, and
# SOTTO_HAVE_NCCL where NCCL lies in the toolkit or where the system looks; then sotto_nccl is NCCL.
#
# nvcc is taken from PATH, CUDACXX or /usr/local/cuda. It brings its own headers and the runtime,
# which is linked statically, so that a program needs a driver only where it uses a device.
set(SOTTO_HAVE_CUDA OFF)

function(sotto_find_cuda)
  # The sanitizers' flags and Clang's are not nvcc's.
  if(NOT SOTTO_WITH_CUDA OR SOTTO_SANITIZE OR NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    return()
  endif()
  if(NOT CMAKE_CUDA_COMPILER AND NOT DEFINED ENV{CUDACXX})
    find_program(SOTTO_NVCC nvcc PATHS ENV CUDA_PATH /usr/local/cuda PATH_SUFFIXES bin)
    if(NOT SOTTO_NVCC)
      return()
    endif()
    set(ENV{CUDACXX} ${SOTTO_NVCC})
  endif()
  if(NOT DEFINED ENV{CUDAHOSTCXX})
    set(ENV{CUDAHOSTCXX} ${CMAKE_CXX_COMPILER})
  endif()
  include(CheckLanguage)
  check_language(CUDA)  # that it works, before it is enabled
  if(CMAKE_CUDA_COMPILER)
    set(SOTTO_HAVE_CUDA ON PARENT_SCOPE)
  endif()
endfunction()

sotto_find_cuda()
if(SOTTO_HAVE_CUDA)
  # Machine code for Ampere and Hopper, and for what comes later an intermediate form.
  if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
    set(CMAKE_CUDA_ARCHITECTURES "80-real;90" CACHE STRING "GPU architectures")
  endif()
  enable_language(CUDA)
  if(CMAKE_CUDA_COMPILER_VERSION VERSION_LESS 12)
    set(SOTTO_HAVE_CUDA OFF)  # no C++20
  endif()
endif()

set(SOTTO_HAVE_NCCL OFF)
if(SOTTO_HAVE_CUDA)
  find_package(CUDAToolkit REQUIRED)  # the runtime, for sources that are no device code
  include(SottoFindNccl)
  if(TARGET sotto_nccl)
    set(SOTTO_HAVE_NCCL ON)
  endif()
endif()

# sotto_cuda_flags(target): what every file of device code is compiled with.
function(sotto_cuda_flags target)
  set_target_properties(${target} PROPERTIES CUDA_RUNTIME_LIBRARY Static
                                             POSITION_INDEPENDENT_CODE ON)
  # Results are those of the reference: nothing fused, divisions and roots rounded, subnormal
  # numbers kept. Constant expressions of the host are the device's too. The standard stands here
  # because CMake 3.25 does not know that nvcc has it.
  set(flags -std=c++20 -fmad=false -prec-div=true -prec-sqrt=true -ftz=false
            -Xcompiler=-ffp-contract=off --expt-relaxed-constexpr -diag-suppress=186
            -Xptxas=-warn-spills -Xptxas=-warn-lmem-usage)
  if(SOTTO_WERROR)
    list(APPEND flags -Xptxas=-Werror)  # no kernel spills registers or uses local memory
  endif()
  target_compile_options(${target} PRIVATE "$<$<COMPILE_LANGUAGE:CUDA>:${flags}>")
endfunction()

# sotto_add_cuda_library(FOLDER LINK lib… HEADERS name… SOURCES name…): FOLDER/cuda/*.cu, and of
# plain C++ FOLDER/cuda/name… → sotto::FOLDER_cuda, with the headers of FOLDER/cuda that users
# include. Libraries of their own, so that nobody who uses no device carries device code.
function(sotto_add_cuda_library folder)
  cmake_parse_arguments(arg "" "" "LINK;HEADERS;SOURCES" ${ARGN})
  set(target sotto_${folder}_cuda)
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/cuda/*.cu)
  list(TRANSFORM arg_HEADERS PREPEND ${PROJECT_BINARY_DIR}/include/sotto/${folder}/cuda/)
  list(TRANSFORM arg_SOURCES PREPEND ${PROJECT_SOURCE_DIR}/${folder}/cuda/)
  add_library(${target} STATIC ${sources} ${arg_SOURCES})
  add_library(sotto::${folder}_cuda ALIAS ${target})
  sotto_cuda_flags(${target})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${folder}_cuda)
  target_sources(${target} PUBLIC FILE_SET HEADERS BASE_DIRS ${PROJECT_BINARY_DIR}/include
                                  FILES ${arg_HEADERS})
  target_link_libraries(${target} PUBLIC ${arg_LINK})
  target_compile_options(${target} PRIVATE
    "$<$<COMPILE_LANGUAGE:CXX>:$<TARGET_PROPERTY:sotto_flags,INTERFACE_COMPILE_OPTIONS>>")
  target_compile_definitions(${target} INTERFACE SOTTO_HAVE_CUDA)
  install(TARGETS ${target} EXPORT sottoCudaTargets
          ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
          FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
endfunction()
