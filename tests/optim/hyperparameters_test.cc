// Specifications of algorithms: what is read, what is refused, and that equal ones have one text.
#include <limits>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/compress/registry.h>
#include <sotto/optim/registry.h>

namespace sotto::test::hyperparameters_test {

namespace {

std::string canonical(std::string_view spec) { return parse_algorithm(spec).text(); }

std::string refusal(std::string_view spec) {
  try {
    return "it was taken as " + canonical(spec);
  } catch (const Error& error) {
    return error.what();
  }
}

bool mentions(const std::string& text, std::initializer_list<std::string_view> parts) {
  return std::ranges::all_of(
      parts, [&](std::string_view part) { return text.find(part) != std::string::npos; });
}

/// A value that a number stands for.
std::string numbered_value(const Hyperparameter& one, std::uint64_t number) {
  switch (one.kind) {
    case HyperparameterKind::count: {
      const double most = std::min(one.most, 1e6);
      return fmt::to_string(1 + number % static_cast<std::uint64_t>(most - 1));
    }
    case HyperparameterKind::real:
      return fmt::to_string(one.most * (0.5 + static_cast<double>(number % 1000)) / 1001);
    case HyperparameterKind::choice: {
      std::vector<std::string_view> others(one.choices.begin(), one.choices.end());
      std::erase(others, one.fallback);
      return std::string(others[number % others.size()]);
    }
    case HyperparameterKind::compressor:
      return make_compressor(fmt::format("quant:{}", 2 + number % 7), one.contract)->spec();
    case HyperparameterKind::text:
      break;
  }
  return fmt::format("clipped:{}", 1 + number % 1000);
}

/// Another value than the fallback, from a number drawn.
std::string drawn_value(const Hyperparameter& one, std::uint64_t number) {
  const std::string value = numbered_value(one, number);
  return value != one.fallback ? value : numbered_value(one, number + 1);
}

}  // namespace

TEST_CASE("equal specifications have one text, and fallbacks are not in it") {
  for (const auto& [written, text] : std::vector<std::pair<std::string, std::string>>{
           {"dcd", "dcd"},
           {"ecd:clock=32", "ecd:clock=32"},
           {"ecd:clock=032", "ecd:clock=32"},
           {"ecd:clock=4096", "ecd"},
           {"choco:eta=0.20", "choco:eta=0.2"},
           {"choco:eta=2e-1", "choco:eta=0.2"},
           {"choco:eta=auto", "choco"},
           {"zeroone-adam:limit=16,freeze=100", "zeroone-adam:freeze=100"},
           {"zeroone-adam:limit=4,freeze=100", "zeroone-adam:freeze=100,limit=4"},
           {"onebit-adam:freeze=auto", "onebit-adam"},
           {"sparseloco:clip=none,decay=0.950", "sparseloco"},
           {"sparseloco:aggregate=count,decay=1", "sparseloco:decay=1,aggregate=count"},
           {"sharded:gather=same", "sharded"},
           {"sharded:gather=none", "sharded:gather=none"},
           {"sharded:gather=quant:4,chunk=0512",
            "sharded:gather=quant:4,chunk=512,rounding=nearest"},
           {"robust:clipped:auto", "robust"},
           {"robust:krum:1", "robust:krum:1"}}) {
    CAPTURE(written);
    CHECK(canonical(written) == text);
    CHECK(canonical(text) == text);
  }
}

TEST_CASE("a list shows how specifications are written") {
  CHECK(synopsis(algorithm_info("dcd")) == "dcd");
  CHECK(synopsis(algorithm_info("choco")) == "choco[:eta=η]");
  CHECK(synopsis(algorithm_info("zeroone-adam")) == "zeroone-adam[:freeze=T_w,limit=H]");
  CHECK(synopsis(algorithm_info("robust")) == "robust[:RULE]");
}

TEST_CASE("every hyperparameter of every algorithm is read back from the text, and changes it") {
  const auto seed = std::random_device()();
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  std::size_t found = 0;
  for (const AlgorithmInfo& info : algorithms()) {
    std::set<std::string_view> keys;
    for (const Hyperparameter& one : info.hyperparameters) {
      CAPTURE(std::string(info.name));
      CAPTURE(std::string(one.key));
      CHECK(keys.insert(one.key).second);
      CHECK(info.has(one.key));
      CHECK_FALSE(one.help.empty());
      CHECK_FALSE(one.symbol.empty());
      const std::string value = drawn_value(one, random());
      CAPTURE(value);
      AlgorithmSpec spec = parse_algorithm(info.name);
      CHECK_FALSE(spec.hyperparameters.has(one.key));
      spec.hyperparameters.set(one.key, value);
      CHECK(spec.text() != info.name);
      CHECK(parse_algorithm(spec.text()).hyperparameters.text(one.key) == value);
      CHECK(parse_algorithm(spec.text()).text() == spec.text());
      ++found;
    }
    CHECK_FALSE(info.has("no-such-key"));
  }
  CHECK(found >= 13);
}

TEST_CASE("no number that is drawn stands for a fallback") {
  for (const AlgorithmInfo& info : algorithms()) {
    for (const Hyperparameter& one : info.hyperparameters) {
      for (std::uint64_t number = 0; number < 5000; ++number) {
        REQUIRE(drawn_value(one, number) != one.fallback);
      }
    }
  }
}

TEST_CASE("what is no specification is refused, and the message says what would do") {
  CHECK(mentions(refusal("ecd:"), {"algorithm: 'ecd:'", "behind the colon"}));
  CHECK(mentions(refusal("ecd:clock"), {"algorithm: 'ecd:clock'", "ecd:clock=1"}));
  CHECK(mentions(refusal("ecd:clock="), {"algorithm: 'ecd:clock='", "from 1 to 4096"}));
  CHECK(mentions(refusal("ecd:clok=3"), {"'clok'", "did you mean clock?", "it has clock"}));
  CHECK(mentions(refusal("ecd:clock=0"), {"'ecd:clock=0'", "from 1 to 4096", "float32"}));
  CHECK(mentions(refusal("ecd:clock=4097"), {"from 1 to 4096"}));
  CHECK(mentions(refusal("ecd:clock=1.5"), {"a whole number"}));
  CHECK(mentions(refusal("ecd:clock=-1"), {"a whole number"}));
  CHECK(mentions(refusal("ecd:clock=3,clock=4"), {"given twice", "clock is 3 already"}));
  CHECK(mentions(refusal("ecd:clock=4096,clock=4"), {"given twice"}));
  CHECK(mentions(refusal("ecd:clock=3,"), {"'ecd:'", "no hyperparameter ''"}));
  const auto bare = std::ranges::find_if(
      algorithms(), [](const AlgorithmInfo& info) { return info.hyperparameters.empty(); });
  REQUIRE(bare != algorithms().end());
  CHECK(mentions(refusal(fmt::format("{}:eta=1", bare->name)),
                 {fmt::format("{} has no hyperparameters", bare->name)}));
  CHECK(mentions(refusal("zeroone-adam:x=1"), {"it has ", "freeze", "limit"}));
  CHECK(mentions(refusal("zeroone-adam:freeze=0"), {"from 1", "or auto"}));
  CHECK(mentions(refusal("sparseloco:clip=mean"), {"'sparseloco:clip=mean'", "none or median"}));
  CHECK(mentions(refusal("sparseloco:aggregate"), {"sparseloco:aggregate=mean"}));
  CHECK(mentions(refusal("apmsqueeze:freeze=auto"), {"a whole number from 1"}));
  for (const double eta : {0.0, -0.1, 1.1, std::numeric_limits<double>::quiet_NaN(), 1e-46}) {
    CHECK(mentions(refusal(fmt::format("choco:eta={}", eta)),
                   {"above 0", "as float32 holds it", "at most 1"}));
  }
  CHECK(mentions(refusal("sharded:gather"), {"sharded:gather=quant:8"}));
  CHECK(mentions(refusal("sharded:gather="), {"'sharded:gather='"}));
  CHECK(
      mentions(refusal("sharded:gather=quant:99"), {"algorithm: 'sharded:gather=quant:99'", "8"}));
  CHECK(mentions(refusal("sharded:gather=signn"), {"did you mean sign?"}));
  CHECK(mentions(refusal("sharded:scatter=sign"), {"'scatter'", "it has clip and gather"}));
  // The ring of allreduce knows of no node what it sent.
  CHECK(mentions(refusal("allreduce:clip=median"),
                 {"leave it out; 'clip' is of qmean, sharded, sparseloco or demo"}));
  CHECK(mentions(refusal("chocco:eta=1"), {"algorithm: 'chocco'", "did you mean choco?"}));
}

TEST_CASE("derived values are as if they had been given, and do not change given ones") {
  const auto sign = make_compressor("sign");
  AlgorithmSpec spec = parse_algorithm("choco");
  spec.hyperparameters.derive(*sign, 1000);
  CHECK(spec.hyperparameters.has("eta"));
  CHECK(spec.hyperparameters.real("eta") > 0);
  const AlgorithmSpec again = parse_algorithm(spec.text());
  CHECK(again.hyperparameters.real("eta") == spec.hyperparameters.real("eta"));
  AlgorithmSpec given = parse_algorithm("choco:eta=0.125");
  given.hyperparameters.derive(*sign, 1000);
  CHECK(given.text() == "choco:eta=0.125");
}

}  // namespace sotto::test::hyperparameters_test
