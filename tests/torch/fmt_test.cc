// A program's own use of fmt beside libtorch, whose folder of headers may hold an fmt of another
// version.
#include "torch/nets.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

TEST_CASE("a program that uses fmt links beside libtorch") {
  const std::vector<double> values = {1.5, 2};
  CHECK(fmt::format("{:.2f}", fmt::join(values, " ")) == "1.50 2.00");
}
