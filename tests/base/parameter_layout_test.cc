#include <sotto/base/parameter_layout.h>

#include <array>
#include <string>

#include <doctest/doctest.h>

#include <sotto/base/error.h>

namespace sotto::test::parameter_layout_test {

namespace {

ParameterLayout dense() {
  ParameterLayout layout;
  append_block(layout, "weight", {3, 4});
  append_block(layout, "bias", {3});
  append_block(layout, "scale", {});
  return layout;
}

std::string refusal(ParameterLayout layout, std::size_t dimension) {
  try {
    complete_layout(std::move(layout), dimension);
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

}  // namespace

TEST_CASE("blocks follow each other, and views of them are parts of the flat vector") {
  const ParameterLayout layout = dense();
  CHECK(dimension_of(layout) == 16);
  CHECK(layout[1].offset == 12);
  CHECK(layout[2].size == 1);  // a scalar
  std::array<float, 16> flat{};
  flat[13] = 5;
  CHECK(layout[1].of(std::span<const float>(flat))[1] == 5);
  CHECK(layout_text(layout) == "weight 3 4\nbias 3\nscale\n");
  CHECK(complete_layout(layout, 16).size() == 3);
}

TEST_CASE("an empty layout is one tensor of all parameters") {
  const ParameterLayout layout = complete_layout({}, 7);
  REQUIRE(layout.size() == 1);
  CHECK(layout[0].shape == std::vector<std::size_t>{7});
  CHECK(dimension_of(layout) == 7);
  CHECK(dimension_of({}) == 0);
  CHECK(dimension_of(complete_layout({}, 0)) == 0);
}

TEST_CASE("a layout that does not describe the parameters is refused with the tensor") {
  CHECK(refusal(dense(), 15).find("16 floats") != std::string::npos);
  CHECK(refusal(dense(), 17).find("there are 17") != std::string::npos);
  ParameterLayout shape = dense();
  shape[1].shape = {4};
  CHECK(refusal(shape, 16).find("bias") != std::string::npos);
  ParameterLayout gap = dense();
  gap[2].offset = 16;
  CHECK(refusal(gap, 17).find("scale") != std::string::npos);
  // A product of extents that wraps around to the right size.
  ParameterLayout wrapping = dense();
  wrapping[1].shape = {std::size_t{1} << 63, 2, 3};
  CHECK(refusal(wrapping, 16).find("bias") != std::string::npos);
}

TEST_CASE("a layout beyond the largest model is refused") {
  ParameterLayout layout;
  CHECK_THROWS_AS(append_block(layout, "huge", {kMostDimension, 2}), Error);
  CHECK(layout.empty());
}

}  // namespace sotto::test::parameter_layout_test
