// Which tensors a selector fits, and which rule a tensor has.
#include <sotto/base/tensor_selector.h>

#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/error.h>

namespace sotto::test::tensor_selector_test {

namespace {

/// A model of so many matrices, each with a bias.
ParameterLayout layers(int count) {
  ParameterLayout layout;
  for (int i = 0; i < count; ++i) {
    append_block(layout, "l" + std::to_string(i) + ".weight", {4, 3});
    append_block(layout, "l" + std::to_string(i) + ".bias", {4});
  }
  return layout;
}

std::string fitted(const std::string& selector, const ParameterLayout& layout) {
  const TensorSelector made(selector, "field");
  std::string names;
  for (std::size_t i = 0; i < layout.size(); ++i) {
    names += made.fits(layout, i) ? layout[i].name + " " : "";
  }
  return names;
}

std::string error_of(const std::string& spec, const ParameterLayout& layout) {
  try {
    const auto read = read_spec_by_tensor(spec, "field", "1d=a");
    rule_of_each(read.rules, layout, "field");
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("selectors go by name, rank, place and size") {
  const ParameterLayout three = layers(3);
  CHECK(fitted("l1.*", three) == "l1.weight l1.bias ");
  CHECK(fitted("l?.bias", three) == "l0.bias l1.bias l2.bias ");
  CHECK(fitted("1d", three) == "l0.bias l1.bias l2.bias ");
  CHECK(fitted("under:5", three) == "l0.bias l1.bias l2.bias ");
  CHECK(fitted("ends", three) == "l0.weight l2.weight ");
}

TEST_CASE("ends are the first and the last matrix where one is left between them") {
  CHECK(fitted("ends", layers(0)).empty());
  CHECK(fitted("ends", layers(1)).empty());
  CHECK(fitted("ends", layers(2)).empty());
  ParameterLayout more = layers(2);
  append_block(more, "conv", {2, 2, 3, 3});
  append_block(more, "scale", {});
  CHECK(fitted("ends", more) == "l0.weight conv ");
}

TEST_CASE("the first rule that fits decides, else the default") {
  const auto read = read_spec_by_tensor(" a ;l0.*=b; 1d = c:k=v ", "field", "1d=a");
  CHECK(read.otherwise == "a");
  REQUIRE(read.rules.size() == 2);
  CHECK(read.rules[0].spec == "b");
  CHECK(read.rules[1].selector.text() == "1d");
  CHECK(read.rules[1].spec == "c:k=v");
  CHECK(rule_of_each(read.rules, layers(2), "field") == std::vector<std::size_t>{0, 0, 2, 1});
}

TEST_CASE("what is no rule, fits nothing or comes too late is refused") {
  const ParameterLayout two = layers(2);
  CHECK(error_of("a; b", two) ==
        "field: 'b' is refused: rules are written SELECTOR=SPEC, e.g. 1d=a");
  CHECK(error_of("a; =b", two).find("a selector is a name") != std::string::npos);
  CHECK(error_of("a; under:x=b", two).find("under:1024") != std::string::npos);
  CHECK(error_of("a; head.*=b", two).find("fits none of the tensors l0.weight, l0.bias") !=
        std::string::npos);
  CHECK(error_of("a; *=b; l0.*=c", two).find("those before it fit all of this one's: '*'") !=
        std::string::npos);
  CHECK(error_of("a; 1d=b; ends=c; under:1=d", two).empty());
  CHECK(error_of("a; head.*=b", one_tensor(3)).empty());
}

}  // namespace sotto::test::tensor_selector_test
