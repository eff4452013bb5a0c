// Runs in few words: what is written is what is read, whatever the order of its words.
#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/error.h>
#include <sotto/study/train/run_spec.h>

namespace sotto::test::run_spec_test {

using namespace sotto::study;

namespace {

std::string refusal_of(const std::string& words) {
  try {
    (void)joined_settings(parse_run(words), {});
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("a run's words are read in any order behind the algorithm") {
  constexpr std::array<std::pair<const char*, const char*>, 6> kWords = {{{"compressor", "quant:8"},
                                                                          {"topology", "torus:2x4"},
                                                                          {"lr", "0.05"},
                                                                          {"weight-decay", "0.001"},
                                                                          {"batch", "16"},
                                                                          {"rounds", "70"}}};
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    std::vector<std::pair<std::string, std::string>> chosen(kWords.begin(), kWords.end());
    std::shuffle(chosen.begin(), chosen.end(), random);
    chosen.resize(random() % (chosen.size() + 1));
    std::string words = "dcd";
    for (const auto& [name, value] : chosen) {
      words += name == "compressor" || name == "topology" ? " " + value : " " + name + "=" + value;
    }
    CAPTURE(words);
    const RunSpec run = parse_run(words);
    CHECK(run.name == words);
    CHECK(run.algorithm() == "dcd");
    CHECK(run.settings.size() == chosen.size() + 1);
    for (const auto& [name, value] : kWords) {
      const bool given = std::any_of(chosen.begin(), chosen.end(),
                                     [&](const auto& one) { return one.first == name; });
      const std::string* found = run.find(name);
      REQUIRE((found != nullptr) == given);
      CHECK((!given || *found == value));
    }
  }
}

TEST_CASE("a run that is made of parts reads its own name") {
  for (const char* compressor : {"", "sign", "topk:0.01"}) {
    for (const char* topology : {"", "ring", "torus:2x4"}) {
      const RunSpec made = run_of("choco", compressor, topology).with("lr", "0.1");
      const RunSpec read = parse_run(made.name);
      CAPTURE(made.name);
      REQUIRE(read.settings.size() == made.settings.size());
      for (std::size_t i = 0; i < made.settings.size(); ++i) {
        CHECK(read.settings[i].name == made.settings[i].name);
        CHECK(read.settings[i].value == made.settings[i].value);
      }
    }
  }
}

TEST_CASE("a run's own length replaces the shared one, and its values the shared ones") {
  TrainOptions shared;
  shared.rounds = 10;
  const TrainOptions options = with_run(shared, parse_run("dcd quant:8 epochs=3"));
  CHECK_FALSE(options.rounds);
  REQUIRE(options.epochs);
  CHECK(*options.epochs == 3);
  CHECK(with_run(shared, parse_run("dcd quant:8")).rounds == shared.rounds);

  const std::vector<RunSetting> common = {{"rounds", "10"}, {"lr", "0.1"}, {"batch", "8"}};
  CHECK(joined_settings(parse_run("dcd batch=4 epochs=3"), common) ==
        std::vector<RunSetting>{
            {"lr", "0.1"}, {"algorithm", "dcd"}, {"batch", "4"}, {"epochs", "3"}});
}

TEST_CASE("a word of a run that means nothing is refused with what would do") {
  CHECK(refusal_of("dcd quant:8 ring").empty());
  CHECK(refusal_of("").find("it starts with an algorithm") != std::string::npos);
  CHECK(refusal_of("dcd rign").find("neither a compressor nor a topology") != std::string::npos);
  CHECK(refusal_of("dcd trous").find("torus") != std::string::npos);
  CHECK(refusal_of("dcd lr").find("'lr' has no value; write lr=") != std::string::npos);
  CHECK(refusal_of("dcd ring torus:2x4").find("it has two values for ") != std::string::npos);
  CHECK(refusal_of("dcd json=x").find("holds for all runs") != std::string::npos);
  CHECK(refusal_of("dcd weight-dekay=1").find("weight-decay") != std::string::npos);
  CHECK(refusal_of("dcd epochs=1 rounds=2").find(" excludes ") != std::string::npos);
  CHECK(refusal_of("dcd lr=fast").find("lr") != std::string::npos);
}

}  // namespace sotto::test::run_spec_test
