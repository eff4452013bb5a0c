// How a test says that it cannot run here: SOTTO_SKIP("no root"); CTest then shows it as skipped.
#pragma once

#include <iostream>

#include <doctest/doctest.h>

#define SOTTO_SKIP(why)                      \
  do {                                       \
    std::cout << "SKIPPED: " << why << '\n'; \
    return;                                  \
  } while (false)
