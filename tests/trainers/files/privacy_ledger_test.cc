#include <sotto/trainers/files/privacy_ledger.h>

#include <string>

#include <doctest/doctest.h>

#include "support/scratch.h"
#include "support/text_of_file.h"

namespace sotto::test::privacy_ledger_test {

namespace {

PrivacyOptions kept_in(const std::string& path) {
  PrivacyOptions options;
  options.clip_norm = 1;
  options.noise_multiplier = 1.25;
  options.ledger = path;
  return options;
}

}  // namespace

TEST_CASE("a ledger counts a step before it leaves, and goes on where it was") {
  const Scratch scratch;
  const auto options = kept_in((scratch.path() / "node-0.privacy").string());
  {
    PrivacyLedger ledger(options);
    CHECK_FALSE(ledger.existed());
    CHECK(ledger.steps() == 0);
    REQUIRE(ledger.enter(1, 100).ok());
  }
  PrivacyLedger crashed(options);
  CHECK(crashed.existed());
  CHECK(crashed.steps() >= 1);  // what may have left counts
  const auto reserved = crashed.steps();
  for (std::uint64_t step = reserved; step <= 100; ++step) {
    REQUIRE(crashed.enter(step, 100).ok());
    const auto kept = PrivacyLedger(options).steps();
    CHECK(kept >= step);
    CHECK(kept <= 100);  // never more than there can be
  }
  REQUIRE(crashed.settle(97).ok());
  CHECK(PrivacyLedger(options).steps() == 97);
}

TEST_CASE("a ledger is kept for what was told before, too") {
  const Scratch scratch;
  auto options = kept_in((scratch.path() / "ledger").string());
  options.before = {{.noise_multiplier = 3.5, .sampling_rate = 1}};
  REQUIRE(PrivacyLedger(options).enter(1, 10).ok());
  CHECK(PrivacyLedger(options).existed());
  options.before.front().noise_multiplier = 4;
  CHECK(contains(refusal([&] { PrivacyLedger{options}; }), "before is 4 here and 3.5 there"));
  options.before.clear();
  CHECK(contains(refusal([&] { PrivacyLedger{options}; }), "before is not given here and 3.5"));
}

TEST_CASE("a ledger that cannot be written keeps the step from leaving") {
  const Scratch scratch;
  PrivacyLedger ledger(kept_in((scratch.path() / "absent" / "ledger").string()));
  CHECK(ledger.enter(1, 10).fault() == Fault::io);
  CHECK(ledger.steps() == 0);
}

TEST_CASE("a damaged ledger, or one of another mechanism, is refused") {
  const Scratch scratch;
  const std::string path = (scratch.path() / "ledger").string();
  auto options = kept_in(path);
  REQUIRE(PrivacyLedger(options).enter(5, 10).ok());
  const std::string whole = text_of_file(path);
  CHECK(contains(whole, "steps=10\n"));

  options.noise_multiplier = 2;
  CHECK(contains(refusal([&] { PrivacyLedger{options}; }), "noise-multiplier is 2 here and 1.25"));
  options.noise_multiplier = 1.25;
  for (std::size_t length = 0; length < whole.size(); ++length) {
    scratch.write("ledger", whole.substr(0, length));
    CHECK(contains(refusal([&] { PrivacyLedger{options}; }), "what is spent cannot be known"));
  }
  for (std::size_t at = 0; at < whole.size(); ++at) {
    std::string flipped = whole;
    flipped[at] = static_cast<char>(flipped[at] ^ 1);
    scratch.write("ledger", flipped);
    CHECK(contains(refusal([&] { PrivacyLedger{options}; }), "what is spent cannot be known"));
  }
  scratch.write("ledger", whole + "\n");
  CHECK(contains(refusal([&] { PrivacyLedger{options}; }), "damaged"));
  scratch.write("ledger", std::string(100'000, 'x'));
  CHECK(contains(refusal([&] { PrivacyLedger{options}; }), "what is spent cannot be known"));
  scratch.write("ledger", whole);
  CHECK(PrivacyLedger(options).steps() == 10);
}

}  // namespace sotto::test::privacy_ledger_test
