# Makes the target sotto_libtorch where libtorch is found. Debian's TorchConfig.cmake asks for all that
# Caffe2 was built with, so that the library is looked up directly; a libtorch elsewhere is found through
# CMAKE_PREFIX_PATH. Used by sotto's build and by its installed package.
find_path(SOTTO_TORCH_API_DIR torch/torch.h PATH_SUFFIXES torch/csrc/api/include)
find_path(SOTTO_TORCH_INCLUDE_DIR torch/csrc/Export.h)
find_library(SOTTO_TORCH_LIBRARY torch)
find_library(SOTTO_TORCH_CPU_LIBRARY torch_cpu)
find_library(SOTTO_TORCH_C10_LIBRARY c10)
mark_as_advanced(SOTTO_TORCH_API_DIR SOTTO_TORCH_INCLUDE_DIR SOTTO_TORCH_LIBRARY
                 SOTTO_TORCH_CPU_LIBRARY SOTTO_TORCH_C10_LIBRARY)
if(SOTTO_TORCH_API_DIR AND SOTTO_TORCH_INCLUDE_DIR AND SOTTO_TORCH_LIBRARY
   AND SOTTO_TORCH_CPU_LIBRARY AND SOTTO_TORCH_C10_LIBRARY AND NOT TARGET sotto_libtorch)
  add_library(sotto_libtorch INTERFACE IMPORTED GLOBAL)
  target_include_directories(sotto_libtorch SYSTEM INTERFACE ${SOTTO_TORCH_INCLUDE_DIR}
                                                             ${SOTTO_TORCH_API_DIR})
  target_link_libraries(sotto_libtorch INTERFACE ${SOTTO_TORCH_LIBRARY} ${SOTTO_TORCH_CPU_LIBRARY}
                                                 ${SOTTO_TORCH_C10_LIBRARY})
endif()
