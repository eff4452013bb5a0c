// A plan of faults between sites and their times, for a test.
//
// A plan says nothing of how it is carried out: the simulator (sites/simulated/simulated_sites.h)
// plays it in virtual time. `sotto faults` reads plans from TOML (docs/faults.md). Plain values;
// pure functions; thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <sotto/base/ids.h>
#include <sotto/sim/network/platform.h>
#include <sotto/sim/time.h>
#include <sotto/sites/core/site.h>
#include <sotto/sites/faults/lie_plan.h>

namespace sotto {

/// What can go wrong.
enum class FaultKind : std::uint8_t {
  kill,       ///< SIGKILL; started again after a while
  stop,       ///< SIGSTOP; SIGCONT after a while
  replace,    ///< SIGSTOP, and another process with its key and a copy of its state begins; SIGCONT
  reset,      ///< a connection breaks
  one_way,    ///< nothing gets from the sites to the peers, while all gets from the peers to them
  partition,  ///< nothing gets across, either way
  slow,       ///< a link has another bandwidth and latency
  restore,    ///< is killed, and its state replaced by an older one
  lose,       ///< killed, and its state gone
  corrupt,    ///< killed, and its state damaged: refused when it is read, then as good as gone
  forget,     ///< takes peers from its list, and back on it after a while
  clock,      ///< its wall clock jumps
  join,       ///< begins late
  leave,      ///< ends in good order; comes back after a while
};

/// The number of kinds.
inline constexpr std::size_t kFaultKindCount = static_cast<std::size_t>(FaultKind::leave) + 1;

/// A kind of fault: its name in plans and its needs.
struct FaultKindInfo {
  FaultKind kind;
  std::string_view name;
  std::string_view summary;
  bool between = false;  ///< whether it happens between sites and peers
  bool lasts = false;    ///< whether it is over after a while
  bool random = false;   ///< whether it may be drawn
  bool loses = false;    ///< whether mass may be gone with a state
};

/// All kinds, in the order of the enumeration.
std::span<const FaultKindInfo> fault_kinds();
/// How often a kind of fault happened.
struct FaultCount {
  const FaultKindInfo* kind = nullptr;
  std::uint64_t times = 0;
};
/// The kinds that happened, of counts in the order of fault_kinds().
std::vector<FaultCount> faults_that_happened(std::span<const std::uint64_t> counts);
/// The entry of a kind.
const FaultKindInfo& fault_kind(FaultKind kind);
/// Throws Error listing the names if there is none of this.
FaultKind parse_fault_kind(std::string_view name);

/// The point of a site's round at which it is hit.
enum class FaultMoment : std::uint8_t {
  any,
  before_commit,   ///< parcels are made, but not written
  before_release,  ///< written, but not sent
};

/// One fault: what, where, when and for how long.
struct PlannedFault {
  FaultKind kind = FaultKind::kill;
  std::vector<Rank> sites;
  std::vector<Rank> peers = {};     ///< sites at the other ends; empty: all
  SimTime at = 0;                   ///< earliest time
  std::optional<Round> round = {};  ///< round of the site before which it waits; unset: none
  FaultMoment moment = FaultMoment::any;
  SimTime lasting = kNever;  ///< time from its beginning to its end
  std::uint64_t bytes = 0;   ///< reset: bytes that still go before it
  std::uint64_t back = 1;    ///< restore: number of states before the last
  LinkSpec link = {};        ///< slow: the link in its place
};

/// Faults to be drawn, at times spread evenly over a span.
struct RandomFaults {
  std::uint64_t events = 0;
  std::vector<FaultKind> kinds;
  SimTime from = 0;
  SimTime until = 0;
  SimTime longest = 0;  ///< longest duration of a fault that lasts
};

struct FaultPlan {
  std::string title;
  int sites = 0;
  std::string graph = "ring";  ///< topology, whose edges run from sender to receiver
  sites::MixingKind exchange = sites::MixingKind::push_sum;
  sites::SecureSumRule sum{};  ///< setting of secure sums; secure_mean alone
  std::string compressor = "none";
  std::string rule = {};  ///< rule of aggregation; gossip alone
  /// Takes what a round made of the model; none: the model is what was mixed.
  std::optional<StepRuleOptions> outer = {};
  sites::StepWeighting weighting = sites::StepWeighting::work;
  Round interval = 1;   ///< most steps of a round
  bool uneven = false;  ///< whether sites take 1 … interval steps, by number, in place of all
  Round slack = 0;      ///< rounds that a peer may be behind before it is waited for
  std::size_t window = 2;
  /// The run ends after `duration`; or, with `rounds`, as soon as all running sites have done so
  /// many rounds, and they must have by then.
  SimTime duration = 0;
  std::optional<Round> rounds = {};

  SimTime gradient = 100'000'000;       ///< usual duration of a step
  SimTime commit = 5'000'000;           ///< duration of a durable write
  SimTime patience = 2'000'000'000;     ///< longest wait for peers in a round
  SimTime silence = 5'000'000'000;      ///< silence after which a peer is down
  SimTime found_after = 6'000'000'000;  ///< wait of a site without state before it starts alone
  SimTime reconnect = 500'000'000;      ///< time between tries to connect
  LinkSpec link = {.bytes_per_s = 1.25e6, .latency = 10'000'000};  ///< link between any two sites

  std::vector<PlannedFault> faults;
  std::optional<RandomFaults> random = {};
  std::vector<PlannedLie> lies = {};
  RandomLies random_lies = {};

  /// What this site lies about, now or at another time; null: it is honest.
  const PlannedLie* lie_of(Rank site) const;
};

/// The plan with its random lies drawn, which are planned then. A pure function of plan and seed.
FaultPlan with_drawn_lies(FaultPlan plan, std::uint64_t seed);

/// The planned faults and the drawn ones, those with a time in its order. A pure function of plan
/// and seed.
std::vector<PlannedFault> draw_faults(const FaultPlan& plan, std::uint64_t seed);

/// Throws Error for a fault, or a plan, that cannot be carried out.
void check_fault(const FaultPlan& plan, const PlannedFault& fault);
/// Checks the plan and all of its faults.
void check_plan(const FaultPlan& plan);

}  // namespace sotto
