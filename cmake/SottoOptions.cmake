# Options and the settings that every target shares.
include(GNUInstallDirs)
include(CMakeDependentOption)
include(SottoExternals)

option(SOTTO_BUILD_PROGRAM "Build the `sotto` program" ${PROJECT_IS_TOP_LEVEL})
option(SOTTO_BUILD_BINDINGS "Build the C library and the Python module" ${PROJECT_IS_TOP_LEVEL})
option(SOTTO_BUILD_EXAMPLES "Build the examples" ${PROJECT_IS_TOP_LEVEL})
option(SOTTO_BUILD_BENCH "Build the programs that measure (bench/)" ${PROJECT_IS_TOP_LEVEL})
option(SOTTO_BUILD_TESTS "Build the tests" ${PROJECT_IS_TOP_LEVEL})
option(SOTTO_BUILD_FUZZERS "Build the libFuzzer targets (Clang only)" OFF)
foreach(name IN LISTS SOTTO_EXTERNALS)
  option(SOTTO_WITH_${name} "${SOTTO_EXTERNAL_${name}_OPTION}" ON)
endforeach()
set(SOTTO_WITH_TORCH AUTO CACHE STRING "The adapter for libtorch: ON, OFF, or AUTO, where it is found")
set_property(CACHE SOTTO_WITH_TORCH PROPERTY STRINGS AUTO ON OFF)
option(SOTTO_WITH_CUDA "GPU kernels and codecs, where nvcc is (set by the preset cuda)" OFF)
option(SOTTO_UNITY "Compile sources in batches (set by the presets but dev, which finds what one does not include)" OFF)
option(SOTTO_WERROR "Treat warnings as errors (set by the presets)" OFF)
set(SOTTO_SANITIZE "" CACHE STRING "Sanitizers for -fsanitize=, e.g. address,undefined")

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Release, Debug, RelWithDebInfo" FORCE)
endif()

set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

# A flag set that all sotto targets use and that is not exported to users.
add_library(sotto_flags INTERFACE)
target_compile_features(sotto_flags INTERFACE cxx_std_20)
# Products and sums are rounded separately on every machine: results must not depend on whether the
# compiler found a fused multiply-add.
target_compile_options(sotto_flags INTERFACE -ffp-contract=off -Wall -Wextra -Wpedantic -Wshadow
                                             -Wconversion -Wsign-conversion -Wnon-virtual-dtor
                                             -Wold-style-cast -Woverloaded-virtual)
if(SOTTO_WERROR)
  target_compile_options(sotto_flags INTERFACE -Werror)
endif()
if(SOTTO_SANITIZE)
  add_compile_options(-fsanitize=${SOTTO_SANITIZE} -fno-omit-frame-pointer
                      -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${SOTTO_SANITIZE})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # GCC takes the sanitizers' own temporaries for uninitialized variables.
    target_compile_options(sotto_flags INTERFACE -Wno-maybe-uninitialized)
  endif()
endif()
