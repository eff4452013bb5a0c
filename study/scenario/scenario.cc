#include <sotto/study/scenario/scenario.h>

#include <algorithm>
#include <array>
#include <limits>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/base/text.h>
#include <sotto/sim/link_presets.h>
#include <sotto/study/compute_spec.h>
#include <sotto/study/internal/scenario_spelling.h>
#include <sotto/study/rank_list.h>
#include <sotto/study/scenario/internal/attack.h>
#include <sotto/study/scenario/internal/clients.h>
#include <sotto/study/scenario/internal/costs.h>
#include <sotto/study/scenario/internal/events.h>
#include <sotto/study/scenario/internal/links.h>
#include <sotto/study/scenario/internal/names.h>
#include <sotto/study/scenario/internal/sweep.h>
#include <sotto/study/scenario/internal/task.h>
#include <sotto/study/scenario/internal/traces.h>
#include <sotto/study/scenario/internal/trunks.h>
#include <sotto/study/toml/text.h>
#include <sotto/study/units.h>

namespace sotto::study {
namespace {

constexpr std::uint64_t kScenarioVersion = 1;
constexpr std::uint64_t kMostNodes = 1'000'000;
constexpr double kSlowestCodec = 1e-6;  ///< bytes a second

SimTime parse_latency(const std::string& text) {
  const SimTime latency = parse_duration(text);
  if (latency > kMostLatency) {
    throw Error(fmt::format("'{}' is too long: 11 days at most", text));
  }
  return latency;
}

/// A link as it is written, and what of it is a node's own connection.
struct WrittenLink {
  LinkSpec link;
  double own_bytes_per_s = kUnlimited;
};

WrittenLink preset_of(const std::string& name) {
  const LinkPreset& found = link_preset(name);
  WrittenLink written = {.link = {.bytes_per_s = found.bytes_per_s,
                                  .latency = found.latency,
                                  .jitter = found.jitter,
                                  .loss = found.loss}};
  if (found.of_host) {
    std::swap(written.link.bytes_per_s, written.own_bytes_per_s);
  }
  return written;
}

/// The preset or the figures of a link. `key` holds a preset's name, or a table.
WrittenLink read_link(TomlReader& in, std::string_view key) {
  if (in.holds_text(key)) {
    return *in.parsed(key, preset_of);
  }
  TomlReader figures = *in.table(key);
  WrittenLink written = figures.parsed("preset", preset_of).value_or(WrittenLink{});
  LinkSpec& link = written.link;
  if (const auto bandwidth = figures.parsed("bandwidth", parse_bandwidth)) {
    written = {.link = link, .own_bytes_per_s = kUnlimited};
    link.bytes_per_s = *bandwidth;
  }
  link.latency = figures.parsed("latency", parse_latency).value_or(link.latency);
  link.jitter = figures.parsed("jitter", parse_duration).value_or(link.jitter);
  link.loss = figures.number("loss").value_or(link.loss);
  if (const auto trace = read_trace(figures, "trace")) {
    if (trace->stagger > 0) {
      figures.refuse("trace", "stagger is for nodes' own connections: hosts' up-trace, down-trace");
    }
    link.trace = trace->of();
  }
  if (link.loss < 0 || link.loss >= 1) {
    figures.refuse("loss", "it is a share of the packets, at least 0 and below 1: 0.04 for 4 %");
  }
  if (link.jitter > link.latency) {
    figures.refuse(figures.has("jitter") ? "jitter" : "latency",
                   "the jitter is larger than the latency: messages would arrive before they "
                   "leave");
  }
  figures.finish();
  return written;
}

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
      scenario.paces[static_cast<std::size_t>(rank)].compute.slowdown = factor;
    }
    straggler.finish();
  }
}

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
  NodeSpec pace = {.compute = in.parsed("gradient", parse_compute_time).value_or(ComputeTime{})};
  if (const auto speed = in.parsed("codec", parse_bandwidth)) {
    if (*speed < kSlowestCodec) {
      in.refuse("codec", "it takes longer than 10⁶ seconds a byte; \"1 GB/s\" would do");
    }
    pace.codec = {.encode_s_per_byte = 1 / *speed, .decode_s_per_byte = 1 / *speed};
  }
  if (const auto overhead = in.parsed("overhead", parse_latency)) {
    pace.codec.seconds_per_exchange = to_seconds(*overhead);
  }
  scenario.paces.assign(static_cast<std::size_t>(scenario.nodes), pace);
  read_clients(in, scenario, names, scenario.task.seed);
  read_stragglers(in, scenario, names);
  in.finish();
}

