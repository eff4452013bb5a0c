#include <sotto/trainers/launcher.h>

#include <map>
#include <string>

#include <doctest/doctest.h>

#include "trainers/scratch.h"

using namespace sotto;
using namespace sotto::test;

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

  const auto slurm = read({{"SLURM_PROCID", "1"}, {"SLURM_NTASKS", "2"}, {"SLURM_NNODES", "2"}});
  REQUIRE(slurm);
  CHECK(slurm->rank == 1);
  CHECK(slurm->rendezvous.empty());
}

TEST_CASE("a job of one node is one; half a Slurm environment is no launched job") {
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
