# The documentation site (docs/site): the target `site`, and what its tests need. Sets
# SOTTO_HAVE_SITE.
find_program(SOTTO_DOXYGEN doxygen)
# The one that Debian's packages of modules are for.
find_program(SOTTO_PYTHON python3 HINTS /usr/bin)
set(SOTTO_HAVE_SITE OFF)
if(SOTTO_PYTHON AND SOTTO_DOXYGEN)
  execute_process(COMMAND ${SOTTO_PYTHON} -c "import markdown_it, pygments"
                  RESULT_VARIABLE lacking OUTPUT_QUIET ERROR_QUIET)
  if(lacking EQUAL 0)
    set(SOTTO_HAVE_SITE ON)
  endif()
endif()

# The public headers, as they lie in the repository: what the targets' header sets install.
set(SOTTO_PUBLIC_HEADERS ${PROJECT_BINARY_DIR}/public-headers.txt)
set(headers)
foreach(library IN LISTS SOTTO_LIBRARIES ITEMS torch observe study c kernels_cuda compress_cuda)
  if(TARGET sotto_${library})
    get_target_property(paths sotto_${library} HEADER_SET)
    list(APPEND headers ${paths})
  endif()
endforeach()
list(TRANSFORM headers REPLACE "^${PROJECT_BINARY_DIR}/include/sotto/" "")
list(TRANSFORM headers REPLACE "^${PROJECT_SOURCE_DIR}/" "")
list(SORT headers)
list(JOIN headers "\n" headers)
file(CONFIGURE OUTPUT ${SOTTO_PUBLIC_HEADERS} CONTENT "@headers@\n" @ONLY)

if(SOTTO_HAVE_SITE)
  add_custom_target(site
    COMMAND ${CMAKE_COMMAND} -E env PYTHONDONTWRITEBYTECODE=1
            ${SOTTO_PYTHON} ${PROJECT_SOURCE_DIR}/docs/site/build.py --source ${PROJECT_SOURCE_DIR}
            --headers ${SOTTO_PUBLIC_HEADERS} --output ${PROJECT_BINARY_DIR}/site
            --doxygen ${SOTTO_DOXYGEN}
    USES_TERMINAL VERBATIM)
endif()
