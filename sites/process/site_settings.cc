#include <sotto/sites/process/site_settings.h>

#include <array>
#include <chrono>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/base/number.h>
#include <sotto/sites/core/site_admission.h>
#include <sotto/sites/nodes/torchrun_node.h>
#include <sotto/sites/process/site_pace.h>
#include <sotto/sites/process/site_training.h>
#include <sotto/trainers/settings/time_limit.h>

namespace sotto {
namespace {

constexpr double kLongest = 24 * 3600;  // seconds
constexpr std::uint64_t kMostAhead = 1024;

Setting rounds_setting(SiteSettings& o) {
  return {"rounds", &o.rounds, "R", "After so many rounds the site ends; by default never"};
}

SettingGroup identity_settings(SiteSettings& o) {
  return {
      "Who the site is",
      {{"name", &o.names.name, "NAME", "The site's name, as in the others' lists of peers"},
       {"key", &o.names.key, "FILE", "The site's key (`sotto keygen`)"},
       {"peers", &o.names.peers, "FILE.csv",
        "The sites with their public keys, this one among them, and whom this one trusts; may "
        "change during the run"},
       {"state", &o.state, "DIR",
        "Folder in which the site keeps its state, and from which it goes on; by default it keeps "
        "none, and begins anew from a neighbour's model"},
       {"listen", &o.names.listen, "HOST:PORT",
        "Where to listen, or several with spaces between them; by default as its line says"},
       {"source", &o.source, "ADDRESSES", "Addresses to dial from; by default any"}}};
}

SettingGroup roster_settings(SiteSettings& o) {
  return {
      "A run whose nodes come and go, in place of a list of peers and a state",
      {{"nodes", &o.roster.nodes, "MIN:MAX",
        "The fewest nodes with which training begins, and the most that are let in; one number "
        "is both. Then `key` is the run's, and by default none"},
       {"seeds", &o.roster.seeds, "HOST:PORT,…|URL",
        "Nodes that newcomers ask who is there, the same at all nodes; or a store by which they "
        "find each other, file:DIR, redis://HOST:PORT/PREFIX or torch://HOST:PORT/PREFIX; under "
        "torchrun by default what its agents serve"},
       {"insecure", &o.roster.insecure, "", "Allow plain text beyond this host"},
       {"leave-within", &o.roster.leave_within, "SECONDS",
        "How long a node that leaves waits at most for what it sent to arrive"}}};
}

SettingGroup training_settings(SiteSettings& o) {
  SettingGroup group = {
      "What is computed, the same at every site",
      {{"algorithm", &o.training.algorithm, "SPEC",
        "pushsum, choco, dpsgd or robust, with their hyperparameters (docs/sites.md)"},
       {"consensus-stepsize", &o.training.consensus_stepsize, "ETA",
        "Another way to write eta=ETA behind the algorithm"},
       {"rule", &o.training.rule, "SPEC", "Another way to write robust:SPEC"},
       {"compressor", &o.training.compressor, "SPEC",
        "See `sotto list`; by default the algorithm's own"},
       {"step-weighting", &o.step_weighting, "NAME",
        "Of a site that takes fewer steps: work, sites count by their steps; equal, all alike"},
       {"seed", &o.seed, "S", "Seed of rounding", std::numeric_limits<std::uint64_t>::max()},
       {"secure-sum", &o.secure_sum, "", "dpsgd: hide each model in the sum of all"},
       {"secure-colluders", &o.secure_colluders, "C", "Sites that may tell each other all they see",
        sites::kMostSummed},
       {"secure-range", &o.secure_range, "RANGE", "The largest value of an element"},
       {"mass-return", &o.mass_return, "EPSILON",
        "pushsum: the part of the way back to 1 that a site's mass goes in a round"},
       {"parcel-mass", &o.parcel_mass, "MASS", "pushsum: mass of a parcel at most, times eta"}}};
  for (const auto& more :
       {step_settings(o.training), local_step_settings(o.training, "Steps of a round, at most")}) {
    group.settings.insert(group.settings.end(), more.settings.begin(), more.settings.end());
  }
  return group;
}

SettingGroup pace_settings(SiteSettings& o) {
  return {
      "This site's own",
      {rounds_setting(o),
       {"observer", &o.observer, "", "pushsum: take in what comes, and send nothing"},
       {"own-steps", &o.own_steps, "COUNT|auto",
        "This site's steps of a round; auto: as many as it has done when its neighbours are; by "
        "default communication-interval"},
       {"timeout", &o.timeout_s, "SECONDS", "Seconds of silence after which a peer is down"},
       {"patience", &o.patience_s, "SECONDS",
        "Seconds that a round waits at most for peers that are up and behind"},
       {"found-after", &o.found_after_s, "SECONDS",
        "Seconds that a site without state waits for others before it starts alone"},
       {"save-every", &o.save_every, "ROUNDS",
        "From one write of the state to the next. 1: before anything of a round is told; more: "
        "beside the training, and a site that dies comes back as a new one with that model"},
       {"slack", &o.slack, "ROUNDS", "That a peer may be behind before it is waited for",
        kMostAhead},
       {"window", &o.window, "PARCELS", "Under way to a peer at most; the same at every site",
        kMostAhead},
       {"pull-most", &o.pull_most, "STEPS", "Own steps that one parcel may pull the model"},
       {"pull-memory", &o.pull_memory, "ROUNDS",
        "Rounds after which a long step of one's own is forgotten"},
       {"pull-fresh", &o.pull_fresh, "ROUNDS",
        "Rounds to each one of a peer up to which its parcels pull whole"}}};
}

SettingGroup output_settings(SiteSettings& o) {
  return {"What it shows",
          {{"monitor", &o.outputs.monitor, "[HOST:]PORT",
            "Serve /metrics for Prometheus and /status for `sotto status` on this host"},
           {"tensorboard", &o.outputs.tensorboard, "DIR", "Write scalars for TensorBoard"},
           {"audit", &o.outputs.audit, "FILE",
            "Append who was let in, refused or cut off (`sotto site audit`)"}}};
}

/// How many steps a round has here.
void take_own_steps(const SiteSettings& o, SiteOptions& options) {
  options.adapts_steps = o.own_steps == "auto";
  if (options.adapts_steps && o.slack > 0) {
    refuse("own_steps", o.own_steps, kNoPace);
  }
  if (o.own_steps.empty() || options.adapts_steps) {
    return;
  }
  options.own_steps = parse_number<Round>(o.own_steps, 1, options.communication_interval);
  if (!options.own_steps) {
    refuse("own_steps", o.own_steps,
           fmt::format("it is auto, or 1 to communication-interval, {}",
                       options.communication_interval));
  }
}

bool is_by_roster(const SiteSettings& o) {
  return !o.roster.nodes.empty() || !o.roster.seeds.empty();
}

void refuse_of_lists(const SiteSettings& o) {
  const std::string state = state_of(o);
  for (const auto& [setting, value] :
       {std::pair("peers", &o.names.peers), {"state", &state}, {"source", &o.source}}) {
    if (!value->empty()) {
      refuse(setting, *value, "a run whose nodes come and go has none: leave it out");
    }
  }
  if (o.observer) {
    refuse("observer", "true", "each node of a run whose nodes come and go trains");
  }
}

/// Options of a node of a run whose nodes come and go.
SiteOptions options_by_roster(const SiteSettings& o) {
  refuse_of_lists(o);
  RosterSettings roster = o.roster;
  roster.key = o.names.key;
  const auto torchrun = roster.seeds.empty() ? read_torchrun() : std::nullopt;
  if (torchrun) {
    roster.seeds = torchrun->seeds;
  }
  SiteOptions options = options_by_roster(
      options_of(roster), o.names.name.empty()
                              ? default_node_name(torchrun ? torchrun->worker : std::string())
                              : o.names.name);
  options.listen = o.names.listen;
  take_settings(o, options);
  return options;
}

/// Settings that only a run whose nodes come and go has.
void refuse_of_rosters(const SiteSettings& o) {
  if (o.roster.insecure) {
    refuse("insecure", "true", "a site's channels are encrypted, always: leave it out");
  }
  if (o.roster.leave_within != RosterSettings().leave_within) {
    refuse("leave_within", fmt::to_string(o.roster.leave_within),
           "it is for a run whose nodes come and go: give nodes and seeds, or leave it out");
  }
}

void require_identity(const SiteSettings& o) {
  refuse_of_rosters(o);
  for (const auto& [setting, value, what] :
       {std::tuple{"name", &o.names.name, "the site's name, as in the others' lists of peers"},
        {"key", &o.names.key, "the site's key, a file that `sotto keygen` makes"},
        {"peers", &o.names.peers, "the file of peers: who they are, and whom this site trusts"}}) {
    if (value->empty()) {
      throw Error(setting, fmt::format("it is missing: {}", what));
    }
  }
  if (o.state == kNoStateGiven) {
    throw Error("state",
                "it is missing: the folder in which the site keeps its state, or an empty "
                "text to keep none");
  }
}

}  // namespace

SettingGroup shared_settings_of(SiteSettings& settings) {
  SettingGroup group = training_settings(settings);
  group.settings.push_back(rounds_setting(settings));
  return group;
}

std::vector<SettingGroup> settings_of(SiteSettings& settings) {
  return {identity_settings(settings), roster_settings(settings), training_settings(settings),
          pace_settings(settings), output_settings(settings)};
}

void take_shared_settings(const SiteSettings& o, SiteOptions& options) {
  take_exchange(o.training, o.secure_sum, options);
  take_steps(o.training, o.rounds, o.seed, options);
  const auto weighting = sites::weighting_named(o.step_weighting);
  if (!weighting) {
    refuse("step_weighting", o.step_weighting, "it is work or equal");
  }
  options.step_weighting = *weighting;
  options.sum = {.colluders = o.secure_colluders, .range = o.secure_range};
  options.mass.back = o.mass_return;
  options.mass.parcel = o.parcel_mass;
  options.window = o.window.value_or(sites::usual_window(options.exchange));
}

void take_settings(const SiteSettings& o, SiteOptions& options) {
  take_shared_settings(o, options);
  take_own_steps(o, options);
  options.pull = {.most = o.pull_most, .memory = o.pull_memory, .fresh = o.pull_fresh};
  sites::admit_bounds(options.mass, options.pull);
  if (o.observer) {
    take_observer(options);
  }
  if (options.window < 1) {
    refuse("window", "0", "at least one parcel must be under way");
  }
  options.slack = o.slack;
  if (o.save_every < 1) {
    refuse("save_every", "0", "it is 1 or more rounds; without a state nothing is saved");
  }
  options.save_every = o.save_every;
  options.timeout = time_limit("timeout", o.timeout_s, kLongest);
  options.patience = time_limit("patience", o.patience_s, kLongest);
  options.found_after = time_limit("found_after", o.found_after_s, kLongest);
}

std::string state_of(const SiteSettings& o) {
  return o.state == kNoStateGiven ? std::string() : o.state;
}

SiteOptions options_of(const SiteSettings& o) {
  if (is_by_roster(o)) {
    return options_by_roster(o);
  }
  require_identity(o);
  const SiteIdentity identity = read_site_identity(o.names);
  SiteOptions options{.security = identity.security};
  options.rank = identity.rank;
  options.name = o.names.name;
  options.listen = o.names.listen;
  options.source = o.source;
  options.peers_file = o.names.peers;
  take_settings(o, options);
  return options;
}

}  // namespace sotto
