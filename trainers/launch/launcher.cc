#include <sotto/trainers/launch/launcher.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string_view>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/base/number.h>
#include <sotto/comm/stores.h>

namespace sotto {
namespace {

constexpr int kDefaultPort = 29500;

/// How one launcher tells a process its place.
struct Launcher {
  const char* rank;
  const char* size;
  const char* local_size;  ///< equal to `size` when all nodes are on this host
  const char* hosts;       ///< 1 when all nodes are on this host
  /// Half a pair is a mistake. (Slurm sets SLURM_NTASKS also outside srun.)
  bool strict;
  /// A process started from inside such a job has these variables too, and may be of another job: a
  /// batch script of Slurm is its task 0, and all that mpirun starts from there inherits that.
  bool inherited;
};
/// The innermost first.
constexpr std::array<Launcher, 4> kLaunchers = {{
    {"RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", nullptr, true, false},
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE", nullptr, false,
     false},
    {"PMI_RANK", "PMI_SIZE", "MPI_LOCALNRANKS", nullptr, false, false},
    {"SLURM_PROCID", "SLURM_NTASKS", nullptr, "SLURM_NNODES", false, true},
}};

int read_number(const char* name, std::string_view text, int least, int most) {
  const auto value = parse_number<int>(text, least, most);
  if (!value) {
    refuse(name, text, fmt::format("a whole number from {} to {} is needed", least, most));
  }
  return *value;
}

/// The place that one launcher's variables give, if any.
std::optional<LaunchedNode> read_place(const Launcher& launcher, const Environment& environment) {
  const char* rank = environment(launcher.rank);
  const char* size = environment(launcher.size);
  if (rank == nullptr || size == nullptr) {
    if (rank == size || !launcher.strict) {
      return std::nullopt;
    }
    throw Error(fmt::format("{} is set but {} is not; set both, or neither for a local run",
                            rank == nullptr ? launcher.size : launcher.rank,
                            rank == nullptr ? launcher.rank : launcher.size));
  }
  LaunchedNode node;
  node.nodes = read_number(launcher.size, size, 1, 1'000'000);
  node.rank = read_number(launcher.rank, rank, 0, 1'000'000);
  if (node.rank >= node.nodes) {
    refuse(launcher.rank, rank, fmt::format("it must be below {}={}", launcher.size, size));
  }
  node.source = fmt::format("{} and {}", launcher.rank, launcher.size);
  return node;
}

/// torchrun, which says how many nodes it runs here, may itself be started by another launcher.
bool starts_inside_others(const Launcher& launcher, const Environment& environment) {
  return launcher.strict && environment(launcher.local_size) != nullptr;
}

/// Left-over variables would make several nodes the same one, which then wait for the others.
void check_others(const Launcher& chosen, const LaunchedNode& node,
                  const Environment& environment) {
  if (starts_inside_others(chosen, environment)) {
    return;
  }
  for (const Launcher* other = &chosen + 1; other != kLaunchers.data() + kLaunchers.size();
       ++other) {
    const auto place = other->inherited ? std::nullopt : read_place(*other, environment);
    // A job of one process may be the shell in which this one was started.
    if (place && place->nodes > 1 && (place->rank != node.rank || place->nodes != node.nodes)) {
      throw Error(fmt::format("{}={} and {}={} contradict {}={} and {}={}: unset those that are "
                              "left over (env -u {} -u {} …), or run all nodes here with ",
                              chosen.rank, node.rank, chosen.size, node.nodes, other->rank,
                              place->rank, other->size, place->nodes, chosen.rank, chosen.size) +
                  mention("local", "true"));
    }
  }
}

/// Some launcher of this very job says so: srun's own variables do where PMI's do not.
bool all_on_this_host(const Environment& environment, const LaunchedNode& node) {
  const auto equals = [&](const char* name, int expected) {
    const char* text = name == nullptr ? nullptr : environment(name);
    return text != nullptr && parse_number<int>(text) == expected;
  };
  return std::ranges::any_of(kLaunchers, [&](const Launcher& launcher) {
    return equals(launcher.rank, node.rank) && equals(launcher.size, node.nodes) &&
           (equals(launcher.local_size, node.nodes) || equals(launcher.hosts, 1));
  });
}

/// An agent of torchrun's has started this process.
bool agent_started(const Launcher& launcher, const Environment& environment) {
  return launcher.strict && environment("TORCHELASTIC_RUN_ID") != nullptr;
}

/// Whether node 0's agent listens at MASTER_ADDR and MASTER_PORT, in the very word that it uses.
/// Those of PyTorch up to 2.4 do so with a static rendezvous, later ones with any.
bool agent_serves(const Environment& environment) {
  const char* says = environment("TORCHELASTIC_USE_AGENT_STORE");
  return says != nullptr && std::string_view(says) == "True";
}

std::string rendezvous_of(const Launcher& launcher, const Environment& environment,
                          const LaunchedNode& node) {
  // What is set is checked whether it is needed or not: the same words start a job of more nodes.
  const char* text = environment("MASTER_PORT");
  const int port = text == nullptr ? kDefaultPort : read_number("MASTER_PORT", text, 1, 65535);
  const char* host = environment("MASTER_ADDR");
  if (host == nullptr) {
    if (!all_on_this_host(environment, node)) {
      return {};
    }
    host = "127.0.0.1";
  }
  if (*host == '\0') {
    refuse("MASTER_ADDR", host, "the host of node 0 is needed");
  }
  if (agent_started(launcher, environment)) {
    if (agent_serves(environment)) {
      return fmt::format("{}{}:{}/{}", kTorchScheme, host, port,
                         environment("TORCHELASTIC_RUN_ID"));
    }
    // The agent gives the host's name, which mostly lies beyond loopback.
    host = all_on_this_host(environment, node) ? "127.0.0.1" : host;
  }
  return fmt::format("tcp://{}:{}", host, port);
}

}  // namespace

std::optional<LaunchedNode> read_launcher() {
  return read_launcher([](const char* name) { return std::getenv(name); });
}

std::optional<LaunchedNode> read_launcher(const Environment& environment) {
  for (const Launcher& launcher : kLaunchers) {
    if (auto node = read_place(launcher, environment)) {
      check_others(launcher, *node, environment);
      node->rendezvous = rendezvous_of(launcher, environment, *node);
      return node;
    }
  }
  return std::nullopt;
}

LaunchedNode launched_node(std::string_view field, std::string_view instead, int nodes) {
  auto launched = read_launcher();
  if (!launched || (nodes > 0 && launched->nodes != nodes)) {
    throw Error(field,
                fmt::format("{}, or start the program{} with mpirun, srun or torchrun (RANK, "
                            "WORLD_SIZE{}, MASTER_ADDR, MASTER_PORT)",
                            instead, nodes > 0 ? fmt::format(" as one of {} processes", nodes) : "",
                            nodes > 0 ? fmt::format("={}", nodes) : ""));
  }
  return *launched;
}

}  // namespace sotto
