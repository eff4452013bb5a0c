// The words of options are those that their readers take.
#include "fixed_words.h"

#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/optim/privacy/privacy_options.h>
#include <sotto/optim/schedule.h>
#include <sotto/optim/step_rule.h>
#include <sotto/topology/registry.h>

namespace sotto::test::fixed_words_test {

namespace {

template <typename Read>
void check_words(const char* option, const Read& read) {
  const auto words = cli::fixed_words(option);
  CHECK_FALSE(words.empty());
  for (const std::string& word : words) {
    CAPTURE(word);
    CHECK_NOTHROW(read(word));
  }
}

}  // namespace

TEST_CASE("every word that is offered for an option is one that is read") {
  check_words("--weighting", [](const std::string& word) { (void)parse_weighting(word); });
  check_words("--bias-correction",
              [](const std::string& word) { (void)parse_bias_correction(word); });
  check_words("--privacy-unit", [](const std::string& word) { (void)parse_privacy_unit(word); });
  check_words("--schedule", [](const std::string& word) {
    const bool counts = word == "step" || word == "invsqrt";
    (void)parse_schedule(counts ? word + ":10" : word, 100);
  });
  for (const char* option : {"--step-rule", "--outer-step-rule"}) {
    check_words(option, [](const std::string& word) { (void)make_step_rule({.rule = word}); });
  }
  CHECK(cli::fixed_words("--compressor").empty());
}

}  // namespace sotto::test::fixed_words_test
