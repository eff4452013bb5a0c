#include <sotto/trainers/launch/launcher.h>

#include <map>
#include <string>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "support/scratch.h"

namespace sotto::test::launcher_test {

namespace {

std::optional<LaunchedNode> read(const std::map<std::string, std::string>& variables) {
  return read_launcher([&](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

}  // namespace

TEST_CASE("the launchers' variables are understood") {
  CHECK_FALSE(read({}));
  const auto plain = read(
      {{"RANK", "2"}, {"WORLD_SIZE", "4"}, {"MASTER_ADDR", "10.0.0.1"}, {"MASTER_PORT", "2345"}});
  REQUIRE(plain);
  CHECK(plain->rank == 2);
  CHECK(plain->nodes == 4);
  CHECK(plain->rendezvous == "tcp://10.0.0.1:2345");

  const auto mpi = read({{"OMPI_COMM_WORLD_RANK", "0"},
                         {"OMPI_COMM_WORLD_SIZE", "3"},
                         {"OMPI_COMM_WORLD_LOCAL_SIZE", "3"}});
  REQUIRE(mpi);
  CHECK(mpi->nodes == 3);
  CHECK(mpi->rendezvous == "tcp://127.0.0.1:29500");

  const auto mpich = read({{"PMI_RANK", "2"}, {"PMI_SIZE", "3"}, {"MPI_LOCALNRANKS", "3"}});
  REQUIRE(mpich);
  CHECK(mpich->rank == 2);
  CHECK(mpich->rendezvous == "tcp://127.0.0.1:29500");
  CHECK(read({{"PMI_RANK", "2"}, {"PMI_SIZE", "3"}, {"MPI_LOCALNRANKS", "1"}})->rendezvous.empty());
  // `srun --mpi=pmi2` sets both, and Slurm's say that there is one host, if they are of this job.
  const auto both = [](const char* tasks, const char* hosts) {
    return read({{"PMI_RANK", "2"},
                 {"PMI_SIZE", "3"},
                 {"SLURM_PROCID", "2"},
                 {"SLURM_NTASKS", tasks},
                 {"SLURM_NNODES", hosts}})
        ->rendezvous;
  };
  CHECK(both("3", "1") == "tcp://127.0.0.1:29500");
  CHECK(both("3", "2").empty());
  CHECK(both("4", "1").empty());

  const auto slurm = read({{"SLURM_PROCID", "1"}, {"SLURM_NTASKS", "2"}, {"SLURM_NNODES", "2"}});
  REQUIRE(slurm);
  CHECK(slurm->rank == 1);
  CHECK(slurm->rendezvous.empty());
}

TEST_CASE("what torchrun's agent serves is where its nodes meet, and nothing else is") {
  using Variables = std::map<std::string, std::string>;
  const Variables agent = {{"RANK", "1"},
                           {"WORLD_SIZE", "4"},
                           {"LOCAL_WORLD_SIZE", "2"},
                           {"MASTER_ADDR", "head"},
                           {"MASTER_PORT", "4000"},
                           {"TORCHELASTIC_RUN_ID", "job/7 a"},
                           {"TORCHELASTIC_RESTART_COUNT", "0"},
                           {"TORCHELASTIC_USE_AGENT_STORE", "True"}};
  const auto rendezvous = [&](const Variables& other) {
    Variables all = other;
    all.insert(agent.begin(), agent.end());
    return read(all)->rendezvous;
  };
  CHECK(rendezvous({}) == "torch://head:4000/job/7 a");
  CHECK(rendezvous({{"TORCHELASTIC_RUN_ID", ""}}) == "torch://head:4000/");
  // Agents of one group may count restarts differently.
  CHECK(rendezvous({{"TORCHELASTIC_RESTART_COUNT", "2"}}) == "torch://head:4000/job/7 a");
  // An agent that leaves the port to node 0 names its host, which may lie beyond loopback.
  CHECK(rendezvous({{"TORCHELASTIC_USE_AGENT_STORE", "False"}}) == "tcp://head:4000");
  CHECK(rendezvous({{"TORCHELASTIC_USE_AGENT_STORE", "False"}, {"LOCAL_WORLD_SIZE", "4"}}) ==
        "tcp://127.0.0.1:4000");
  // Where there is no agent, a host that was named is meant.
  CHECK(read({{"RANK", "1"},
              {"WORLD_SIZE", "4"},
              {"LOCAL_WORLD_SIZE", "4"},
              {"MASTER_ADDR", "head"},
              {"TORCHELASTIC_USE_AGENT_STORE", "True"}})
            ->rendezvous == "tcp://head:29500");
  CHECK(read({{"OMPI_COMM_WORLD_RANK", "0"},
              {"OMPI_COMM_WORLD_SIZE", "3"},
              {"MASTER_ADDR", "head"},
              {"TORCHELASTIC_RUN_ID", "outer"},
              {"TORCHELASTIC_USE_AGENT_STORE", "True"}})
            ->rendezvous == "tcp://head:29500");
}

TEST_CASE("a job of one node is one, and half a Slurm environment is no launched job") {
  const auto alone = read({{"RANK", "0"}, {"WORLD_SIZE", "1"}});
  REQUIRE(alone);
  CHECK(alone->nodes == 1);
  CHECK_FALSE(read({{"SLURM_NTASKS", "8"}}));
}

TEST_CASE("variables that make no sense are refused by name") {
  CHECK(contains(refusal([] { read({{"RANK", "4"}, {"WORLD_SIZE", "4"}}); }), "below WORLD_SIZE"));
  CHECK(contains(refusal([] { read({{"RANK", "0"}}); }), "WORLD_SIZE is not"));
  CHECK(contains(refusal([] { read({{"WORLD_SIZE", "2"}}); }), "RANK is not"));
  CHECK(contains(refusal([] { read({{"RANK", "-1"}, {"WORLD_SIZE", "2"}}); }), "RANK"));
  CHECK(contains(refusal([] { read({{"RANK", "1x"}, {"WORLD_SIZE", "2"}}); }), "1x"));
  CHECK(contains(
      refusal([] {
        read({{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "h"}, {"MASTER_PORT", "70000"}});
      }),
      "MASTER_PORT"));
}

TEST_CASE("launchers that contradict each other are refused, and both are named") {
  using Variables = std::map<std::string, std::string>;
  const Variables mpi = {{"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "4"}};
  const auto with = [&](Variables more) {
    more.insert(mpi.begin(), mpi.end());
    return more;
  };
  for (const auto& place : {std::pair("0", "4"), std::pair("1", "8")}) {
    const std::string rank = place.first;
    const std::string size = place.second;
    const auto message = refusal([&] { read(with({{"RANK", rank}, {"WORLD_SIZE", size}})); });
    CHECK(contains(message, fmt::format("RANK={} and WORLD_SIZE={}", rank, size)));
    CHECK(contains(message, "OMPI_COMM_WORLD_RANK=1 and OMPI_COMM_WORLD_SIZE=4"));
  }
  CHECK(contains(refusal([&] { read(with({{"PMI_RANK", "0"}, {"PMI_SIZE", "4"}})); }), "PMI_RANK"));
  CHECK(read(with({{"RANK", "1"}, {"WORLD_SIZE", "4"}}))->source == "RANK and WORLD_SIZE");

  // A shell that srun started, and torchrun on each of four hosts.
  CHECK(read(with({{"PMI_RANK", "0"}, {"PMI_SIZE", "1"}}))->rank == 1);
  const auto torchrun =
      read(with({{"RANK", "5"}, {"WORLD_SIZE", "16"}, {"LOCAL_WORLD_SIZE", "4"}}));
  CHECK(torchrun->rank == 5);
  // What a batch script of Slurm hands on to mpirun's processes.
  CHECK(read(with({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}}))->rank == 1);
}

}  // namespace sotto::test::launcher_test
