#include <sotto/trainers/files/parameter_file.h>

#include <limits>
#include <vector>

#include <doctest/doctest.h>

#include "support/scratch.h"

namespace sotto::test::parameter_file_test {

TEST_CASE("a row of parameters is read back bit for bit") {
  const std::vector<float> x = {0.1F,
                                -1.0F / 3,
                                1e-38F,
                                std::numeric_limits<float>::max(),
                                std::numeric_limits<float>::denorm_min(),
                                -0.0F,
                                16777217.0F};
  const Scratch scratch;
  const auto file = scratch.write("x.csv", parameter_row(x) + "second,row\n").string();
  CHECK(read_parameter_row(file, x.size()) == x);
  CHECK(parameter_row({}) == "\n");
  CHECK(parameter_row(std::vector<float>{1, 0.5F}) == "1,0.5\n");
}

TEST_CASE("rows that do not fit are refused with the place") {
  const Scratch scratch;
  const auto refused = [&](const char* content) {
    const auto file = scratch.write("x.csv", content).string();
    return refusal([&] { read_parameter_row(file, 3); });
  };
  CHECK(contains(refused(""), "no row"));
  CHECK(contains(refused("1,2\n"), "has 3 parameters, the row has 2"));
  CHECK(contains(refused("1,2,3,4\n"), "the row has more"));
  CHECK(contains(refused("1,two,3\n"), "column 2: 'two'"));
  CHECK(contains(refused("1,,3\n"), "column 2"));
  CHECK(contains(refused("1,nan,3\n"), "column 2"));
  CHECK(contains(refused("1,1e39,3\n"), "column 2: '1e39' does not fit"));
  CHECK(contains(refused("1,-1e999,3\n"), "column 2: '-1e999' does not fit"));
  CHECK(contains(refused("1,+-2,3\n"), "column 2: '+-2'"));
  CHECK(contains(refusal([] { read_parameter_row("/nowhere/x.csv", 3); }), "/nowhere/x.csv"));
  CHECK(read_parameter_row(scratch.write("x.csv", " 1, 2 ,3\r\n").string(), 3) ==
        std::vector<float>{1, 2, 3});
  CHECK(read_parameter_row(scratch.write("x.csv", "+1,1e-50,-1e-999\n").string(), 3) ==
        std::vector<float>{1, 0, 0});
}

}  // namespace sotto::test::parameter_file_test
