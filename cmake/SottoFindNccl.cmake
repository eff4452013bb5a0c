# Makes the target sotto_nccl where NCCL 2.18 or later is found: below SOTTO_NCCL_HINT, beside the
# CUDA toolkit, or where the system looks. Requires CUDAToolkit. Used by sotto's build and by its
# installed package. Python's packages have the library under its run-time name alone.
find_path(SOTTO_NCCL_INCLUDE_DIR nccl.h HINTS ${SOTTO_NCCL_HINT}/include ${CUDAToolkit_INCLUDE_DIRS}
          PATHS ${CUDAToolkit_LIBRARY_ROOT}/include)
find_library(SOTTO_NCCL_LIBRARY NAMES nccl libnccl.so.2
             HINTS ${SOTTO_NCCL_HINT}/lib ${CUDAToolkit_LIBRARY_DIR}
             PATHS ${CUDAToolkit_LIBRARY_ROOT}/lib)
mark_as_advanced(SOTTO_NCCL_INCLUDE_DIR SOTTO_NCCL_LIBRARY)
if(SOTTO_NCCL_INCLUDE_DIR AND SOTTO_NCCL_LIBRARY AND NOT TARGET sotto_nccl)
  file(STRINGS ${SOTTO_NCCL_INCLUDE_DIR}/nccl.h _sotto_nccl_version
       REGEX "^#define NCCL_(MAJOR|MINOR) +[0-9]+")
  string(REGEX MATCHALL "[0-9]+" _sotto_nccl_version "${_sotto_nccl_version}")
  list(JOIN _sotto_nccl_version "." _sotto_nccl_version)
  # Since then a communicator that does not block can be finalized.
  if(_sotto_nccl_version VERSION_GREATER_EQUAL 2.18)
    add_library(sotto_nccl INTERFACE IMPORTED GLOBAL)
    target_include_directories(sotto_nccl SYSTEM INTERFACE ${SOTTO_NCCL_INCLUDE_DIR})
    target_link_libraries(sotto_nccl INTERFACE ${SOTTO_NCCL_LIBRARY})
  endif()
endif()
