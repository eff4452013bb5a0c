// `sitelab`: plans of faults on processes of `sotto node`, in their short form; the
// long one is examples/faults/real-soak.toml.
#include <cmath>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "cli/program.h"
#include "support/skip.h"
#include "support/text_of_file.h"

namespace sotto::test::real_sites_test {

namespace {

const std::string kHead =
    "sotto-faults = 1\ngraph = \"ring\"\nsites = 4\nduration = \"12 s\"\n"
    "link = { bandwidth = \"100 Mbit/s\", latency = \"1 ms\" }\n"
    "[site]\ngradient = \"40 ms\"\npatience = \"2 s\"\nsilence = \"1 s\"\nfound-after = \"2 s\"\n";

Ended faults(const Scratch& scratch, const std::string& text, const Arguments& more = {}) {
  Arguments all = {SOTTO_SITELAB, scratch.write("plan.toml", text).string(), "--json", "-"};
  all.insert(all.end(), more.begin(), more.end());
  return Process(all).wait();
}

int count(const std::string& text, std::string_view part) {
  int found = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++found;
  }
  return found;
}

std::string at(const std::string& kind, const std::string& sites, const std::string& more) {
  return "[[fault]]\nkind = \"" + kind + "\"\nsites = \"" + sites + "\"\n" + more + "\n";
}

}  // namespace

TEST_CASE("real sites that are killed, stopped and leave get on, and lose no mass") {
  if (!has_transport("zmq")) {
    SOTTO_SKIP("built without ZeroMQ");
  }
  const Scratch scratch;
  const auto kept = scratch.path() / "kept";
  const auto found =
      faults(scratch,
             kHead + at("kill", "0", "at = \"2 s\"\nmoment = \"before-commit\"\nfor = \"500 ms\"") +
                 at("kill", "1", "round = 15\nmoment = \"before-release\"\nfor = \"500 ms\"") +
                 at("stop", "2", "at = \"3 s\"\nfor = \"2500 ms\"") +
                 at("leave", "3", "at = \"2500 ms\"\nfor = \"1 s\"") +
                 at("partition", "0, 1", "peers = \"2, 3\"\nat = \"4 s\"\nfor = \"1 s\"") +
                 at("reset", "2", "at = \"6 s\"\npeers = \"3\"\nbytes = 5000"),
             {"--keep", kept.string(), "--seed", "3"})
          .json();
  CHECK(found.at("violation").is_null());
  for (const char* kind : {"stop", "leave", "partition", "reset"}) {
    CHECK(found.at("injected").at(kind) == 1);
  }
  CHECK(found.at("injected").at("kill") == 2);
  CHECK(found.at("starts") == 7);
  CHECK(found.at("rounds")[0] > 0);
  CHECK(found.at("resets") == 0);
  CHECK(found.at("offences") == 0);
  CHECK(found.at("mass").at("minted") == 4);
  CHECK(std::abs(found.at("mass").at("lost").get<double>()) <= 1e-9);
  CHECK(found.at("mass").at("worst_error_of_a_site").get<double>() <= 1e-9);
  CHECK(std::filesystem::exists(kept / "site-0" / "state" / "life"));
}

TEST_CASE("real sites whose states are lost, damaged or old begin anew beside the others") {
  if (!has_transport("zmq")) {
    SOTTO_SKIP("built without ZeroMQ");
  }
  const Scratch scratch;
  const auto found =
      faults(scratch, kHead + at("lose", "0", "at = \"2500 ms\"\nfor = \"200 ms\"") +
                          at("restore", "1", "at = \"4 s\"\nback = 6\nfor = \"200 ms\"") +
                          at("corrupt", "2", "at = \"5 s\"\nfor = \"200 ms\"") +
                          at("forget", "3", "peers = \"0\"\nat = \"4 s\"\nfor = \"1500 ms\""))
          .json();
  CHECK(found.at("violation").is_null());
  CHECK(found.at("starts") == 7);
  CHECK(found.at("resets") >= 1);
  CHECK(found.at("mass").at("minted") >= 6);
  CHECK(found.at("mass").at("lost").get<double>() > 0);
  CHECK(found.at("mass").at("worst_error_of_a_site").is_null());
}

TEST_CASE("real sites: who was replaced and goes on leaves its successor's channels alone") {
  if (!has_transport("zmq")) {
    SOTTO_SKIP("built without ZeroMQ");
  }
  const Scratch scratch;
  const auto kept = scratch.path() / "kept";
  const auto found =
      faults(scratch,
             "sotto-faults = 1\ngraph = \"complete\"\nsites = 3\nduration = \"13 s\"\n"
             "[site]\ngradient = \"40 ms\"\nsilence = \"1 s\"\n" +
                 at("replace", "2", "at = \"2 s\"\nfor = \"3 s\""),
             {"--keep", kept.string()})
          .json();
  CHECK(found.at("violation").is_null());
  CHECK(found.at("starts") == 4);
  const std::string log = text_of_file(kept / "site-0" / "log");
  CHECK_MESSAGE(count(log, "peer-contested") == 1, log);
  CHECK_MESSAGE(count(log, "\"peer-up\"") == 3, log);  // site 1, and both processes of site 2
}

