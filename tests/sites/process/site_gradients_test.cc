#include <sotto/sites/process/site_gradients.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/trainers/files/privacy_ledger.h>

#include "support/scratch.h"

namespace sotto::test::site_gradients_test {

namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

PrivacyOptions promise(const std::string& ledger) {
  PrivacyOptions options;
  options.clip_norm = 1;
  options.noise_multiplier = 1;
  options.epsilon = 40;
  options.test_seed = 3;
  options.ledger = ledger;
  return options;
}

const std::vector<float> kGradient(4, 0.5F);

}  // namespace

TEST_CASE("without a budget a site's gradients leave as they are, and the loss is shown") {
  SiteGradients gradients(4, std::nullopt);
  CHECK(std::isnan(gradients.loss()));
  const auto gradient = gradients.release(kGradient, 2);
  REQUIRE(gradient.ok());
  CHECK(std::vector<float>(gradient->begin(), gradient->end()) == std::vector<float>(4, 0.5F));
  CHECK(gradients.loss() == 2);
  CHECK_FALSE(gradients.spent());
  CHECK_FALSE(gradients.privacy().has_value());
  CHECK(gradients.steps() == 0);
  REQUIRE(gradients.release(kGradient, {}).ok());
  CHECK(std::isnan(gradients.loss()));
  CHECK(gradients.expect_steps(9).ok());
  CHECK(gradients.settle().ok());
}

TEST_CASE("with a budget a site's gradients are noisy, the loss is hidden, and steps have an end") {
  const Scratch scratch;
  const auto options = promise((scratch.path() / "privacy").string());
  const std::uint64_t allowed = allowed_steps(options);
  REQUIRE(allowed > 1);
  {
    SiteGradients gradients(4, options);
    for (Round round = 0; round + 1 < allowed; ++round) {
      const auto gradient = gradients.release(kGradient, 2);
      REQUIRE(gradient.ok());
      CHECK((*gradient)[0] != 0.5F);
    }
    CHECK(std::isnan(gradients.loss()));
    REQUIRE(gradients.settle().ok());
  }
  SiteGradients gradients(4, options);  // the site starts again
  CHECK(gradients.steps() == allowed - 1);
  CHECK(gradients.privacy()->left == 1);
  REQUIRE(gradients.release(kGradient, 2).ok());
  CHECK(gradients.spent());
  CHECK(gradients.privacy()->epsilon <= 40);
  CHECK(gradients.settle().ok());
  CHECK(PrivacyLedger(options).steps() == allowed);
}

TEST_CASE("a gradient or a loss that is not finite leaves nothing, and costs nothing") {
  const Scratch scratch;
  SiteGradients gradients(4, promise((scratch.path() / "privacy").string()));
  CHECK(gradients.release(std::vector<float>{0, kNan, 0, 0}, 2).status().fault() ==
        Fault::non_finite);
  CHECK(gradients.release(kGradient, std::numeric_limits<double>::infinity()).status().fault() ==
        Fault::non_finite);
  CHECK(gradients.steps() == 0);
  CHECK(gradients.privacy()->epsilon == 0);
}

TEST_CASE("a site's state that knows of steps wants the ledger that goes with it") {
  const Scratch scratch;
  const auto options = promise((scratch.path() / "privacy").string());
  const SiteGradients gradients(4, options);
  CHECK(gradients.expect_steps(0).ok());
  const Status missing = gradients.expect_steps(3);
  CHECK(missing.fault() == Fault::malformed);
  CHECK(missing.message().find("is missing") != std::string::npos);
}

}  // namespace sotto::test::site_gradients_test
