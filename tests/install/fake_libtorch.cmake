# fake_libtorch(DIR VERSION): the files by which a libtorch is found, below DIR. As in PyTorch's wheels, libtorch.so
# needs CUDA's libraries, which are nowhere, and libtorch_cpu.so calls two functions of them.
function(fake_libtorch dir version)
  string(REPLACE "." ";" parts ${version})
  list(GET parts 0 major)
  list(GET parts 1 minor)
  list(GET parts 2 patch)
  set(include ${dir}/include/torch)
  file(WRITE ${include}/csrc/Export.h "")
  file(WRITE ${include}/csrc/api/include/torch/torch.h "")
  file(WRITE ${include}/headeronly/version.h "#define TORCH_VERSION_MAJOR ${major}\n"
       "#define TORCH_VERSION_MINOR ${minor}\n#define TORCH_VERSION_PATCH ${patch}\n")
  file(WRITE ${dir}/share/cmake/Torch/TorchConfig.cmake "")

  set(work ${dir}.work)
  file(WRITE ${work}/cuda.c "int cudaCount(void) { return 0; }\n"
                            "const char* cudaErrorString(void) { return \"\"; }\n")
  file(WRITE ${work}/version "libcudart.so.99 { global: *; };\n")
  file(WRITE ${work}/cpu.c "int cudaCount(void);\nconst char* cudaErrorString(void);\n"
                           "int devices(void) { return cudaErrorString()[0] != 'n' ? 1 : cudaCount(); }\n")
  file(WRITE ${work}/none.c "")
  file(MAKE_DIRECTORY ${dir}/lib)
  function(library name)
    run(${CC} -shared -fPIC -Wl,--no-as-needed -o ${ARGN} -Wl,-soname,${name})
  endfunction()
  library(libcudart.so.99 ${work}/libcudart.so.99 ${work}/cuda.c -Wl,--version-script=${work}/version)
  library(libtorch_cuda.so ${dir}/lib/libtorch_cuda.so ${work}/none.c ${work}/libcudart.so.99)
  library(libc10.so ${dir}/lib/libc10.so ${work}/none.c)
  library(libtorch_cpu.so ${dir}/lib/libtorch_cpu.so ${work}/cpu.c ${work}/libcudart.so.99 -Wl,-rpath,$ORIGIN)
  library(libtorch.so ${dir}/lib/libtorch.so ${work}/none.c ${dir}/lib/libtorch_cuda.so)
endfunction()
