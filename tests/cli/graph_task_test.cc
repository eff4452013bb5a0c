// `sotto train --task graph:FILE`: the same bits over every transport and where nodes are processes
// of their own, checkpoints and resumed runs, and what is refused.
#include <string>
#include <string_view>

#include <doctest/doctest.h>

#include "cli/program.h"
#include "support/rated_people.h"

namespace sotto::test::graph_task_test {

namespace {

struct Job {
  Arguments with(Arguments more, const std::string& task_parameters = "") const {
    Arguments all = {"train",     "--task", people.task(task_parameters),
                     "--nodes",   "3",      "--algorithm",
                     "allreduce", "--lr",   "0.02",
                     "--timeout", "60"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }

  RatedPeople people;
  Scratch scratch;
};

}  // namespace

TEST_CASE("a graph in parts gives the same model over every transport") {
  const Job job;
  for (const std::string rows : {"", "halo=keyed:4,cache=3"}) {
    CAPTURE(rows);
    const auto plain =
        run(job.with({"--rounds", "4", "--transport", "inproc", "--json", "-"}, rows)).json();
    const auto& digests = plain.at("parameters_sha256");
    CHECK(digests.at(0) == digests.at(2));
    CHECK(plain.at("config").at("experts_at") == "everywhere");
    CHECK(plain.at("final").at("accuracy").is_number());
    for (const std::string transport : {"gloo", "zmq"}) {
      CAPTURE(transport);
      if (!has_transport(transport)) {
        continue;
      }
      const auto other = run(job.with({"--rounds", "4", "--transport", transport, "--overlap",
                                       "off", "--json", "-"},
                                      rows))
                             .json();
      CHECK(other.at("parameters_sha256") == digests);
      CHECK(other.at("bytes_sent_per_node") == plain.at("bytes_sent_per_node"));
      CHECK(other.at("final").at("loss") == plain.at("final").at("loss"));
    }
  }
}

TEST_CASE("a resumed run with a graph in parts goes on to the bit") {
  const Job job;
  for (const std::string rows :
       {"halo=none", "halo=keyed:4", "cache=3", "halo=keyed:2,cache=3,share=80"}) {
    CAPTURE(rows);
    const std::string folder = (job.scratch.path() / std::to_string(rows.size())).string();
    const auto uninterrupted = run(job.with({"--rounds", "7", "--json", "-"}, rows)).json();
    (void)run(job.with({"--rounds", "3", "--checkpoint", folder, "--json", "-"}, rows)).json();
    const auto resumed =
        run(job.with({"--rounds", "7", "--checkpoint", folder, "--resume", "--json", "-"}, rows))
            .json();
    CHECK(resumed.at("parameters_sha256") == uninterrupted.at("parameters_sha256"));
    CHECK(resumed.at("final").at("loss") == uninterrupted.at("final").at("loss"));
    // Another number of bits is another run.
    const auto other =
        run(job.with({"--rounds", "7", "--checkpoint", folder, "--resume"}, rows + ",embedding=4"));
    CHECK(other.status != 0);
  }
}

TEST_CASE("a graph in parts is refused in the words of the command line") {
  const Job job;
  const auto refused = [](const Arguments& arguments, std::string_view text) {
    const auto ended = run(arguments);
    CAPTURE(ended.err);
    CHECK(ended.status == 2);
    CHECK(contains(ended.err, text));
  };
  refused(job.with({"--communication-interval", "4"}), "--communication-interval");
  refused(job.with({}, "halo=sign"), "--task: ");
  refused(job.with({}, "halo=sign"), "halo=sign does not go with rows of 8 elements");
  refused(job.with({}, "halo=keyed:1"), "take keyed:4");
  refused(job.with({"--privacy-epsilon", "3", "--clip-norm", "1", "--privacy-unit", "update"}),
          "tell of the data");
  refused({"train", "--task", job.people.task(), "--nodes", "3", "--algorithm", "dcd"},
          "rows of a round are those of one model");
  refused({"train", "--task", "graph:/nowhere.csv"}, "/nowhere.csv");
}

TEST_CASE("a bad file of ratings is refused with its line") {
  const Scratch scratch;
  const std::string file = scratch.write("r.csv", "1,2,3\n1,2,-1\n").string();
  const auto ended = run({"train", "--task", "graph:" + file});
  CHECK(ended.status == 2);
  CHECK(contains(ended.err, "line 2: 1 rates 2 a second time"));
}

}  // namespace sotto::test::graph_task_test
