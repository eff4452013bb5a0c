// The benchmarks: what they report, not how fast this machine is.
#include <set>
#include <string>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "cli/program.h"

namespace sotto::test::bench_test {

TEST_CASE("bench codec measures both operations of each compressor against copying") {
  const auto result =
      run({"bench", "codec", "--elements", "100000", "--repeats", "2", "--json", "-"}).json();
  CHECK(result.at("copy_bandwidth_gbs").get<double>() > 0);
  std::set<std::string> operations;
  for (const auto& row : result.at("results")) {
    operations.insert(row.at("operation").get<std::string>());
    CHECK(row.at("elements") == 100000);
    CHECK(row.at("threads") == 1);
    CHECK_FALSE(row.at("device").get<std::string>().empty());
    const double gbs = row.at("gbs").get<double>();
    CHECK(gbs > 0);
    CHECK(row.at("fraction_of_limit").get<double>() ==
          doctest::Approx(gbs / result.at("copy_bandwidth_gbs").get<double>()));
  }
  CHECK(operations == std::set<std::string>{"encode", "decode_mix"});
  const auto list = run({"list", "--json", "-"}).json();
  CHECK(result.at("results").size() >= 2 * list.at("compressors").size());
}

TEST_CASE("bench codec measures what is asked for and refuses what is none") {
  const auto result = run({"bench", "codec", "--elements", "1000", "--compressor", "sign",
                           "--compressor", "quant:3", "--json", "-"})
                          .json();
  CHECK(result.at("results").size() == 4);
  const auto together = run({"bench", "codec", "--elements", "200000", "--compressor", "sign",
                             "--threads", "2", "--json", "-"})
                            .json();
  CHECK(together.at("results").size() == 2);
  for (const auto& row : together.at("results")) {
    CHECK(row.at("threads") == 2);
    CHECK(row.at("speedup").get<double>() > 0);
  }
  CHECK(run({"bench", "codec", "--threads", "0"}).status == 2);
  CHECK(run({"bench", "codec", "--threads", "257"}).status == 2);
  CHECK(run({"bench", "codec", "--compressor", "zip"}).status == 2);
  const auto refused = run({"bench", "codec", "--compressor", "topk:2"});
  CHECK(refused.status == 2);
  CHECK(refused.err.find("--compressor: topk:2: KEEP") != std::string::npos);
  CHECK(run({"bench", "codec", "--elements", "0"}).status == 2);
  CHECK(run({"bench"}).status == 2);
}

TEST_CASE("bench codec measures a CUDA device, or says why it cannot") {
  const std::vector<std::string> command = {"bench",        "codec", "--device",  "cuda",
                                            "--elements",   "5000",  "--repeats", "1",
                                            "--compressor", "sign",  "--json",    "-"};
  const auto result = run(command);
  if (result.status == 0) {
    CHECK(result.json().at("results").size() == 2);
  } else {
    CHECK(result.status == 2);
    CHECK(result.err.find("CUDA") != std::string::npos);
  }
  CHECK(run({"bench", "codec", "--device", "abacus"}).status == 2);
  CHECK(run({"bench", "codec", "--device", "cuda", "--threads", "2"}).status == 2);
  CHECK(run({"bench", "codec", "--device", "cuda", "--compressor", "topk:0.1"}).status == 2);
}

TEST_CASE("bench sim measures both engines on the same exchange") {
  const auto result =
      run({"bench", "sim", "--nodes", "3,8", "--seconds", "0.01", "--json", "-"}).json();
  std::set<std::string> seen;
  for (const auto& row : result.at("results")) {
    CHECK(row.at("messages_per_s").get<double>() > 0);
    CHECK(seen.insert(fmt::format("{} {} {}", row.at("engine").get<std::string>(),
                                  row.at("nodes").get<int>(), row.at("contention").get<bool>()))
              .second);
  }
  for (const char* exchange : {"3 false", "3 true", "8 false", "8 true"}) {
    CHECK(seen.contains(fmt::format("sotto {}", exchange)));
  }
#ifdef SOTTO_SIMGRID_RING
  CHECK(seen.size() == 8);
  for (const auto& row : result.at("results")) {
    CHECK(row.contains("ratio_to_simgrid") == (row.at("engine") == "sotto"));
  }
#else
  CHECK(seen.size() == 4);
#endif
}

TEST_CASE("bench sim plays jobs with real gradients and timing only, over the same messages") {
  const auto play = [](const char* job) {
    return run({"bench", "sim", "--job", job, "--nodes", "16", "--rounds", "5", "--dimension",
                "100", "--json", "-"})
        .json()
        .at("results")[0];
  };
  const auto train = play("train");
  const auto rehearse = play("rehearse");
  CHECK(train.at("messages") == 16 * 4 * 5);
  CHECK(train.at("messages") == rehearse.at("messages"));
  CHECK(train.at("trace_sha256") == rehearse.at("trace_sha256"));
  CHECK(train.at("wall_s").get<double>() > 0);
  CHECK(train.at("peak_memory_bytes").get<double>() > 1e6);
}

TEST_CASE("bench sim refuses what it cannot play") {
  CHECK(run({"bench", "sim", "--nodes", "2"}).status == 2);
  const auto words = run({"bench", "sim", "--nodes", "64,many"});
  CHECK(words.status == 2);
  CHECK(words.err.find("--nodes: '64,many' is not what it takes; `sotto bench sim --help`") !=
        std::string::npos);
  CHECK(run({"bench", "sim", "--seconds", "0"}).status == 2);
  CHECK(run({"bench", "sim", "--rounds", "0"}).status == 2);
  CHECK(run({"bench", "sim", "--job", "dance"}).status == 2);
}

}  // namespace sotto::test::bench_test
