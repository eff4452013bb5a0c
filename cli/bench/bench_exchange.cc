// `sotto bench exchange`: bandwidth and latency between the nodes of a job, edge by edge.
#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/base/result_file.h>
#include <sotto/base/start_threads.h>
#include <sotto/comm/session.h>
#include <sotto/comm/stores.h>
#include <sotto/comm/transport.h>
#include <sotto/console/option_group.h>
#include <sotto/console/output.h>
#include <sotto/console/signals.h>
#include <sotto/study/compute_spec.h>
#include <sotto/study/json/measured_network.h>
#include <sotto/study/measure/exchange_probe.h>
#include <sotto/study/measure/measured_scenario.h>
#include <sotto/study/train/train_options.h>
#include <sotto/study/units.h>
#include <sotto/topology/registry.h>
#include <sotto/trainers/launch/launcher.h>
#include <sotto/trainers/meetings/store_collectives.h>
#include <sotto/trainers/run.h>
#include <sotto/trainers/settings/time_limit.h>

#include "commands.h"
#include "local_job.h"

namespace sotto::cli {
namespace {

constexpr const char* kBenchExchangeExamples =
    "Examples:\n"
    "  sotto bench exchange --nodes 4 --transport gloo         processes of this machine\n"
    "  mpirun -np 4 sotto bench exchange --transport zmq --bind eth0 --insecure --scenario "
    "net.toml\n"
    "  sotto plan net.toml";

constexpr std::size_t kLeastBytes = 1'000;
constexpr std::size_t kMostBytes = std::size_t{1} << 28U;

struct BenchExchangeRequest {
  console::CommonOptions common;
  std::optional<int> nodes;
  std::string transport;
  std::string topology = "complete";
  double seconds = 1;
  std::size_t bytes = std::size_t{1} << 24U;
  std::string scenario;
  std::string gradient = "20 ms";
  std::string rendezvous;
  std::string bind = "127.0.0.1";
  bool insecure = false;
  int streams = 1;
  bool local = false;
  double timeout_s = 60;
};

/// A request whose place and defaults are settled.
struct ProbeJob {
  std::optional<LaunchedNode> launched;
  std::string transport;
  bool processes = false;
  study::ProbeOptions probe;
};

/// Without a name the first that joins processes, if this build has one.
const TransportInfo* named_or_first(const std::string& name) {
  if (!name.empty()) {
    return &transport_info(name);
  }
  const auto all = transports();
  const auto found = std::find_if(all.begin(), all.end(), [](const TransportInfo& info) {
    return info.available && info.processes;
  });
  return found == all.end() ? nullptr : &*found;
}

const TransportInfo& chosen_transport(const BenchExchangeRequest& request, bool launched) {
  const TransportInfo* found = named_or_first(request.transport);
  if (found == nullptr || !found->available) {
    refuse("transport", request.transport, "`sotto list` shows those that this build has");
  }
  if (launched && !found->processes) {
    refuse("transport", found->name, "it joins threads of one process; give --local");
  }
  return *found;
}

std::vector<std::pair<Rank, Rank>> edges_of(const std::string& topology, int nodes) {
  const auto graph = make_topology(topology, nodes);
  std::vector<std::pair<Rank, Rank>> edges;
  for (Rank from = 0; from < nodes; ++from) {
    for (const Rank to : graph->out_peers(from)) {
      edges.emplace_back(from, to);
    }
  }
  if (edges.empty()) {
    refuse("topology", topology,
           fmt::format("between {} it has no edge, so that there is nothing to measure; complete "
                       "has all",
                       study::counted(static_cast<std::uint64_t>(nodes), "node")));
  }
  return edges;
}

ProbeJob settle(const BenchExchangeRequest& request) {
  ProbeJob job;
  job.launched = request.local ? std::nullopt : read_launcher();
  if (job.launched && request.nodes && *request.nodes != job.launched->nodes) {
    refuse("nodes", fmt::to_string(*request.nodes),
           fmt::format("{} say that the job has {}", job.launched->source, job.launched->nodes));
  }
  const int nodes = job.launched ? job.launched->nodes : request.nodes.value_or(4);
  if (nodes < 2) {
    refuse("nodes", fmt::to_string(nodes), "between fewer than two there is no edge");
  }
  if (!job.launched) {
    check_local_nodes(nodes);
  }
  if (!(request.seconds > 0 && request.seconds <= 600)) {
    refuse("seconds", fmt::to_string(request.seconds), "it must be above 0 and at most 600");
  }
  if (request.bytes < kLeastBytes || request.bytes > kMostBytes) {
    refuse("bytes", fmt::to_string(request.bytes),
           fmt::format("it must be {} to {}", kLeastBytes, kMostBytes));
  }
  const auto timeout = time_limit("timeout", request.timeout_s, kMostTimeoutSeconds);
  const TransportInfo& transport = chosen_transport(request, job.launched.has_value());
  job.transport = transport.name;
  job.processes = transport.processes;
  job.probe = {.rank = job.launched ? job.launched->rank : 0,
               .nodes = nodes,
               .edges = edges_of(request.topology, nodes),
               .seconds = request.seconds,
               .most_bytes = request.bytes,
               .timeout = timeout,
               .stop = console::stop_request()};
  return job;
}

Result<study::MeasuredNetwork> measure(const ProbeJob& job,
                                       const study::ProbeOptions& probe_options,
                                       const BenchExchangeRequest& request,
                                       const std::shared_ptr<Store>& store, Store& session) {
  TransportOptions options;
  options.rank = probe_options.rank;
  options.nodes = probe_options.nodes;
  options.to = probe_peers(probe_options);
  options.from = options.to;
  options.max_frame_bytes = probe_frame_bytes(probe_options);
  options.store = store;
  options.bind = request.bind;
  options.insecure = request.insecure;
  options.streams = request.streams;
  options.connect_timeout = probe_options.timeout;
  options.stop = probe_options.stop;
  StoreCollectives collectives(session, probe_options.rank, probe_options.nodes,
                               probe_options.timeout);
  auto transport = make_transport(job.transport, options);
  if (!transport.ok()) {
    return transport.status();
  }
  auto found = probe(probe_options, **transport, collectives, session);
  if (!found.ok()) {
    return found;
  }
  Status met = collectives.barrier("probed");
  return met.ok() ? std::move(found) : Result<study::MeasuredNetwork>(met);
}

/// One node's part, from meeting to parting.
Result<study::MeasuredNetwork> take_part(const ProbeJob& job, Rank rank,
                                         const BenchExchangeRequest& request,
                                         const std::shared_ptr<Store>& store) {
  study::ProbeOptions options = job.probe;
  options.rank = rank;
  const auto session = make_session(store, rank, options.nodes, options.timeout, options.stop);
  if (Status status = session->enter(); !status.ok()) {
    return status;
  }
  auto found = measure(job, options, request, store, *session);
  if (!found.ok()) {
    FaultNotice(*session, rank).give_up(found.status());
    return found.status().with_context(fmt::format("node {}", rank));
  }
  return found;
}

Result<study::MeasuredNetwork> run_as_threads(const ProbeJob& job,
                                              const BenchExchangeRequest& request) {
  console::catch_stop_signals();
  const auto store = make_memory_store();
  std::vector<Status> faults(static_cast<std::size_t>(job.probe.nodes));
  study::MeasuredNetwork network;
  run_side_by_side(faults.size(), "nodes", [&](std::size_t rank) {
    auto found = take_part(job, static_cast<Rank>(rank), request, store);
    faults[rank] = found.status();
    if (found.ok() && rank == 0) {
      network = std::move(*found);
    }
  });
  Status fault = root_cause(faults);
  return fault.ok() ? Result<study::MeasuredNetwork>(std::move(network)) : fault;
}

Result<study::MeasuredNetwork> run_as_processes(const ProbeJob& job,
                                                const BenchExchangeRequest& request) {
  const auto node = [&](Rank rank, const std::shared_ptr<Store>& store) -> Result<Json> {
    const auto found = take_part(job, rank, request, store);
    return found.ok() ? Result<Json>(study::network_json(*found)) : found.status();
  };
  const auto result = run_local_job(job.probe.nodes, node);
  return result.ok() ? Result<study::MeasuredNetwork>(study::network_in(*result)) : result.status();
}

Result<study::MeasuredNetwork> run_launched(const ProbeJob& job,
                                            const BenchExchangeRequest& request) {
  const std::string where =
      request.rendezvous.empty() ? job.launched->rendezvous : request.rendezvous;
  console::catch_stop_signals();
  const auto store = make_store(where, job.probe.rank,
                                {.insecure = request.insecure,
                                 .known_by = Deadline::after(job.probe.timeout, &job.probe.stop)});
  return take_part(job, job.probe.rank, request, store);
}

/// A node has none in a direction without edges.
std::string link_rate(double bytes_per_s) {
  return bytes_per_s > 0 ? study::rate_text(bytes_per_s) : "–";
}

void show(const study::MeasuredNetwork& network, const console::Output& output) {
  std::vector<std::vector<std::string>> rows;
  for (const study::MeasuredEdge& edge : network.edges) {
    rows.push_back({fmt::to_string(edge.from), fmt::to_string(edge.to),
                    fmt::format("{:.3f} ms", 1e3 * edge.latency_s),
                    study::rate_text(edge.bandwidth_bytes_per_s),
                    study::amount(static_cast<double>(edge.bytes))});
  }
  output.table({"from", "to", "latency", "bandwidth", "measured with"}, rows);
  rows.clear();
  for (std::size_t node = 0; node < network.hosts.size(); ++node) {
    const study::MeasuredHost& host = network.hosts[node];
    rows.push_back(
        {fmt::to_string(node), link_rate(host.up_bytes_per_s), link_rate(host.down_bytes_per_s)});
  }
  output.line("");
  output.table({"node", "up", "down"}, rows);
  output.line(
      "latency: half the median round trip of small messages, of a pair's two ways the shorter; up "
      "and down: all edges of a node at once");
}

int run(BenchExchangeRequest request) {
  const ProbeJob job = settle(request);
  try {
    (void)study::parse_compute_time(request.gradient);
  } catch (const Error& error) {
    throw error.renamed("gradient");
  }
  const bool reports = !job.launched || job.launched->rank == 0;
  if (!reports) {
    request.common.quiet = true;
    request.common.json.clear();
    request.scenario.clear();
  }
  check_writable("scenario", request.scenario);
  const console::Output output(request.common);
  output.line(fmt::format("{} over {}: {}",
                          study::counted(static_cast<std::uint64_t>(job.probe.nodes), "node"),
                          job.transport, study::counted(job.probe.edges.size(), "directed edge")));
  const auto network = job.launched    ? run_launched(job, request)
                       : job.processes ? run_as_processes(job, request)
                                       : run_as_threads(job, request);
  if (!network.ok()) {
    console::say(console::stop_requested() ? console::interruption(network.status())
                                           : network.status().message());
    return console::kFailed;
  }
  if (!reports) {
    return console::kDone;
  }
  show(*network, output);
  if (!request.scenario.empty()) {
    write_result_file("scenario", request.scenario,
                      scenario_text(*network, job.transport, request.gradient));
    output.line(fmt::format("\nscenario: {}", request.scenario));
  }
  Json all = {{"sotto", SOTTO_VERSION}, {"transport", job.transport}, {"nodes", job.probe.nodes}};
  all.update(study::network_json(*network));
  output.json(all);
  return console::kDone;
}

}  // namespace

console::Command add_bench_exchange_command(CLI::App& bench) {
  auto request = std::make_shared<BenchExchangeRequest>();
  CLI::App* command =
      bench.add_subcommand("exchange", "Bandwidth and latency between nodes, edge by edge");
  console::OptionGroup what(*command, "What is measured");
  what.count("--nodes", request->nodes, "N", "Nodes of a job on this machine; 4 by default", 1024);
  what.option("--transport", request->transport, "NAME", "gloo, zmq, or inproc for a trial");
  what.option("--topology", request->topology, "SPEC", "The edges that are measured");
  what.option("--seconds", request->seconds, "S", "How long an edge is measured, about");
  what.count("--bytes", request->bytes, "N", "No message is larger");
  what.count("--streams", request->streams, "N", "TCP connections to each peer, with zmq");
  what.option("--scenario", request->scenario, "FILE.toml",
              "Write a scenario with this network, for `sotto simulate` and `sotto plan`");
  what.option("--gradient", request->gradient, "TIME",
              "In the scenario: how long a gradient takes, e.g. \"20 ms\" or "
              "\"lognormal:20 ms,0.3\"");
  console::OptionGroup job(*command, "The job");
  job.option("--rendezvous", request->rendezvous, "URL",
             "Where the nodes of a launched job meet; by default tcp://MASTER_ADDR:MASTER_PORT");
  job.option("--bind", request->bind, "ADDRESS", "Address or interface to listen on");
  job.flag("--insecure", request->insecure, "Listen beyond loopback without encryption");
  job.flag("--local", request->local, "Run all nodes here, whatever launchers' variables say");
  job.option("--timeout", request->timeout_s, "S", "How long a node may be silent");
  add_common_options(*command, request->common);
  command->footer(kBenchExchangeExamples);
  return {command, [request] { return run(*request); }};
}

}  // namespace sotto::cli
