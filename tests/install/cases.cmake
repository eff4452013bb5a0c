# The installed package. Each script but `libtorch` and `pkgconfig`, which need no build, installs
# the build into a prefix of its own.
function(add_install_case script name)
  sotto_add_case("install: ${name}"
    COMMAND ${CMAKE_COMMAND} -DBUILD=${PROJECT_BINARY_DIR} -DROOT=${PROJECT_SOURCE_DIR}
            -DSOURCE=${CMAKE_CURRENT_FUNCTION_LIST_DIR} -DWORK=${PROJECT_BINARY_DIR}/install-test/${script}
            -DCXX=${CMAKE_CXX_COMPILER} -DCC=${CMAKE_C_COMPILER} -DPYTHON=${SOTTO_PYTHON}
            -DCPACK=${CMAKE_CPACK_COMMAND} -DVERSION=${PROJECT_VERSION} -DUSES_TORCH=${SOTTO_HAVE_TORCH}
            -DUSES_OBSERVE=${SOTTO_HAVE_OBSERVE} -DUSES_STUDY=${SOTTO_HAVE_STUDY}
            -DEXAMPLES=${PROJECT_SOURCE_DIR}/examples
            -P ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/${script}.cmake)
endfunction()

add_install_case(cxx "a separate project builds against the package")
add_install_case(components "find_package says which component is not to be had and why")
add_install_case(libtorch "any libtorch is fetched and found, or its fault is said")
add_install_case(pkgconfig "pkg-config files give each field once in every kind of build")
if(SOTTO_BUILD_BINDINGS AND SOTTO_BUILD_PROGRAM AND SOTTO_PYTHON)
  add_install_case(c "a separate project in C builds against the library")
  add_install_case(python "the module works where it was installed")
  add_install_case(manual "manual pages and completions are in order")
  add_install_case(wheel "a wheel for this machine brings the module, the library and the program")
  add_install_case(deb "a Debian package runs from where it is unpacked")
endif()
