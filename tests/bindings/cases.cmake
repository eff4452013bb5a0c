# The Python module, and the examples of docs/bindings.md.
set(program)
set(programs)
if(SOTTO_BUILD_PROGRAM)
  set(program $<TARGET_FILE:sotto_program>)
  set(programs $<TARGET_FILE_DIR:sotto_program>)
endif()

function(add_module_case torch name)
  sotto_add_case("bindings: ${name}"
    COMMAND ${CMAKE_COMMAND} -DPYTHON=${SOTTO_PYTHON} -DLIBRARY=$<TARGET_FILE:sotto_c>
            -DPROGRAM=${program} -DTESTS=${CMAKE_CURRENT_FUNCTION_LIST_DIR}/python -DTORCH=${torch}
            -P ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/pytest.cmake)
endfunction()

# What needs PyTorch is apart, so that it is seen where it is skipped.
add_module_case(OFF "the Python module")
add_module_case(ON "the Python module with PyTorch")

# Examples of a kind, of which there are `least` or more.
function(add_example_case kind least)
  sotto_add_case("bindings: the examples of docs/bindings.md run (${kind})"
    COMMAND ${CMAKE_COMMAND} -DKIND=${kind} -DLEAST=${least}
            -DPAGE=${PROJECT_SOURCE_DIR}/docs/bindings.md -DPROGRAMS=${programs}
            -DWORK=${PROJECT_BINARY_DIR}/bindings-examples/${kind} -DCC=${CMAKE_C_COMPILER}
            -DPYTHON=${SOTTO_PYTHON} -DINCLUDE=${PROJECT_SOURCE_DIR}/bindings/c
            -DLIBRARY=$<TARGET_FILE:sotto_c> -DMODULE=${PROJECT_SOURCE_DIR}/bindings/python
            -P ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/blocks.cmake)
endfunction()

add_example_case(c 2)
add_example_case(python 7)
add_example_case(torch 3)
