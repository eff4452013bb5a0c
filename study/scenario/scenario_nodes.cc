// The table [nodes] of a scenario.
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <sotto/study/compute_spec.h>
#include <sotto/study/scenario/internal/clients.h>
#include <sotto/study/scenario/internal/links.h>
#include <sotto/study/scenario/internal/nodes_table.h>
#include <sotto/study/units.h>

namespace sotto::study {
namespace {

constexpr std::uint64_t kMostNodes = 1'000'000;
constexpr double kSlowestCodec = 1e-6;  ///< bytes a second

void read_stragglers(TomlReader& in, Scenario& scenario, const Names& names) {
  if (in.has("stragglers") && scenario.sampling.clients != nullptr) {
    in.refuse("stragglers", "clients are drawn for each exchange, and bring their own times");
  }
  SaidOfNodes said;
  for (TomlReader& straggler : in.tables("stragglers")) {
    const auto ranks = read_ranks(straggler, "nodes", names);
    said.note(ranks, straggler.place("nodes"), "is made slower twice");
    straggler.require("slower", "how many times as long their gradients take");
    const double factor = *straggler.number("slower");
    if (!(factor >= 1 && factor <= 1e6)) {
      straggler.refuse("slower",
                       "it is how many times as long their gradients take: 1 to a million. Where "
                       "some are quicker, let `gradient` be theirs, and slow down the others");
    }
    for (const Rank rank : ranks) {
      scenario.node_specs[static_cast<std::size_t>(rank)].compute.slowdown = factor;
    }
    straggler.finish();
  }
}

}  // namespace

void read_nodes(TomlReader in, Scenario& scenario, Names& names) {
  in.require("count", "the number of nodes");
  scenario.nodes = static_cast<int>(*in.count("count", 1, kMostNodes));
  names.nodes = scenario.nodes;
  if (auto groups = in.table("groups")) {
    for (const auto& [name, text] : groups->all_texts()) {
      std::vector<Rank> ranks;
      if (name == "all" || name.find_first_of(", ") != std::string::npos ||
          name.find_first_of("0123456789") == 0) {
        groups->refuse(name,
                       "a group has a name of its own: one word that begins with a letter, "
                       "and not all");
      }
      groups->at(name, [&, &text = text] { ranks = names.ranks(text); });
      names.groups.emplace(name, std::move(ranks));
    }
  }
  if (!in.has("capacity")) {
    in.require("gradient", "how long one takes, e.g. \"20 ms\" or \"lognormal:20 ms,0.3\"");
  }
  NodeSpec node = {.compute = in.parsed("gradient", parse_compute_time).value_or(ComputeTime{})};
  if (const auto speed = in.parsed("codec", parse_bandwidth)) {
    if (*speed < kSlowestCodec) {
      in.refuse("codec", "it takes longer than 10⁶ seconds a byte; \"1 GB/s\" would do");
    }
    node.codec = {.encode_s_per_byte = 1 / *speed, .decode_s_per_byte = 1 / *speed};
  }
  if (const auto overhead = in.parsed("overhead", parse_latency)) {
    node.codec.seconds_per_exchange = to_seconds(*overhead);
  }
  scenario.memory_bytes = in.parsed("memory", parse_size).value_or(kUnlimited);
  scenario.node_specs.assign(static_cast<std::size_t>(scenario.nodes), node);
  read_clients(in, scenario, names, scenario.task.seed);
  read_stragglers(in, scenario, names);
  in.finish();
}

}  // namespace sotto::study
