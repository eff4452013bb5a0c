# scripts/libtorch, with a small wheel and no index; and SottoFindTorch, told in each way where a libtorch is.
include(${CMAKE_CURRENT_LIST_DIR}/common.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/fake_libtorch.cmake)

need_program(READELF readelf binutils)
need_python_module(pip python3-pip)
file(REMOVE_RECURSE ${WORK})
set(offline ${CMAKE_COMMAND} -E env PIP_NO_INDEX=1 PIP_FIND_LINKS= SOTTO_TORCH_WHEELS=${WORK}/wheels)
set(script ${ROOT}/scripts/libtorch)

# Fails unless the command's exit status and output are as they should be.
function(expect status text)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE code OUTPUT_VARIABLE out ERROR_VARIABLE out)
  string(REGEX REPLACE "[ \n]+" " " out "${out}")
  if(NOT code EQUAL status OR NOT out MATCHES "${text}")
    message(FATAL_ERROR "${ARGN}: ${code}, not ${status} with '${text}':\n${out}")
  endif()
endfunction()

expect(2 "usage" ${offline} ${script})
expect(2 "usage" ${offline} ${script} nonsense)
expect(2 "usage" ${offline} ${script} --python)
expect(69 "cannot fetch torch" ${offline} ${script} newest)
expect(69 "cannot fetch torch" ${offline} ${script} --python newest)
expect(69 "cannot fetch torch==9.9.0" ${offline} ${script} 9.9.0)

# Without an index the newest is that of the folder: 9.10.0, not 9.9.0.
foreach(version IN ITEMS 9.9.0 9.10.0)
  fake_libtorch(${WORK}/made-${version}/torch ${version})
  file(REMOVE_RECURSE ${WORK}/made-${version}/torch.work)
  file(MAKE_DIRECTORY ${WORK}/wheels)
  run(${CMAKE_COMMAND} -E chdir ${WORK}/made-${version} ${CMAKE_COMMAND} -E tar cf
      ${WORK}/wheels/torch-${version}-cp311-cp311-linux_x86_64.whl --format=zip torch)
endforeach()
expect(0 "${WORK}/wheels/torch-9.10.0/torch" ${offline} ${script} newest)
expect(0 "${WORK}/wheels/torch-9.10.0/torch" ${offline} ${script} 9.10.0)
set(torch ${WORK}/wheels/torch-9.10.0/torch)
if(EXISTS ${torch}/lib/libtorch_cuda.so OR NOT EXISTS ${torch}/lib/libcudart.so.99)
  message(FATAL_ERROR "CUDA's library is unpacked, or its stand-in is missing")
endif()

