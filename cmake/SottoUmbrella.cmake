# sotto::sotto, all libraries as one target, and <sotto/sotto.h>, all their public headers as one.
add_library(sotto INTERFACE)
add_library(sotto::sotto ALIAS sotto)
list(TRANSFORM SOTTO_LIBRARIES PREPEND sotto:: OUTPUT_VARIABLE targets)
list(REVERSE targets)  # each before those that it needs
target_link_libraries(sotto INTERFACE ${targets})
set(includes)
foreach(library IN LISTS SOTTO_LIBRARIES)
  get_target_property(headers sotto_${library} HEADER_SET)
  list(APPEND includes ${headers})
endforeach()
list(TRANSFORM includes REPLACE "^${PROJECT_BINARY_DIR}/include/(.*)$" "#include <\\1>")
list(SORT includes)
list(JOIN includes "\n" SOTTO_INCLUDES)
set(umbrella ${PROJECT_BINARY_DIR}/include/sotto/sotto.h)
configure_file(${PROJECT_SOURCE_DIR}/cmake/sotto.h.in ${umbrella} @ONLY)
target_sources(sotto INTERFACE FILE_SET HEADERS BASE_DIRS ${PROJECT_BINARY_DIR}/include
                                                FILES ${umbrella})
install(TARGETS sotto EXPORT sottoTargets FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
