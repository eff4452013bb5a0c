# The manifests of examples/launch, without a cluster; kubernetes_test.py has the cases.
function(add_launch_case case name)
  sotto_add_case("launch: ${name}"
    COMMAND ${CMAKE_COMMAND} -E env PYTHONDONTWRITEBYTECODE=1 ${SOTTO_PYTHON}
            ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/kubernetes_test.py ${case}
            ${PROJECT_SOURCE_DIR}/examples/launch/kubernetes $<TARGET_FILE:sotto_program>)
endfunction()

add_launch_case(structure "Kubernetes manifests are what the API takes")
if(SOTTO_HAVE_ZMQ)
  add_launch_case(train "a Job's pods train one model")
  add_launch_case(late "pods wait for the name of the first")
  add_launch_case(site "a site's pod meets another one")
  add_launch_case(elastic "pods that come and go train one model")
endif()