# For Python it adds what `import torch` needs. What the wheel's library for Python calls of CUDA's is stood in for.
set(made ${WORK}/made-9.10.0)
file(WRITE ${made}/python.c "extern void _ZN4nccl7OptionsC1Eb(void**, int);
extern void* _ZN4nccl9availableEv(void);
extern struct { void* kind; const char* name; } _ZTIN4nccl5GroupE;
int ready(void) {
  void* object = 0;
  _ZN4nccl7OptionsC1Eb(&object, 0);
  return object != 0 && (unsigned char)(unsigned long)_ZN4nccl9availableEv() == 0 && _ZTIN4nccl5GroupE.name[0] == 'N';
}
")
file(WRITE ${made}/torch/backends/cuda/__init__.py "def is_built():\n    return torch._C._has_cuda\n")
file(WRITE ${made}/nothing.c "")
run(${CC} -shared -o ${made}/libtorch_cuda.so ${made}/nothing.c -Wl,-soname,libtorch_cuda.so)
run(${CC} -shared -fPIC -o ${made}/torch/lib/libtorch_python.so ${made}/python.c -L${made} -Wl,--no-as-needed -ltorch_cuda
    "-Wl,-rpath,$ORIGIN")
run(${CMAKE_COMMAND} -E chdir ${made} ${CMAKE_COMMAND} -E tar cf ${WORK}/wheels/torch-9.10.0-cp311-cp311-linux_x86_64.whl
    --format=zip torch)
expect(69 "cannot fetch the packages" ${offline} ${script} --python newest)
foreach(package IN ITEMS typing_extensions sympy networkx jinja2 fsspec filelock)
  set(folder ${WORK}/packages/${package})
  file(WRITE ${folder}/${package}.py "")
  file(WRITE ${folder}/${package}-1.dist-info/METADATA "Metadata-Version: 2.1\nName: ${package}\nVersion: 1\n")
  file(WRITE ${folder}/${package}-1.dist-info/WHEEL "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
  file(WRITE ${folder}/${package}-1.dist-info/RECORD "")
  file(MAKE_DIRECTORY ${WORK}/links)
  run(${CMAKE_COMMAND} -E chdir ${folder} ${CMAKE_COMMAND} -E tar cf ${WORK}/links/${package}-1-py3-none-any.whl
      --format=zip ${package}.py ${package}-1.dist-info)
endforeach()
set(for_python ${WORK}/wheels/torch-9.10.0-python)
expect(0 "${for_python} $" ${offline} PIP_FIND_LINKS=${WORK}/links ${script} --python newest)
expect(0 "1 False" ${PYTHON} -c "import ctypes, sys
sys.path.insert(0, '${for_python}')
import sympy
said = open('${for_python}/torch/backends/cuda/__init__.py').read()
print(ctypes.CDLL('${for_python}/torch/lib/libtorch_python.so').ready(), '_has_cuda' in said)")

# expect_found(STATUS TEXT VARIABLE=VALUE [OPTION…]): what a project with this environment is told.
function(expect_found status text)
  file(REMOVE_RECURSE ${WORK}/build)
  list(POP_FRONT ARGN variable)
  expect(${status} "${text}" ${CMAKE_COMMAND} -E env ${variable} ${CMAKE_COMMAND} -S ${SOURCE}/libtorch -B ${WORK}/build
         -DCMAKE_CXX_COMPILER=${CXX} -DROOT=${ROOT} ${ARGN})
endfunction()
set(found "found 9.10.0 in ${torch}: for the CPU alone")
foreach(way IN ITEMS -DCMAKE_PREFIX_PATH=${torch} -DCMAKE_PREFIX_PATH=${torch}/share/cmake -DTorch_ROOT=${torch}
                     -DTorch_DIR=${torch}/share/cmake/Torch -DSOTTO_TORCH_HINT=${torch})
  expect_found(0 "${found}" A=b ${way})
endforeach()
foreach(way IN ITEMS CMAKE_PREFIX_PATH=${torch} CMAKE_PREFIX_PATH=${WORK}:${torch}/share/cmake
                     Torch_DIR=${torch}/share/cmake/Torch)
  expect_found(0 "${found}" ${way})
endforeach()
# It links, starts, and finds no device: the stand-in's answer.
run(${CMAKE_COMMAND} --build ${WORK}/build)
run(${WORK}/build/devices)
# Another one is taken in the same build folder as soon as CMake is told of it.
expect(0 "found 9.9.0" ${CMAKE_COMMAND} ${WORK}/build -DTorch_DIR=${WORK}/made-9.9.0/torch)
expect_found(0 "no libtorch in /nowhere, which Torch_DIR" A=b -DTorch_DIR=/nowhere -DCMAKE_PREFIX_PATH=${torch})
# Headers that lack what the adapter needs.
expect_found(0 "libtorch 9.10.0 in ${torch} is of no use: .*does not compile: .*torch" A=b -DCHECK=ON
             -DTorch_DIR=${torch})
# Without the stand-in a program links, and what it misses is said.
file(REMOVE ${torch}/lib/libcudart.so.99)
expect_found(0 "found 9.10.0 in ${torch}: programs start where" A=b -DTorch_DIR=${torch})
run(${CMAKE_COMMAND} --build ${WORK}/build)
file(REMOVE ${torch}/lib/libc10.so)
expect_found(0 "headers of libtorch in ${torch}/include, but no libc10 beside them" A=b -DTorch_DIR=${torch})
