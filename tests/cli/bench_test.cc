// The benchmarks: what they report, not how fast this machine is.
#include <set>
#include <string>

#include <doctest/doctest.h>

#include "cli/program.h"

using namespace sotto::test;

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
  CHECK(run({"bench", "codec", "--compressor", "zip"}).status == 2);
  CHECK(run({"bench", "codec", "--elements", "0"}).status == 2);
  CHECK(run({"bench"}).status == 2);
}
