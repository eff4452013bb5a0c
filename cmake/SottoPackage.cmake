# The Debian package, by `cpack --config build/CPackConfig.cmake`. It is one, as program, libraries and
# headers are of one version and of no use to each other in different ones.
set(suggested python3-numpy libtorch-dev libfmt-dev libsodium-dev zlib1g-dev libcpp-httplib-dev
              libisal-dev libxxhash-dev libtomlplusplus-dev)
foreach(name IN LISTS SOTTO_EXTERNALS)
  list(APPEND suggested ${SOTTO_EXTERNAL_${name}_DEBIAN})
endforeach()
list(REMOVE_ITEM suggested cppzmq-dev)  # headers that sotto's own build alone includes
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME sotto)
set(CPACK_PACKAGE_CONTACT "the sotto authors")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${PROJECT_BINARY_DIR}/lib)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
list(JOIN suggested ", " CPACK_DEBIAN_PACKAGE_SUGGESTS)
include(CPack)
