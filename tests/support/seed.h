// The seed of a test that draws its cases anew in each run.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <random>
#include <string>

namespace sotto::test {

/// Another one in each run, unless SOTTO_TEST_SEED gives it: a test that fails prints its seed.
inline std::uint64_t drawn_seed() {
  const char* given = std::getenv("SOTTO_TEST_SEED");
  return given == nullptr ? std::random_device()() : std::stoull(given);
}

}  // namespace sotto::test