/// One way of hosts: its limit, by default `usual`, or its trace.
void read_way(TomlReader& host, const std::string& way, const std::vector<Rank>& ranks,
              Scenario& scenario, double HostSpec::*limit,
              std::shared_ptr<const TracedLink> HostSpec::*traced) {
  const std::string key = way + "-trace";
  const auto rate = host.parsed(way, parse_bandwidth);
  const auto trace = read_trace(host, key);
  if (rate && trace) {
    host.refuse(key, fmt::format("{} says what they carry, too; give one of the two", way));
  }
  for (std::size_t place = 0; place < ranks.size(); ++place) {
    HostSpec& spec = scenario.hosts[static_cast<std::size_t>(ranks[place])];
    spec.*limit = trace ? kUnlimited : rate.value_or(spec.*limit);
    spec.*traced = trace ? trace->of(place) : nullptr;
  }
}

/// `own`: what their connections carry where nothing else is said.
void read_hosts(TomlReader& in, double own, Scenario& scenario, const Names& names) {
  if (scenario.hosts.empty()) {
    scenario.hosts.assign(static_cast<std::size_t>(scenario.nodes), {own, own});
  }
  if (in.has("hosts") && scenario.sampling.clients != nullptr) {
    in.refuse("hosts", "clients are drawn for each exchange, and bring their own connections");
  }
  SaidOfNodes said;
  for (TomlReader& host : in.tables("hosts")) {
    host.allow({"nodes", "up", "down", "up-trace", "down-trace"});
    if (!host.has("up") && !host.has("down") && !host.has("up-trace") && !host.has("down-trace")) {
      host.require("up", "what these nodes' own connections carry: up, down or both");
    }
    const auto ranks = read_ranks(host, "nodes", names);
    said.note(ranks, host.place("nodes"), "has two connections of its own");
    read_way(host, "up", ranks, scenario, &HostSpec::up_bytes_per_s, &HostSpec::up_trace);
    read_way(host, "down", ranks, scenario, &HostSpec::down_bytes_per_s, &HostSpec::down_trace);
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

void read_network(TomlReader in, Scenario& scenario, const Names& names) {
  in.require("link",
             "what lies between any two nodes: a preset of `sotto list`, or a table with bandwidth "
             "and latency");
  const WrittenLink written = read_link(in, "link");
  scenario.link = written.link;
  if (auto tcp = in.table("tcp")) {
    scenario.network = read_tcp(*tcp);
  }
  scenario.transport = in.parsed("transport", parse_transport).value_or(TransportModel{});
  read_hosts(in, written.own_bytes_per_s, scenario, names);
  read_media(in, scenario, names);
  read_trunks(in, scenario, names);
  for (TomlReader& between : in.tables("between")) {
    for (LinksBetween& links : read_between(between, names)) {
      scenario.between.push_back(std::move(links));
    }
    between.finish();
  }
  in.finish();
}

void read_target(TomlReader& in, Target& target) {
  constexpr std::uint64_t kMostInARow = 1'000'000;
  auto table = in.table("target");
  if (!table) {
    return;
  }
  target.accuracy = table->number("accuracy");
  if (target.accuracy && !(*target.accuracy >= 0 && *target.accuracy <= 1)) {
    table->refuse("accuracy", "it is a share, 0 to 1: 0.95 for 95 %");
  }
  target.r2 = table->number("r2");
  if (target.r2 && !(*target.r2 <= 1)) {
    table->refuse("r2", "it is 1 at best: 0.9 where a tenth of the variance is left");
  }
  if (target.r2 && target.accuracy) {
    table->refuse("r2", "it is a regression's, and accuracy that of classes; give one of them");
  }
  target.loss = table->number("loss");
  if (target.loss && !(*target.loss > 0)) {
    table->refuse("loss", "it must be positive: no loss falls below 0");
  }
  target.sustained = table->count("sustained", 1, kMostInARow).value_or(target.sustained);
  if (!target.given()) {
    table->refuse("accuracy", "it is missing; give accuracy, loss or both; r2 of a regression");
  }
  table->finish();
}

/// A run as the file has it: its words or, as a table, these and a label.
struct WrittenRun {
  std::string words;
  std::string label;
  std::string place;
};

WrittenRun written_run(const TomlReader& in, const toml::node& node, const std::string& path) {
  WrittenRun run = {.words = {}, .label = {}, .place = toml_place(path, node) + ": run"};
  if (const auto* words = node.as_string()) {
    run.words = words->get();
    return run;
  }
  if (node.as_table() == nullptr) {
    in.refuse("run", "it must be a string or a table { run, label }, or a list of these");
  }
  TomlReader table(path, "run", *node.as_table());
  table.require("run", "the run's words, e.g. \"dcd quant:8 ring\"");
  run.words = *table.text("run");
  run.label = table.text("label").value_or("");
  if (table.has("label") && (run.label.empty() || run.label.find('@') != std::string::npos)) {
    table.refuse("label", "it is what tables call the run: some words, without an @");
  }
  table.finish();
  return run;
}

std::vector<WrittenRun> written_runs(TomlReader& in, const toml::table& file,
                                     const std::string& path) {
  in.allow({"run"});
  const toml::node* const node = file.get("run");
  std::vector<WrittenRun> runs;
  if (node != nullptr && node->is_array()) {
    for (const toml::node& one : *node->as_array()) {
      runs.push_back(written_run(in, one, path));
    }
  } else if (node != nullptr) {
    runs.push_back(written_run(in, *node, path));
  }
  if (runs.empty()) {
    in.refuse("run", "give one or more runs, e.g. run = [\"allreduce\", \"dcd quant:8 ring\"]");
  }
  return runs;
}

void read_runs(TomlReader& in, const toml::table& file, const std::string& path,
               Scenario& scenario) {
  for (const WrittenRun& written : written_runs(in, file, path)) {
    try {
      scenario.runs.push_back(parse_run(written.words));
    } catch (const Error& error) {
      throw refusal_of_words(written.place, written.words, error, Spelling());
    }
    RunSpec& run = scenario.runs.back();
    run.label = written.label;
    scenario.run_places.push_back(written.place);
    const auto same = [&](const RunSpec& other) { return other.shown() == run.shown(); };
    if (std::count_if(scenario.runs.begin(), scenario.runs.end(), same) > 1) {
      throw Error(fmt::format("{}: '{}' stands there twice", written.place, run.shown()));
    }
  }
}

}  // namespace

LinkSpec read_link_between(TomlReader& in, std::string_view key) {
  const WrittenLink written = read_link(in, key);
  if (written.own_bytes_per_s < kUnlimited) {
    in.refuse(key,
              "this preset is of a node's own connection, which all its peers share: give it a "
              "bandwidth here, and say up and down in [network] hosts");
  }
  return written.link;
}

namespace {

/// All but the sweep.
Scenario scenario_in(const toml::table& file, const std::string& path,
                     std::optional<std::uint64_t> seed) {
  TomlReader in(path, "", file);
  in.allow({"sweep"});
  in.require("sotto-scenario", "the version of this format, sotto-scenario = 1");
  (void)in.count("sotto-scenario", kScenarioVersion, kScenarioVersion);
  Scenario scenario;
  Names names;
  scenario.title = in.text("title").value_or(path);
  scenario.task.seed = in.count("seed", 0, std::numeric_limits<std::int64_t>::max()).value_or(0);
  scenario.task.seed = seed.value_or(scenario.task.seed);
  scenario.timing_only = in.truth("timing-only").value_or(false);
  in.require("nodes", "a table [nodes]");
  read_nodes(*in.table("nodes"), scenario, names);
  in.require("network", "a table [network]");
  read_network(*in.table("network"), scenario, names);
  read_events(in, scenario, names);
  read_costs(in, scenario, names);
  (void)in.table("task");
  read_task(file, path, scenario);
  read_attack(in, scenario, names);
  // Nothing is hidden in a simulation: its noise is the seed's, so that it repeats itself.
  scenario.task.simulated = true;
  scenario.task.nodes = scenario.nodes;
  scenario.task.local = true;
  scenario.task.deal = !scenario.timing_only;
  read_target(in, scenario.target);
  if (const toml::node* target = file.get("target")) {
    scenario.target.place = fmt::format("{}: target", toml_place(path, *target));
  }
  read_runs(in, file, path, scenario);
  check_attack(in, scenario);
  in.finish();
  return scenario;
}

}  // namespace

Scenario read_scenario(const std::string& path, std::optional<std::uint64_t> seed) {
  return parse_scenario(path, read_toml_text("scenario", path), seed);
}

Scenario parse_scenario(const std::string& place, const std::string& text,
                        std::optional<std::uint64_t> seed) {
  const auto parse = [&] { return parse_toml(place, text); };
  const toml::table file = parse();
  Scenario scenario = scenario_in(file, place, seed);
  scenario.sweep = read_sweep(file, place, parse, [&](const toml::table& changed) {
    return scenario_in(changed, place, seed);
  });
  return scenario;
}

void check_target(const Scenario& scenario, bool regression) {
  if (scenario.target.accuracy && regression) {
    throw Error(fmt::format("{}.accuracy: the task is a regression, which has none; give r2",
                            scenario.target.place));
  }
  if (scenario.target.r2 && !regression) {
    throw Error(
        fmt::format("{}.r2: the task is no regression; give accuracy", scenario.target.place));
  }
}

}  // namespace sotto::study
