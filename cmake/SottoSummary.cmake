# What was found, and what its absence costs.
function(sotto_report name have present absent)
  if(${have})
    message(STATUS "  ${name}: yes — ${present}")
  else()
    message(STATUS "  ${name}: no — ${absent}")
  endif()
endfunction()

message(STATUS "sotto ${PROJECT_VERSION}, ${CMAKE_BUILD_TYPE}, ${CMAKE_CXX_COMPILER_ID}")
foreach(name IN LISTS SOTTO_EXTERNALS)
  list(JOIN SOTTO_EXTERNAL_${name}_DEBIAN " " packages)
  sotto_report("${SOTTO_EXTERNAL_${name}_LABEL}" SOTTO_HAVE_${name} "${SOTTO_EXTERNAL_${name}_PRESENT}"
               "${SOTTO_EXTERNAL_${name}_ABSENT} (${packages})")
endforeach()
sotto_report("cpp-httplib" SOTTO_HAVE_OBSERVE "sotto::observe, a run's figures for dashboards"
             "no sotto::observe (libcpp-httplib-dev)")
sotto_report("toml++" SOTTO_HAVE_STUDY "sotto::study, scenarios that are simulated and planned"
             "no sotto::study (libtomlplusplus-dev)")
sotto_report("ISA-L" SOTTO_HAVE_ISAL "files for TensorBoard" "none for TensorBoard (libisal-dev)")
if(NOT SOTTO_WITH_TORCH)
  set(why_no_torch "-DSOTTO_WITH_TORCH=${SOTTO_WITH_TORCH}")
elseif(SOTTO_SANITIZE)
  set(why_no_torch "sanitizers would report its threads")
elseif(SOTTO_TORCH_PREFIX)
  set(why_no_torch "${SOTTO_TORCH_PROBLEM}")
else()
  set(why_no_torch "${SOTTO_TORCH_PROBLEM}: libtorch-dev, or docs/install.md")
endif()
set(which_torch "libtorch ${SOTTO_TORCH_VERSION} in ${SOTTO_TORCH_PREFIX}")
if(SOTTO_TORCH_NOTE)
  string(APPEND which_torch "; ${SOTTO_TORCH_NOTE}")
endif()
sotto_report("libtorch" SOTTO_HAVE_TORCH "sotto::torch, an optimizer for libtorch's models (${which_torch})"
             "no sotto::torch (${why_no_torch})")
sotto_report("CUDA" SOTTO_HAVE_CUDA "GPU kernels and codecs (docs/gpu.md)"
             "no GPU kernels (-DSOTTO_WITH_CUDA=ON, nvcc 12 or later with GCC)")
sotto_report("NCCL" SOTTO_HAVE_NCCL "--transport nccl, not run on a GPU yet"
             "no --transport nccl (-DSOTTO_WITH_CUDA=ON, and NCCL beside CUDA or where the system looks)")
sotto_report("documentation site" SOTTO_HAVE_SITE "the target `site`"
             "no target `site` (doxygen python3-markdown-it python3-pygments)")
if(SOTTO_BUILD_TESTS OR SOTTO_BUILD_BENCH)
  sotto_report("SimGrid" SOTTO_HAVE_SIMGRID "the simulator is held to it"
               "the simulator is not held to it (libsimgrid-dev)")
endif()
if(SOTTO_BUILD_BENCH)
  sotto_report("Google Benchmark" benchmark_FOUND "micro-benchmarks in bench/"
               "no micro-benchmarks (libbenchmark-dev)")
  sotto_report("Open MPI" SOTTO_HAVE_MPI "a contender of `netlab race`"
               "no contender of `netlab race` (libopenmpi-dev openmpi-bin)")
endif()
