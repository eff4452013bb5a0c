// `sotto checkpoint untie`: layers that shared weights get their own, and a run goes on from them.
#include <filesystem>
#include <string>
#include <string_view>

#include <doctest/doctest.h>

#include "cli/program.h"

namespace sotto::test::untie_test {

namespace {

/// A text of some symbols, long enough for a small context.
std::string verse() {
  std::string text;
  for (int line = 0; line < 120; ++line) {
    text += line % 3 == 0 ? "to be or not to be\n" : line % 3 == 1 ? "that is it\n" : "or not\n";
  }
  return text;
}

Arguments train(const std::string& task, const std::string& model, const Arguments& more) {
  Arguments all = {"train",   "--task", task,          "--model",   model,       "--nodes", "2",
                   "--batch", "4",      "--algorithm", "allreduce", "--timeout", "60"};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

}  // namespace

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
