# The wheel for other machines.
function(add_wheel_case case name)
  sotto_add_case("wheel: ${name}" TIMEOUT 300 PROPERTIES ${ARGN}
    COMMAND ${SOTTO_PYTHON} ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/wheel_test.py ${case}
            ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR} ${PROJECT_BINARY_DIR}/wheel-test ${PROJECT_VERSION})
endfunction()

add_wheel_case(made "scripts/wheel makes one with all that it needs, and the same again"
               FIXTURES_SETUP wheel)
add_wheel_case(alone "without auditwheel it is for this machine, and the script says so")
add_wheel_case(refused "builds that belong in none are refused")
add_wheel_case(clean "it runs in an environment with nothing else" FIXTURES_REQUIRED wheel)
add_wheel_case(pythons "it runs on every Python that is here" FIXTURES_REQUIRED wheel)
add_wheel_case(torch "it runs beside PyTorch, whichever is imported first" FIXTURES_REQUIRED wheel)
