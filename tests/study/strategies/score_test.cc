// Floating-point operations counted from layer shapes, and AIPerf's score.
#include <cmath>

#include <doctest/doctest.h>

#include <sotto/base/parameter_layout.h>
#include <sotto/study/strategies/score.h>
#include <sotto/trainers/tasks/model.h>

namespace sotto::test::score_test {

using namespace sotto::study;

namespace {

double flops(const char* model, const ModelInput& input) {
  const auto made = make_model(model, input);
  const auto found = flops_of_row(made->layout(), made->positions());
  REQUIRE(found);
  return *found;
}

}  // namespace

TEST_CASE("floating-point operations are 2 m n k a product, and twice that on the way back") {
  const ModelInput input = {.features = 30, .classes = 7};
  CHECK(flops("softmax", input) == 6 * 30 * 7);
  CHECK(flops("mlp:11,13", input) == 6 * (30 * 11 + 11 * 13 + 13 * 7));
  // A block of width h has 12 h² in products, and attention twice T h; the head has h × symbols.
  const ModelInput text = {.features = 6, .classes = 9, .sequence = SequenceShape{6, 9}};
  const double block = 12.0 * 8 * 8 + 2 * 6 * 8;
  CHECK(flops("transformer:3,8,2", text) == 6 * (3 * block + 8 * 9));
  // A row sees one of the experts, whatever their number, and the gate all of them.
  CHECK(flops("transformer:3,8,2,experts=4", text) == 6 * (3 * (block + 4 * 8) + 8 * 9));
  const auto cnn = make_model("cnn", {.features = 64, .classes = 3, .image = ImageShape{1, 8, 8}});
  CHECK_FALSE(flops_of_row(cnn->layout(), 1));
}

TEST_CASE("the regulated score is finite at error 0, and grows with what is spent") {
  CHECK(regulated_score(3e9, 0.75, 1000) == doctest::Approx(3e9 * std::log(4.0)));
  CHECK(regulated_score(3e9, 1, 500) == doctest::Approx(3e9 * std::log(500.0)));
  CHECK(regulated_score(3e9, 0.9999, 500) == regulated_score(3e9, 1, 500));
  CHECK(regulated_score(6e9, 0.9, 500) == 2 * regulated_score(3e9, 0.9, 500));
  CHECK(regulated_score(3e9, 0, 500) == 0);
}

}  // namespace sotto::test::score_test
