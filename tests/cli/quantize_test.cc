// `sotto checkpoint quantize` as its user types it.
#include <filesystem>
#include <string>

#include <doctest/doctest.h>

#include "cli/scenario_text.h"

namespace sotto::test::quantize_test {

namespace fs = std::filesystem;

namespace {

constexpr const char* kData = "digits,train=320,test=100";

}  // namespace

TEST_CASE("a run's model is written in fewer bits, and another run starts from it") {
  const Scratch scratch;
  const std::string saved = (scratch.path() / "saved").string();
  const std::string small = (scratch.path() / "small.safetensors").string();
  REQUIRE(run({"train", "--task", kData, "--model", "mlp:16", "--nodes", "2", "--rounds", "20",
               "--checkpoint", saved, "--quiet"})
              .status == 0);
  const Ended ended =
      run({"checkpoint", "quantize", saved, small, "--loss-budget", "0.02", "--json", "-"});
  CAPTURE(ended.err);
  REQUIRE(ended.status == 0);
  const auto json = ended.json();
  CHECK(json.at("bytes").get<double>() < 0.3 * json.at("exact_bytes").get<double>());
  CHECK(json.at("loss_after").get<double>() <= json.at("loss_before").get<double>() + 0.02);
  CHECK(fs::file_size(small) < 0.4 * json.at("exact_bytes").get<double>());
  const Ended again = run({"train", "--task", kData, "--model", "mlp:16", "--nodes", "1",
                           "--rounds", "1", "--lr", "0", "--init", small, "--json", "-"});
  CAPTURE(again.err);
  REQUIRE(again.status == 0);
  CHECK(again.json().at("final").at("loss").get<double>() ==
        doctest::Approx(json.at("loss_after").get<double>()).epsilon(1e-6));
  const std::string table = run({"checkpoint", "quantize", small, small + ".safetensors", "--task",
                                 kData, "--model", "mlp:16"})
                                .out;
  CHECK(table.find("loss, predicted") != std::string::npos);
}

TEST_CASE("what cannot be quantized is refused with what to do") {
  const Scratch scratch;
  const std::string out = (scratch.path() / "o.safetensors").string();
  const std::string model = scratch.write("x.csv", "1,2,3\n").string();
  CHECK(run({"checkpoint", "quantize", model, "o.bin", "--task", kData}).err.find(".safetensors") !=
        std::string::npos);
  CHECK(run({"checkpoint", "quantize", model, out}).err.find("--task") != std::string::npos);
  CHECK(run({"checkpoint", "quantize", model, out, "--task", kData}).err.find("x.csv") !=
        std::string::npos);
  CHECK(run({"checkpoint", "quantize", "nowhere.csv", out, "--task", kData}).status != 0);
  CHECK_FALSE(fs::exists(out));
}

}  // namespace sotto::test::quantize_test
