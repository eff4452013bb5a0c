#include <sotto/sites/faults/fault_plan.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/base/names.h>
#include <sotto/base/philox.h>
#include <sotto/topology/registry.h>

namespace sotto {
namespace {

using enum FaultKind;

constexpr std::array<FaultKindInfo, kFaultKindCount> kFaultKinds = {{
    {.kind = kill,
     .name = "kill",
     .summary = "SIGKILL; started again after a while",
     .lasts = true,
     .random = true},
    {.kind = stop,
     .name = "stop",
     .summary = "SIGSTOP; SIGCONT after a while",
     .lasts = true,
     .random = true},
    {.kind = replace,
     .name = "replace",
     .summary = "SIGSTOP, while another process takes over with the key and a copy of the state; "
                "SIGCONT after a while",
     .lasts = true,
     .random = true,
     .loses = true},
    {.kind = reset,
     .name = "reset",
     .summary = "a connection breaks, in the middle of a message",
     .between = true,
     .random = true},
    {.kind = one_way,
     .name = "one-way",
     .summary = "nothing gets from the sites to the peers; the other way all does",
     .between = true,
     .lasts = true,
     .random = true},
    {.kind = partition,
     .name = "partition",
     .summary = "nothing gets across, either way",
     .between = true,
     .lasts = true,
     .random = true},
    {.kind = slow,
     .name = "slow",
     .summary = "a link has another bandwidth and latency",
     .between = true,
     .lasts = true,
     .random = true},
    {.kind = restore,
     .name = "restore",
     .summary = "killed, and its state replaced by an older one",
     .lasts = true,
     .random = true,
     .loses = true},
    {.kind = lose,
     .name = "lose",
     .summary = "killed, and its state gone",
     .lasts = true,
     .random = true,
     .loses = true},
    {.kind = corrupt,
     .name = "corrupt",
     .summary = "killed, and its state damaged, so that it is refused",
     .lasts = true,
     .random = true,
     .loses = true},
    {.kind = forget,
     .name = "forget",
     .summary = "takes a peer from its list, and back on it after a while",
     .between = true,
     .lasts = true,
     .random = true,
     .loses = true},
    {.kind = FaultKind::clock, .name = "clock", .summary = "a wall clock jumps", .random = true},
    {.kind = join, .name = "join", .summary = "is not there before"},
    {.kind = leave,
     .name = "leave",
     .summary = "ends in good order; comes back after a while",
     .lasts = true,
     .random = true},
}};

/// Draws faults one after another.
class Draw {
 public:
  Draw(const FaultPlan& plan, std::uint64_t seed)
      : plan_(plan),
        topology_(make_topology(plan.graph, plan.sites)),
        stream_({.seed = seed, .purpose = Purpose::faults}) {}

