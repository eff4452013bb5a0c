// `sotto checkpoint untie`: layers that shared weights get their own, and a run goes on from them.
#include <cmath>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

#include "cli/program.h"
#include "cli/verse.h"

namespace sotto::test::untie_test {

namespace {

Arguments train(const std::string& task, const std::string& model, const Arguments& more) {
  Arguments all = {"train",   "--task", task,          "--model",   model,       "--nodes", "2",
                   "--batch", "4",      "--algorithm", "allreduce", "--timeout", "60"};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

/// Node 0's numbers in a file of final models.
std::vector<double> model_in(const std::string& file) {
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  std::vector<double> values;
  std::istringstream row(line);
  for (std::string cell; std::getline(row, cell, ',');) {
    values.push_back(std::stod(cell));
  }
  return values;
}

/// The share that moved by the learning rate, of all elements that moved: the first step of Adam
/// with moments of 0, (1 − β₁) g / (1 − β₁) over the root of (1 − β₂) g² / (1 − β₂).
double moved_by_rate(const std::vector<double>& from, const std::vector<double>& to, double rate) {
  REQUIRE(from.size() == to.size());
  double moved = 0;
  double by_rate = 0;
  for (std::size_t k = 0; k < from.size(); ++k) {
    const double movement = std::abs(to[k] - from[k]) / rate;
    moved += movement > 1e-3 ? 1 : 0;
    by_rate += std::abs(movement - 1) < 1e-3 ? 1 : 0;
  }
  REQUIRE(moved > 0.5 * static_cast<double>(from.size()));
  return by_rate / moved;
}

}  // namespace

TEST_CASE("after untying Adam's moments begin at 0, and layers move by gradients of their own") {
  const Scratch scratch;
  const std::string task = "text:" + scratch.write("verse.txt", verse()).string() + ",context=6";
  const auto at = [&](const char* name) { return (scratch.path() / name).string(); };
  const auto trained = [&](const std::string& model, const std::string& dump, Arguments more) {
    more.insert(more.end(), {"--step-rule", "adam", "--dump-parameters", dump});
    const auto ended = run(train(task, model, more));
    CAPTURE(ended.err);
    REQUIRE(ended.status == 0);
    return model_in(dump);
  };
  const std::string tied = "transformer:2,8,2,share=2";
  const std::string whole = "transformer:2,8,2";
  const std::string untied = at("untied.safetensors");
  const auto before = trained(tied, at("tied.csv"),
                              {"--rounds", "5", "--lr", "0.01", "--checkpoint", at("folder")});
  REQUIRE(run({"checkpoint", "untie", at("folder"), untied}).status == 0);
  // The tied run that goes on has moments, which few elements agree with.
  const auto resumed =
      trained(tied, at("resumed.csv"),
              {"--rounds", "6", "--lr", "0.01", "--checkpoint", at("folder"), "--resume"});
  CHECK(moved_by_rate(before, resumed, 0.01) < 0.5);

  const auto start =
      trained(whole, at("start.csv"), {"--rounds", "1", "--lr", "0", "--init", untied});
  const auto moved =
      trained(whole, at("moved.csv"), {"--rounds", "1", "--lr", "0.01", "--init", untied});
  CHECK(moved_by_rate(start, moved, 0.01) > 0.9);

  // The mlps of both layers, the last tensors of each, were equal and are no longer.
  const std::size_t tensors = 12 * 8 * 8 + 10 * 8;  // elements of a layer
  const std::size_t mlp = 8 * 8 * 8 + 5 * 8;        // of these, its last ones
  const std::size_t symbols = (start.size() - 6 * 8 - 2 * tensors - 2 * 8) / 17;
  const std::size_t end = symbols * 8 + 6 * 8 + 2 * tensors;
  REQUIRE(start.size() == end + 2 * 8 + symbols * 9);
  int apart = 0;
  for (std::size_t k = end - mlp; k < end; ++k) {
    CHECK(start[k] == start[k - tensors]);
    apart += moved[k] != moved[k - tensors] ? 1 : 0;
  }
  CHECK(apart > static_cast<int>(mlp / 4));
}

TEST_CASE("a tied model is trained, untied, and computes what it did, from folder and from file") {
  const Scratch scratch;
  const std::string task = "text:" + scratch.write("verse.txt", verse()).string() + ",context=6";
  const std::string folder = (scratch.path() / "tied").string();
  const std::string file = (scratch.path() / "tied.safetensors").string();
  const std::string untied = (scratch.path() / "untied.safetensors").string();
  const std::string again = (scratch.path() / "again.safetensors").string();
  const auto tied = run(train(task, "transformer:4,8,2,share=4",
                              {"--rounds", "5", "--checkpoint", folder, "--json", "-"}));
  const auto before = tied.json().at("final").at("loss");
  // Two nodes send each other all elements once in two frames: the wire has the tied block once.
  const auto dimension = tied.json().at("dimension").get<double>();
  CHECK(tied.json().at("bytes_sent_per_node").at(0).get<double>() == 5 * (4 * dimension + 128));

  const auto ended = run({"checkpoint", "untie", folder, untied, "--json", "-"});
  const auto report = ended.json();
  CHECK(report.at("model") == "transformer:4,8,2");
  CHECK(report.at("layers") == 4);
  CHECK(report.at("sets") == 1);
  CHECK(report.at("tied_parameters").get<double>() == dimension);
  const int block = 12 * 8 * 8 + 6 * 8;
  CHECK(report.at("parameters").get<int>() == report.at("tied_parameters").get<int>() + 3 * block);

  // A run that does not move has the loss of the tied one, to the bit.
  const auto from = [&](const std::string& start) {
    const auto moved = run(train(task, "transformer:4,8,2",
                                 {"--rounds", "1", "--lr", "0", "--init", start, "--json", "-"}));
    return moved.json().at("final").at("loss");
  };
  CHECK(from(untied) == before);

  REQUIRE(run({"checkpoint", "export", folder, "--mean", file}).status == 0);
  const auto of_file = run({"checkpoint", "untie", file, again});
  CAPTURE(of_file.err);
  REQUIRE(of_file.status == 0);
  CHECK(contains(of_file.out, "4 layers with weights of their own, of 1 set before"));
  CHECK(from(again) == before);
}

TEST_CASE("what has no tied layers is not untied, and the message says why") {
  const Scratch scratch;
  const std::string task = "text:" + scratch.write("verse.txt", verse()).string() + ",context=6";
  const std::string folder = (scratch.path() / "plain").string();
  const std::string out = (scratch.path() / "out.safetensors").string();
  REQUIRE(run(train(task, "transformer:2,8,2", {"--rounds", "2", "--checkpoint", folder})).status ==
          0);
  const auto refused = [&](const Arguments& arguments, std::string_view why) {
    Arguments all = {"checkpoint", "untie"};
    all.insert(all.end(), arguments.begin(), arguments.end());
    const auto ended = run(all);
    CAPTURE(ended.err);
    CHECK(ended.status != 0);
    CHECK(contains(ended.err, why));
    CHECK_FALSE(std::filesystem::exists(out));
  };
  refused({folder, out}, "none of its 2 layers is tied");
  refused({folder, (scratch.path() / "out.onnx").string()}, "ends in .safetensors or .csv");
  refused({folder, out, "--round", "1"}, "round 1");
  refused({folder, out, "--task", "text:nowhere.txt"}, "name the data with --task");
  refused({(scratch.path() / "none").string(), out}, "there is no such file or folder");
  refused({scratch.write("x.csv", "1,2,3\n").string(), out}, "told by the names of tensors");
  refused({scratch.write("x.safetensors", "12").string(), out}, "no safetensors file");
  refused({scratch.write("y.safetensors", "12").string(), out, "--round", "3"},
          "are for folders of checkpoints");
  const std::string softmax = (scratch.path() / "softmax").string();
  REQUIRE(run(small_train({"--rounds", "2", "--checkpoint", softmax})).status == 0);
  refused({softmax, out}, "it is no transformer");
}

}  // namespace sotto::test::untie_test
