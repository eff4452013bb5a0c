// What settings of sotto.h come to: privacy, keys and peers, and what a report says of them.
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <sotto/comm/transport.h>
#include <sotto/comm/trust/key_file.h>

#include "bindings/c_node.h"
#include "support/scratch.h"
#include "support/skip.h"

namespace sotto::test::c_settings_test {

namespace {

constexpr std::size_t kDimension = 20;

/// The settings of a node that is alone, and `more`.
Words alone_with(const Words& more) {
  Words words = {"nodes", "1", "rank", "0", "clip-norm", "1", "rounds", "100"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

/// Whether one of the report's warnings says `what`.
bool warns(sotto_optimizer* optimizer, const std::string& what) {
  const auto report = c_report(optimizer);
  const auto& warnings = report.at("warnings");
  return std::any_of(warnings.begin(), warnings.end(), [&](const nlohmann::json& warning) {
    return contains(warning.get<std::string>(), what);
  });
}

}  // namespace

TEST_CASE("an output that is lost is told under the name of its setting") {
  std::vector<float> x(kDimension, 0);
  const COptimizer optimizer =
      c_optimizer({"nodes", "1", "rank", "0", "log-json", "/dev/full", "report-every", "1"}, x);
  REQUIRE(optimizer != nullptr);
  const std::vector<float> gradient(kDimension, 1);
  for (int round = 0; round < 3; ++round) {
    REQUIRE(sotto_optimizer_step(optimizer.get(), gradient.data(), gradient.size()) == SOTTO_OK);
  }
  CHECK(warns(optimizer.get(), "log_json: /dev/full: "));
}

TEST_CASE("settings of privacy that are out of range are refused by name") {
  struct Case {
    Words words;
    std::string message;
  };
  const Case cases[] = {
      {{"privacy-epsilon", "1", "privacy-delta", "2"}, "privacy_delta: '2' is refused"},
      {{"privacy-epsilon", "1", "privacy-delta", "0"}, "privacy_delta: '0' is refused"},
      {{"privacy-epsilon", "1", "privacy-delta", "nan"}, "privacy_delta: 'nan' is refused"},
      {{"privacy-epsilon", "nan"}, "privacy_epsilon: 'nan' is refused"},
      {{"privacy-epsilon", "inf"}, "privacy_epsilon: 'inf' is refused"},
      {{"privacy-epsilon", "-1"}, "privacy_epsilon: '-1' is refused"},
      {{"privacy-epsilon", "1", "sampling-rate", "0.5"}, "sampling_rate: '0.5' is refused"},
      {{"noise-multiplier", "nan"}, "noise_multiplier: 'nan' is refused"},
  };
  std::vector<float> x(kDimension);
  for (const Case& one : cases) {
    CAPTURE(one.words.back());
    Words words = alone_with(one.words);
    words.insert(words.end(), {"privacy-unit", "update"});
    CHECK(c_optimizer(words, x).get() == nullptr);
    CHECK(says(one.message));
  }
  for (const char* rate : {"2", "-1", "nan", "0"}) {
    CAPTURE(rate);
    const Words words =
        alone_with({"privacy-epsilon", "1", "sampling-rate", rate, "privacy-batch", "3"});
    CHECK(c_optimizer(words, x).get() == nullptr);
    CHECK(says(fmt::format("sampling_rate: '{}' is refused", rate)));
  }
  const Words endless = {"nodes",           "1", "clip-norm",    "1",
                         "privacy-epsilon", "1", "privacy-unit", "update"};
  CHECK(c_optimizer(endless, x).get() == nullptr);
  CHECK(
      says("privacy_epsilon: how much noise it takes depends on the number of rounds: give "
           "rounds, or noise_multiplier"));
  // So generous that the least noise there is would do.
  const Words generous =
      alone_with({"privacy-epsilon", "1000", "privacy-delta", "0.99", "privacy-unit", "update"});
  CHECK_MESSAGE(c_optimizer(generous, x).get() != nullptr, std::string(sotto_last_error()));
}

TEST_CASE("what an algorithm refuses names settings as the caller gives them") {
  std::vector<float> x(kDimension);
  const Words words = alone_with({"algorithm", "dcd", "compressor", "topk:0.1"});
  CHECK(c_optimizer(words, x).get() == nullptr);
  CHECK(says("compressor: 'topk:0.1' is refused: "));
  CHECK(says("or allow it explicitly with allow_contract_violation=\"true\""));
}

TEST_CASE("a private run that has spent its budget is saved, finished and gone on from") {
  const Words words = alone_with({"noise-multiplier", "1", "privacy-epsilon", "8", "privacy-unit",
                                  "update", "privacy-seed", "3"});
  std::vector<float> x(kDimension);
  const std::vector<float> gradient(kDimension, 0.1F);
  const COptimizer optimizer = c_optimizer(words, x);
  CHECK(warns(optimizer.get(), "privacy_seed: NOTHING IS HIDDEN"));
  CHECK_FALSE(warns(optimizer.get(), "--"));
  sotto_status status = SOTTO_OK;
  for (int round = 0; status == SOTTO_OK && round < 1000; ++round) {
    status = sotto_optimizer_step(optimizer.get(), gradient.data(), gradient.size());
  }
  REQUIRE(status == SOTTO_BUDGET);
  const auto state = c_state(optimizer.get());
  std::vector<float> y(kDimension);
  const COptimizer second = c_optimizer(words, y);
  CHECK(sotto_optimizer_load(second.get(), state.data(), state.size()) == SOTTO_OK);
  CHECK(y == x);
  CHECK(sotto_optimizer_step(second.get(), gradient.data(), gradient.size()) == SOTTO_BUDGET);
  CHECK(sotto_optimizer_finish(optimizer.get()) == SOTTO_OK);
  CHECK(sotto_optimizer_finish(second.get()) == SOTTO_OK);
}

TEST_CASE("parameters that Adam's freeze finds without a variance are in the report from then on") {
  for (const char* algorithm : {"apmsqueeze", "onebit-adam-gossip"}) {
    CAPTURE(algorithm);
    std::vector<float> x(kDimension);
    std::vector<float> gradient(kDimension, 0.1F);
    std::fill_n(gradient.begin(), 4, 0.0F);
    const COptimizer optimizer =
        c_optimizer({"nodes", "1", "rank", "0", "algorithm", algorithm, "freeze-step", "3"}, x);
    REQUIRE_MESSAGE(optimizer.get() != nullptr, std::string(sotto_last_error()));
    for (int round = 0; round < 5; ++round) {
      CHECK(warns(optimizer.get(), "4 of 20 parameters had no gradient") == (round >= 3));
      CHECK(sotto_optimizer_step(optimizer.get(), gradient.data(), gradient.size()) == SOTTO_OK);
    }
    CHECK(sotto_optimizer_finish(optimizer.get()) == SOTTO_OK);
  }
}

TEST_CASE("what the job agrees on beside settings is reported apart, whatever its names") {
  std::vector<float> x(kDimension);
  const COptimizer optimizer = c_optimizer(
      {"nodes", "1", "lr", "0.25", "job.lr", "mine", "job.a_b", "1", "job.a-b", "2"}, x);
  REQUIRE_MESSAGE(optimizer.get() != nullptr, std::string(sotto_last_error()));
  const auto report = c_report(optimizer.get());
  CHECK(report.at("settings").at("lr") == "0.25");
  CHECK_FALSE(report.at("settings").contains("a_b"));
  CHECK(report.at("job") == nlohmann::json({{"lr", "mine"}, {"a_b", "1"}, {"a-b", "2"}}));
}

TEST_CASE("helps name settings as they are given here") {
  char* text = nullptr;
  REQUIRE(sotto_list("settings", &text) == SOTTO_OK);
  for (const auto& item : c_json(text)) {
    const std::string help = item.at("help");
    CHECK_MESSAGE(!contains(help, "--"), help);
  }
}

TEST_CASE("a peer that is taken off the list during the run is heard no more") {
  const auto all = sotto::transports();
  if (std::none_of(all.begin(), all.end(), [](const sotto::TransportInfo& info) {
        return info.available && info.encrypts;
      })) {
    SOTTO_SKIP("this build has no transport that encrypts");
  }
  constexpr std::uint64_t kMostRounds = 200'000;  // seconds, where a look is due in a fifth
  const Scratch folder;
  const sotto::KeyPair keys[] = {sotto::make_key_pair(), sotto::make_key_pair()};
  const auto file = [&](const char* name, int rank) {
    return (folder.path() / fmt::format("{}-{}", name, rank)).string();
  };
  const auto put_list = [&](int rank, const std::string& comment, const char* may_send) {
    folder.write("new",
                 fmt::format("# {}\nrank,key,may_send\n0,{},yes\n1,{},{}\n", comment,
                             keys[0].public_key.text(), keys[1].public_key.text(), may_send));
    std::filesystem::rename(folder.path() / "new", file("peers", rank));
  };
  for (const int rank : {0, 1}) {
    sotto::write_key_file(file("key", rank), "test", keys[rank]);
    put_list(rank, "first", "yes");
  }
  const CStore store = c_store();
  c_play(2, [&](int rank) {
    std::vector<float> x(kDimension);
    const COptimizer optimizer = c_optimizer(
        {"nodes", "2", "transport", "zmq", "key", file("key", rank), "peers", file("peers", rank)},
        x, store.get());
    const bool there = optimizer != nullptr;
    CHECK_MESSAGE(there, std::string(sotto_last_error()));
    sotto_status status = there ? SOTTO_OK : SOTTO_REFUSED;
    bool noticed = false;
    for (std::uint64_t round = 0; status == SOTTO_OK && round < kMostRounds; ++round) {
      status = sotto_optimizer_step(optimizer.get(), x.data(), x.size());
      if (rank == 0 && !noticed && round % 64 == 0) {
        put_list(0, std::to_string(round), "yes");  // until a look has seen a change
        noticed = warns(optimizer.get(), "its 2 lines are in force");
        if (noticed) {
          put_list(0, "last", "no");
        }
      }
    }
    CHECK(noticed == (rank == 0));
    CHECK(status == SOTTO_PEER_LOST);
    // All nodes end with the words of the first that gives up, which may be the one that is cut
    // off.
    const std::string error = sotto_last_error();
    CAPTURE(error);
    CHECK((error.find("does not trust it any more") != std::string::npos ||
           error.find("node 1, round ") != std::string::npos));
  });
}

}  // namespace sotto::test::c_settings_test