  PlannedFault fault(std::uint64_t number) {
    const RandomFaults& random = *plan_.random;
    const double span = static_cast<double>(random.until - random.from);
    const double place =
        (static_cast<double>(number) + stream_.uniform()) / static_cast<double>(random.events);
    PlannedFault drawn = {.kind = random.kinds[stream_.below(random.kinds.size())],
                          .sites = {site()},
                          .at = plus(random.from, from_nanoseconds(span * place))};
    const FaultKindInfo& kind = fault_kind(drawn.kind);
    if (kind.lasts) {
      drawn.lasting = lasting();
    }
    if (drawn.kind == FaultKind::partition) {
      split(drawn);
    } else if (kind.between) {
      drawn.peers = {neighbour(drawn.sites.front())};
    }
    drawn.moment = drawn.kind == kill || drawn.kind == lose || drawn.kind == restore
                       ? static_cast<FaultMoment>(stream_.below(3))
                       : FaultMoment::any;
    drawn.bytes = drawn.kind == reset ? stream_.below(2048) : 0;
    drawn.back = 1 + stream_.below(5);
    if (drawn.kind == slow) {
      drawn.link = {.bytes_per_s = 200 * std::pow(1000, stream_.uniform()),
                    .latency = static_cast<SimTime>(stream_.below(1'000'000'000))};
    }
    return drawn;
  }

 private:
  Rank site() { return static_cast<Rank>(stream_.below(static_cast<std::uint64_t>(plan_.sites))); }

  /// Half of what lasts goes unnoticed, as it is over before anybody is missed.
  SimTime lasting() {
    const SimTime longest = plan_.random->longest;
    const SimTime most = stream_.below(2) == 0 ? std::min(longest, plan_.silence) : longest;
    return plus(1, from_nanoseconds(stream_.uniform() * static_cast<double>(most)));
  }

  Rank neighbour(Rank of) {
    std::vector<Rank> peers = topology_->in_peers(of);
    const std::vector<Rank> out = topology_->out_peers(of);
    peers.insert(peers.end(), out.begin(), out.end());
    return peers.empty() ? of : peers[stream_.below(peers.size())];
  }

  void split(PlannedFault& fault) {
    for (Rank rank = 0; rank < plan_.sites; ++rank) {
      if (rank != fault.sites.front() && stream_.below(2) == 0) {
        fault.peers.push_back(rank);
      } else if (rank != fault.sites.front()) {
        fault.sites.push_back(rank);
      }
    }
    if (fault.peers.empty()) {
      fault.sites.resize(1);
    }
  }

  const FaultPlan& plan_;
  std::shared_ptr<const Topology> topology_;
  RandomStream stream_;
};

}  // namespace

std::span<const FaultKindInfo> fault_kinds() { return kFaultKinds; }

std::vector<FaultCount> faults_that_happened(std::span<const std::uint64_t> counts) {
  std::vector<FaultCount> happened;
  for (const FaultKindInfo& kind : kFaultKinds) {
    if (const std::uint64_t times = counts[static_cast<std::size_t>(kind.kind)]; times > 0) {
      happened.push_back({&kind, times});
    }
  }
  return happened;
}

const FaultKindInfo& fault_kind(FaultKind kind) {
  return kFaultKinds[static_cast<std::size_t>(kind)];
}

FaultKind parse_fault_kind(std::string_view name) {
  for (const FaultKindInfo& info : kFaultKinds) {
    if (info.name == name) {
      return info.kind;
    }
  }
  const auto names = names_of(kFaultKinds);
  throw Error(fmt::format("'{}' is no kind of fault{} there are {}", name,
                          did_you_mean(name, names), fmt::join(names, ", ")));
}

const PlannedLie* FaultPlan::lie_of(Rank site) const {
  for (const PlannedLie& lie : lies) {
    if (std::count(lie.sites.begin(), lie.sites.end(), site) > 0) {
      return &lie;
    }
  }
  return nullptr;
}

FaultPlan with_drawn_lies(FaultPlan plan, std::uint64_t seed) {
  const std::vector<PlannedLie> drawn =
      draw_lies(plan.random_lies, plan.sites, plan.exchange, plan.duration, seed);
  plan.lies.insert(plan.lies.end(), drawn.begin(), drawn.end());
  plan.random_lies = {};
  return plan;
}

std::vector<PlannedFault> draw_faults(const FaultPlan& plan, std::uint64_t seed) {
  std::vector<PlannedFault> faults = plan.faults;
  if (plan.random) {
    Draw draw(plan, seed);
    for (std::uint64_t i = 0; i < plan.random->events; ++i) {
      faults.push_back(draw.fault(i));
    }
  }
  std::stable_sort(faults.begin(), faults.end(),
                   [](const PlannedFault& a, const PlannedFault& b) { return a.at < b.at; });
  return faults;
}

void check_fault(const FaultPlan& plan, const PlannedFault& fault) {
  const FaultKindInfo& kind = fault_kind(fault.kind);
  if (fault.sites.empty()) {
    refuse("sites", kind.name, "it must happen to somebody");
  }
  if (!kind.between && !fault.peers.empty()) {
    refuse("peers", kind.name, "it happens to sites, not between them");
  }
  if (fault.moment != FaultMoment::any && fault.kind != kill && !kind.loses) {
    refuse("moment", kind.name, "only a process that is killed is hit in the middle of a round");
  }
  for (const std::vector<Rank>* ranks : {&fault.sites, &fault.peers}) {
    for (const Rank rank : *ranks) {
      if (rank < 0 || rank >= plan.sites) {
        refuse("sites", fmt::to_string(rank), fmt::format("there are {}", plan.sites));
      }
    }
  }
}

namespace {

void check_random_lies(const FaultPlan& plan) {
  const RandomLies& random = plan.random_lies;
  if (random.liars > 0 && !plan.lies.empty()) {
    refuse("liars", fmt::to_string(random.liars), "liars are planned or drawn, not both");
  }
  if (random.liars > static_cast<std::uint64_t>(plan.sites)) {
    refuse("liars", fmt::to_string(random.liars), fmt::format("there are {} sites", plan.sites));
  }
  for (const LieKind kind : random.kinds) {
    check_lies({{.kind = kind}}, plan.sites, plan.exchange);
  }
}

}  // namespace

void check_plan(const FaultPlan& plan) {
  const auto topology = make_topology(plan.graph, plan.sites);
  if (topology->nodes() != plan.sites) {
    refuse("sites", fmt::to_string(plan.sites),
           fmt::format("the graph has {} nodes", topology->nodes()));
  }
  if (plan.duration <= 0) {
    refuse("duration", fmt::to_string(plan.duration), "it must be positive");
  }
  if (plan.gradient <= 0 || plan.silence <= 0 || plan.patience <= 0 || plan.reconnect <= 0) {
    refuse("gradient", fmt::to_string(plan.gradient),
           "it, patience, silence and reconnect must be positive: else no time would pass");
  }
  for (const PlannedFault& fault : plan.faults) {
    check_fault(plan, fault);
  }
  check_lies(plan.lies, plan.sites, plan.exchange);
  check_random_lies(plan);
  if (plan.random && plan.random->events > 0) {
    const RandomFaults& random = *plan.random;
    if (random.kinds.empty()) {
      throw Error("kinds", "none is left to be drawn");
    }
    for (const FaultKind kind : random.kinds) {
      if (!fault_kind(kind).random) {
        refuse("kinds", fault_kind(kind).name, "it cannot be drawn; plan it");
      }
    }
    if (random.from < 0 || random.until < random.from || random.until > plan.duration) {
      refuse("until", fmt::to_string(random.until), "it must lie between from and duration");
    }
  }
}

}  // namespace sotto
