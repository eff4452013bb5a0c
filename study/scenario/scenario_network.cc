// The table [network] of a scenario.
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/study/scenario/internal/links.h>
#include <sotto/study/scenario/internal/network_table.h>
#include <sotto/study/scenario/internal/traces.h>
#include <sotto/study/scenario/internal/trunks.h>
#include <sotto/study/units.h>

namespace sotto::study {
namespace {

/// The members of HostSpec that say what one way carries.
struct Way {
  double HostSpec::*limit;
  std::shared_ptr<const TracedLink> HostSpec::*traced;
  double HostSpec::*queue;
};

constexpr Way kUp = {&HostSpec::up_bytes_per_s, &HostSpec::up_trace, &HostSpec::up_queue_bytes};
constexpr Way kDown = {&HostSpec::down_bytes_per_s, &HostSpec::down_trace,
                       &HostSpec::down_queue_bytes};

/// One way of hosts: its limit or its trace, and its queue; what it does not say stays.
void read_way(TomlReader& host, const std::string& way, const Way& members,
              const std::vector<Rank>& ranks, Scenario& scenario) {
  const std::string key = way + "-trace";
  const auto rate = host.parsed(way, parse_bandwidth);
  const auto trace = read_trace(host, key);
  if (rate && trace) {
    host.refuse(key, fmt::format("{} says what they carry, too; give one of the two", way));
  }
  const auto queue = host.parsed(way + "-queue", parse_queue);
  for (std::size_t place = 0; place < ranks.size(); ++place) {
    HostSpec& spec = scenario.hosts[static_cast<std::size_t>(ranks[place])];
    spec.*members.limit = trace ? kUnlimited : rate.value_or(spec.*members.limit);
    spec.*members.traced = trace ? trace->of(place) : nullptr;
    spec.*members.queue = queue.value_or(spec.*members.queue);
    if (queue && spec.*members.limit == kUnlimited && spec.*members.traced == nullptr) {
      host.refuse(way + "-queue",
                  fmt::format("nothing waits for an unlimited connection: give {}, too", way));
    }
  }
}

/// `written`: what their connections are where nothing else is said.
void read_hosts(TomlReader& in, const WrittenLink& written, Scenario& scenario,
                const Names& names) {
  if (scenario.hosts.empty()) {
    scenario.hosts.assign(static_cast<std::size_t>(scenario.nodes),
                          {.up_bytes_per_s = written.own_bytes_per_s,
                           .down_bytes_per_s = written.own_bytes_per_s,
                           .up_queue_bytes = written.own_queue_bytes,
                           .down_queue_bytes = written.own_queue_bytes});
  }
  if (in.has("hosts") && scenario.sampling.clients != nullptr) {
    in.refuse("hosts", "clients are drawn for each exchange, and bring their own connections");
  }
  SaidOfNodes said;
  for (TomlReader& host : in.tables("hosts")) {
    host.allow({"nodes", "up", "down", "up-trace", "down-trace", "up-queue", "down-queue"});
    if (!host.has("up") && !host.has("down") && !host.has("up-trace") && !host.has("down-trace")) {
      host.require("up", "what these nodes' own connections carry: up, down or both");
    }
    const auto ranks = read_ranks(host, "nodes", names);
    said.note(ranks, host.place("nodes"), "has two connections of its own");
    read_way(host, "up", kUp, ranks, scenario);
    read_way(host, "down", kDown, ranks, scenario);
    host.finish();
  }
}

void read_media(TomlReader& in, Scenario& scenario, const Names& names) {
  SaidOfNodes said;
  for (TomlReader& medium : in.tables("shared")) {
    medium.require("bandwidth", "of all that the nodes send and receive, e.g. \"100 Mbit/s\"");
    SharedMedium& made = scenario.media.emplace_back();
    made.nodes = read_ranks(medium, "nodes", names);
    made.bytes_per_s = *medium.parsed("bandwidth", parse_bandwidth);
    said.note(made.nodes, medium.place("nodes"), "shares two media");
    medium.finish();
  }
}

/// From, to and link; with both directions, unless it is one-way, as two.
std::vector<LinksBetween> read_between(TomlReader& in, const Names& names) {
  in.require("link", "a preset of `sotto list`, or a table with bandwidth and latency");
  const auto [from, to] = read_ends(in, names);
  const LinksBetween there = {from, to, read_link_between(in, "link")};
  if (in.truth("one-way").value_or(false)) {
    return {there};
  }
  return {there, {there.to, there.from, there.link}};
}

/// What packets and TCP make of the bandwidths. An empty table is Linux's TCP over Ethernet.
NetworkModel read_tcp(TomlReader in) {
  NetworkModel model = NetworkModel::linux_tcp();
  model.bandwidth_factor = model.segment_bytes / 1500;  // the rest of a packet is headers
  model.bandwidth_factor = in.number("share").value_or(model.bandwidth_factor);
  model.acknowledgements = in.number("acknowledgements").value_or(model.acknowledgements);
  model.initial_window_bytes = in.number("window").value_or(model.initial_window_bytes);
  if (!(model.bandwidth_factor > 0 && model.bandwidth_factor <= 1)) {
    in.refuse("share", "it is what payload has of the bandwidth: above 0, and 1 at most");
  }
  if (!(model.acknowledgements >= 0 && model.acknowledgements <= kMostAcknowledgements)) {
    in.refuse("acknowledgements", "it is their part of the rate that they acknowledge: 0 to 0.1");
  }
  if (!(model.initial_window_bytes > 0)) {
    in.refuse("window", "it is what a connection may send at first, in bytes");
  }
  in.finish();
  return model;
}

TransportModel parse_transport(const std::string& name) {
  if (name == "gloo") {
    return TransportModel::gloo();
  }
  if (name == "zmq") {
    return TransportModel::zmq();
  }
  throw Error(fmt::format("'{}' is none of gloo and zmq", name));
}

}  // namespace

void read_network(TomlReader in, Scenario& scenario, const Names& names) {
  in.require("link",
             "what lies between any two nodes: a preset of `sotto list`, or a table with bandwidth "
             "and latency");
  const WrittenLink written = read_link(in, "link");
  scenario.link = written.link;
  if (auto tcp = in.table("tcp")) {
    scenario.network = read_tcp(*tcp);
  }
  if (const auto congestion = in.parsed("congestion", parse_congestion)) {
    if (scenario.network.initial_window_bytes == kUnlimited) {
      in.refuse("congestion",
                "without tcp there are no windows that it could control; add tcp = {}");
    }
    scenario.network.congestion = *congestion;
  }
  scenario.transport = in.parsed("transport", parse_transport).value_or(TransportModel{});
  read_hosts(in, written, scenario, names);
  read_media(in, scenario, names);
  read_trunks(in, scenario, names);
  for (TomlReader& between : in.tables("between")) {
    for (LinksBetween& links : read_between(between, names)) {
      scenario.between.push_back(std::move(links));
    }
    between.finish();
  }
  if (scenario.network.initial_window_bytes == kUnlimited && scenario.has_queues()) {
    const bool at_link = scenario.link.queue_bytes < kUnlimited || !in.has("hosts");
    in.refuse(at_link ? "link" : "hosts",
              "without tcp nothing goes packet by packet, and no queue fills; add tcp = {}");
  }
  in.finish();
}

}  // namespace sotto::study
