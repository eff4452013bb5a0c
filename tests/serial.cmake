# Tests of whole processes against the clock, which others beside them would starve. Read by ctest.
foreach(name IN ITEMS
    "sitelab:real sites that are killed, stopped and leave get on, and lose no mass"
    "sitelab:real sites whose states are lost, damaged or old begin anew beside the others"
    "sitelab:real sites: who was replaced and goes on leaves its successor's channels alone"
    "sitelab:real sites: 64 MiB message at 1 Mbit/s, in small: nobody is taken for dead")
  set_tests_properties("${name}" PROPERTIES RUN_SERIAL ON)
endforeach()