TEST_CASE("real sites: 64 MiB message at 1 Mbit/s, in small: nobody is taken for dead") {
  if (!has_transport("zmq")) {
    SOTTO_SKIP("built without ZeroMQ");
  }
  const Scratch scratch;
  const auto kept = scratch.path() / "kept";
  // Parcels of 31 kB take two seconds each way at once.
  const auto found =
      faults(scratch,
             "sotto-faults = 1\ngraph = \"ring\"\nsites = 3\nduration = \"18 s\"\n"
             "link = { bandwidth = \"125 kbit/s\", latency = \"10 ms\" }\n"
             "[site]\ngradient = \"250 ms\"\npatience = \"10 s\"\nsilence = \"1 s\"\n",
             {"--keep", kept.string()})
          .json();
  CHECK(found.at("violation").is_null());
  CHECK(found.at("rounds")[0] >= 4);
  CHECK(std::abs(found.at("mass").at("lost").get<double>()) <= 1e-9);
  for (const char* site : {"site-0", "site-1", "site-2"}) {
    const std::string log = text_of_file(kept / site / "log");
    CHECK_MESSAGE(count(log, "nothing was heard") == 0, log);
  }
}

TEST_CASE("real sites beside real liars go on, and name them in log, status and metrics") {
  if (!has_transport("zmq")) {
    SOTTO_SKIP("built without ZeroMQ");
  }
  const Scratch scratch;
  const auto found =
      faults(scratch,
             "sotto-faults = 1\ngraph = \"complete\"\nsites = 6\nduration = \"9 min\"\n"
             "rounds = 160\n"
             "compressor = \"quant:8\"\n"
             "link = { bandwidth = \"1 Gbit/s\", latency = \"1 ms\" }\n"
             "[site]\ngradient = \"40 ms\"\npatience = \"1 s\"\nsilence = \"2 s\"\n"
             "found-after = \"2 s\"\n"
             "[[liar]]\nkind = \"mints\"\nsites = \"1\"\n"
             "[[liar]]\nkind = \"kills\"\nsites = \"4\"\n"
             "[[liar]]\nkind = \"late\"\nsites = \"5\"\n")
          .json();
  CAPTURE(found.dump());
  CHECK(found.at("violation").is_null());
  CHECK(found.at("rounds")[0] >= 160);
  CHECK(found.at("honest_accused") == 0);
  CHECK(found.at("rounds_of")[1].is_null());
  CHECK(found.at("accuracy_of")[0] > 0.3);
  REQUIRE(found.at("named").size() == 3);
  for (const auto& liar : found.at("named")) {
    for (const char* place : {"log", "status", "metrics"}) {
      CAPTURE(place);
      CHECK(liar.at(place) == liar.at("neighbours"));
    }
  }
}

TEST_CASE("a real run that does not hold says so, and fails") {
  if (!has_transport("zmq")) {
    SOTTO_SKIP("built without ZeroMQ");
  }
  const Scratch scratch;
  // More rounds than there is time for.
  const Ended ended = faults(scratch,
                             "rounds = 100000\nsotto-faults = 1\ngraph = \"complete\"\nsites = 2\n"
                             "duration = \"2 s\"\n[site]\ngradient = \"40 ms\"\n");
  CHECK(ended.status == 1);
  CHECK_MESSAGE(contains(ended.err, "some have not done 100000 rounds"), ended.err);
  const auto found = nlohmann::json::parse(ended.out);
  CHECK(found.at("violation").at("during") == "the end of the run");
  CHECK(found.at("mass").at("lost").get<double>() == doctest::Approx(0));
}

TEST_CASE("what cannot be done to real sites is refused by name") {
  const Scratch scratch;
  const std::vector<std::pair<std::string, std::string>> wrong = {
      {kHead + at("clock", "1", "at = \"1 s\""), "clock"},
      {kHead + "[random]\nevents = 3\n", "kinds: 'clock'"},
      {"sotto-faults = 1\ngraph = \"ring\"\nsites = 33\nduration = \"9 s\"\n", "32 at most"},
      {"sotto-faults = 1\ngraph = \"ring\"\nsites = 3\nduration = \"9 s\"\n"
       "link = { jitter = \"1 ms\" }\n",
       "jitter"}};
  for (const auto& each : wrong) {
    const Ended ended = faults(scratch, each.first);
    CAPTURE(each.first);
    CHECK(ended.status == 2);
    CHECK_MESSAGE(contains(ended.err, each.second), ended.err);
  }
  const Ended kept = faults(scratch, kHead, {"--keep", scratch.path().string()});
  CHECK(kept.status == 2);
  CHECK(contains(kept.err, "--keep"));
  const Ended refused = faults(scratch, "exchange = \"push-sum\"\nrule = \"median\"\n" + kHead);
  CHECK(refused.status == 2);
  CHECK_MESSAGE(contains(refused.err, "push-sum"), refused.err);
}

}  // namespace sotto::test::real_sites_test
