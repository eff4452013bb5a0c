// `sotto faults` as a user runs it: the plans of examples/faults, what is refused, and replays.
#include <filesystem>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "cli/program.h"

namespace sotto::test::fault_plans_test {

using nlohmann::json;

namespace {

const std::string kHead = "sotto-faults = 1\ngraph = \"ring\"\nsites = 4\nduration = \"20 s\"\n";

Ended faults(const Scratch& scratch, const std::string& text, const Arguments& more = {}) {
  Arguments all = {"faults", scratch.write("plan.toml", text).string()};
  all.insert(all.end(), more.begin(), more.end());
  return run(all);
}

}  // namespace

TEST_CASE("every plan of the examples holds") {
  std::size_t found = 0;
  for (const auto& entry : std::filesystem::directory_iterator(SOTTO_FAULT_PLANS)) {
    CAPTURE(entry.path());
    ++found;
    const json result =
        run({"faults", entry.path().string(), "--seeds", "3", "--json", "-"}).json();
    CHECK(result.at("seeds") == 3);
    CHECK(result.at("violation").is_null());
    CHECK(result.at("worst_mass_error").get<double>() <= 1e-9);
    CHECK(result.at("rounds_least").get<int>() > 0);
  }
  CHECK(found >= 12);
}

TEST_CASE("a plan that is wrong is refused with line and key") {
  const Scratch scratch;
  const std::vector<std::pair<std::string, std::vector<std::string>>> wrong = {
      {"", {"sotto-faults", "version"}},
      {kHead + "sitse = 3\n", {":5", "sitse"}},
      {kHead + "[site]\nsilence = \"0\"\n", {":6", "site.silence"}},
      {kHead + "[[fault]]\nkind = \"kil\"\n", {":6", "fault", "kind", "kill"}},
      {kHead + "[[fault]]\nkind = \"kill\"\nsites = \"7\"\n", {":7", "sites"}},
      {kHead + "[[fault]]\nkind = \"kill\"\nsites = \"1\"\n", {"at", "round"}},
      {kHead + "[[fault]]\nkind = \"kill\"\nsites = \"1\"\nat = \"1 s\"\npeers = \"2\"\n",
       {"happens to sites"}},
      {kHead + "[[fault]]\nkind = \"reset\"\nsites = \"1\"\nat = \"1 s\"\nfor = \"2 s\"\n",
       {":9", "for"}},
      {kHead + "[random]\nevents = 3\nkinds = [\"join\"]\n", {"cannot be drawn"}},
      {kHead + "[[liar]]\nkind = \"mint\"\nsites = \"1\"\n", {":6", "mints"}},
      {kHead + "[[liar]]\nkind = \"mints\"\nsites = \"1\"\nstrength = 1e6\n", {"strength"}},
      {kHead + "[[liar]]\nkind = \"takes\"\nsites = \"1\"\noften = 0.5\n", {"often"}},
      {kHead + "[random]\nevents = 0\nliars = 5\n", {"liars", "4 sites"}},
      {kHead + "[random]\nevents = 0\nliars = 1\nlies = [\"lie\"]\n", {"random.lies"}},
      {kHead + "[site]\nstep-weighting = \"even\"\n", {":6", "equal"}},
      {kHead + "[random]\nevents = 3\nuntil = \"1 h\"\n", {"until"}},
      {kHead + "exchange = \"gossip\"\ncompressor = \"quant\"\n", {"quant"}}};
  for (const auto& [text, parts] : wrong) {
    const Ended ended = faults(scratch, text);
    CAPTURE(text);
    CAPTURE(ended.err);
    CHECK(ended.status == 2);
    for (const std::string& part : parts) {
      CHECK_MESSAGE(ended.err.find(part) != std::string::npos, part);
    }
  }
  CHECK(faults(scratch, kHead, {"--seeds", "2", "--trace", "t.txt"}).status == 2);
}

TEST_CASE("a seed that fails is told with a way to see it again, and replays exactly") {
  const Scratch scratch;
  // More rounds than there is time for.
  const std::string text = kHead + "rounds = 100000\n[random]\nevents = 4\n";
  const Ended ended = faults(scratch, text, {"--seed", "5", "--seeds", "3", "--threads", "2"});
  CHECK(ended.status == 1);
  CHECK(contains(ended.err, "seed 5"));
  CHECK(contains(ended.err, "--seed 5 --trace"));
  const auto hash = [&](const std::string& seed) {
    const json result = faults(scratch, kHead + "[random]\nevents = 9\n",
                               {"--seed", seed, "--seeds", "2", "--json", "-"})
                            .json();
    return result.at("runs").at(0).at("trace_sha256").get<std::string>();
  };
  CHECK(hash("3") == hash("3"));
  CHECK(hash("3") != hash("4"));
}

TEST_CASE("sotto faults says in its help what plays a plan on real sites") {
  const std::string plan = SOTTO_FAULT_PLANS "/real-minute.toml";
  const Ended ended = run({"faults", plan, "--real"});
  CHECK(ended.status == 2);
  CHECK_MESSAGE(contains(ended.err, "`sotto faults --help` shows all"), ended.err);
  CHECK(contains(run({"faults", "--help"}).out, "bench/sitelab"));
}

}  // namespace sotto::test::fault_plans_test
