#include <sotto/sites/nodes/torchrun_node.h>

#include <cstdlib>
#include <string_view>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/base/number.h>
#include <sotto/comm/stores.h>

namespace sotto {
namespace {

constexpr int kMostCount = 1'000'000;
constexpr std::string_view kTcpScheme = "tcp://";

/// The number that a variable has; `otherwise` where it is not set.
int number_of(const Environment& environment, const char* name, int least, int otherwise) {
  const char* text = environment(name);
  if (text == nullptr) {
    return otherwise;
  }
  const auto value = parse_number<int>(text, least, kMostCount);
  if (!value) {
    refuse(name, text, fmt::format("a whole number from {} to {} is needed", least, kMostCount));
  }
  return *value;
}

/// The seeds of a place where the nodes of a fixed run would meet. Where all workers are on this
/// host they meet on loopback: whoever joins them has all start again.
std::string seeds_of(const LaunchedNode& node, bool all_here) {
  const std::string_view place = node.rendezvous;
  if (place.starts_with(kTcpScheme)) {
    return std::string(place.substr(kTcpScheme.size()));
  }
  const std::size_t path = place.find('/', kTorchScheme.size());
  const std::size_t port = place.rfind(':', path);
  return all_here ? fmt::format("{}127.0.0.1{}", kTorchScheme, place.substr(port))
                  : std::string(place);
}

}  // namespace

std::optional<TorchrunNode> read_torchrun() {
  return read_torchrun([](const char* name) { return std::getenv(name); });
}

std::optional<TorchrunNode> read_torchrun(const Environment& environment) {
  if (environment("TORCHELASTIC_RUN_ID") == nullptr) {
    return std::nullopt;
  }
  for (const char* name : {"RANK", "WORLD_SIZE", "MASTER_ADDR"}) {
    if (environment(name) == nullptr) {
      throw Error(
          fmt::format("TORCHELASTIC_RUN_ID is set but {} is not: unset the first, or start "
                      "the program with torchrun, which sets both",
                      name));
    }
  }
  const auto node = read_launcher(environment);  // RANK and WORLD_SIZE come first there
  const std::string id = environment("TORCHELASTIC_RUN_ID");
  if (id.find(',') != std::string::npos) {  // it is part of a seed, of which commas make a list
    refuse("TORCHELASTIC_RUN_ID", id, "it has a comma; give torchrun another id of the run");
  }
  const int local_size = number_of(environment, "LOCAL_WORLD_SIZE", 1, node->nodes);
  const int local_rank = number_of(environment, "LOCAL_RANK", 0, 0);
  if (local_rank >= local_size) {
    refuse("LOCAL_RANK", fmt::to_string(local_rank),
           fmt::format("it must be below LOCAL_WORLD_SIZE={}", local_size));
  }
  const int restart = number_of(environment, "TORCHELASTIC_RESTART_COUNT", 0, 0);
  const bool all_here = environment("LOCAL_WORLD_SIZE") != nullptr && local_size == node->nodes;
  return TorchrunNode{.seeds = seeds_of(*node, all_here),
                      .worker = fmt::format("w{}.{}", local_rank, restart),
                      .restarts = number_of(environment, "TORCHELASTIC_MAX_RESTARTS", 0, 0) > 0};
}

}  // namespace sotto
