// `sotto train --experts-at nodes`: the same bits over every transport, checkpoints that hold the
// whole model, and what is refused.
#include <string>
#include <string_view>

#include <doctest/doctest.h>

#include "cli/program.h"
#include "cli/verse.h"

namespace sotto::test::experts_test {

namespace {

struct Job {
  /// A run with experts everywhere.
  Arguments with(const Arguments& more) const {
    Arguments all = {
        "train",     "--task",      task,      "--model",   "transformer:2,8,2,experts=4",
        "--nodes",   "2",           "--batch", "4",         "--algorithm",
        "allreduce", "--step-rule", "adam",    "--timeout", "60"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  Arguments at_nodes(Arguments more) const {
    more.insert(more.end(), {"--experts-at", "nodes"});
    return with(more);
  }

  Scratch scratch;
  std::string task = "text:" + scratch.write("verse.txt", verse()).string() + ",context=6";
};

}  // namespace

TEST_CASE("experts at nodes give the same models over every transport, overlapping or not") {
  const Job job;
  const auto plain =
      run(job.at_nodes({"--rounds", "4", "--transport", "inproc", "--json", "-"})).json();
  const auto& digests = plain.at("parameters_sha256");
  CHECK(digests.at(0) == digests.at(1));
  CHECK(plain.at("config").at("experts_at") == "nodes");
  CHECK(plain.at("config").at("expert_compressor") == "quant:8");
  CHECK(plain.at("config").at("expert_capacity").is_null());
  for (const std::string transport : {"inproc", "gloo", "zmq"}) {
    CAPTURE(transport);
    if (!has_transport(transport)) {
      continue;
    }
    const auto other = run(job.at_nodes({"--rounds", "4", "--transport", transport, "--overlap",
                                         "off", "--json", "-"}))
                           .json();
    CHECK(other.at("parameters_sha256") == digests);
    CHECK(other.at("bytes_sent_per_node") == plain.at("bytes_sent_per_node"));
    CHECK(other.at("final").at("loss") == plain.at("final").at("loss"));
  }
}

TEST_CASE(
    "a checkpoint of experts at nodes is a whole model, and a resumed run goes on to the bit") {
  const Job job;
  const std::string whole = (job.scratch.path() / "whole").string();
  const std::string folder = (job.scratch.path() / "folder").string();
  const std::string file = (job.scratch.path() / "model.safetensors").string();
  const auto uninterrupted =
      run(job.at_nodes({"--rounds", "6", "--checkpoint", whole, "--json", "-"})).json();
  (void)run(job.at_nodes({"--rounds", "3", "--checkpoint", folder, "--json", "-"})).json();
  const auto resumed =
      run(job.at_nodes({"--rounds", "6", "--checkpoint", folder, "--resume", "--json", "-"}))
          .json();
  CHECK(resumed.at("parameters_sha256") == uninterrupted.at("parameters_sha256"));
  CHECK(resumed.at("final").at("loss") == uninterrupted.at("final").at("loss"));

  // A run that takes it up, with experts at nodes or everywhere, has what these nodes had.
  REQUIRE(run({"checkpoint", "export", folder, "--mean", file}).status == 0);
  for (const std::string& start : {folder, file}) {
    const Arguments still = {"--rounds", "1", "--lr", "0", "--init", start, "--json", "-"};
    for (const auto& taken : {job.with(still), job.at_nodes(still)}) {
      CHECK(run(taken).json().at("final").at("loss") == resumed.at("final").at("loss"));
    }
  }
}

TEST_CASE("experts at nodes are refused in the words of the command line") {
  const Job job;
  const auto refused = [](const Arguments& arguments, std::string_view text) {
    const auto ended = run(arguments);
    CAPTURE(ended.err);
    CHECK(ended.status == 2);
    CHECK(contains(ended.err, text));
  };
  const Arguments gossip = {
      "train",       "--task", job.task,  "--model", "transformer:2,8,2,experts=4",
      "--algorithm", "dcd",    "--nodes", "2",       "--experts-at",
      "nodes"};
  refused(gossip, "mix whole models");
  refused(gossip, "--experts-at nodes");
  refused(job.at_nodes({"--expert-compressor", "quant:4"}), "--expert-compressor: 'quant:4'");
  refused({"train", "--task", job.task, "--model", "transformer:2,8,2,experts=6", "--nodes", "4",
           "--algorithm", "allreduce", "--experts-at", "nodes"},
          "--model: 'transformer:2,8,2,experts=6'");
  refused(job.with({"--expert-capacity", "1.25"}), "--experts-at nodes");
  refused(job.with({"--experts-at", "home"}), "--experts-at: 'home'");
  refused({"train", "--experts-at", "nodes"}, "has no experts");
}

}  // namespace sotto::test::experts_test
