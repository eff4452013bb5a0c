#include <sotto/study/scenario/fault_file.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/base/names.h>
#include <sotto/sim/link_presets.h>
#include <sotto/study/rank_list.h>
#include <sotto/study/toml/reader.h>
#include <sotto/study/units.h>
#include <sotto/topology/registry.h>

namespace sotto::study {
namespace {

constexpr std::uint64_t kVersion = 1;
constexpr std::uint64_t kMostSites = 1024;
constexpr std::uint64_t kMostEvents = 1'000'000;
constexpr SimTime kHour = 3'600'000'000'000;

sites::MixingKind parse_exchange(const std::string& name) {
  if (const auto kind = sites::mixing_named(name)) {
    return *kind;
  }
  const auto& names = sites::kMixingNames;
  throw Error(fmt::format("'{}' is none of {}", name,
                          word_list(names_with(names, [](const auto&) { return true; }), "and")));
}

FaultMoment parse_moment(const std::string& name) {
  if (name == "before-commit") {
    return FaultMoment::before_commit;
  }
  if (name == "before-release") {
    return FaultMoment::before_release;
  }
  throw Error(fmt::format("'{}' is none of before-commit and before-release", name));
}

LinkSpec read_link(TomlReader in, const LinkSpec& otherwise) {
  LinkSpec link = otherwise;
  if (const auto preset = in.parsed("preset", [](const std::string& name) {
        const LinkPreset& found = link_preset(name);
        return LinkSpec{
            .bytes_per_s = found.bytes_per_s, .latency = found.latency, .jitter = found.jitter};
      })) {
    link = *preset;
  }
  link.bytes_per_s = in.parsed("bandwidth", parse_bandwidth).value_or(link.bytes_per_s);
  link.latency = in.parsed("latency", parse_duration).value_or(link.latency);
  link.jitter = in.parsed("jitter", parse_duration).value_or(link.jitter);
  in.finish();
  return link;
}

std::vector<Rank> read_ranks(TomlReader& in, std::string_view key, int sites) {
  return in.parsed(key, [&](const std::string& text) { return parse_ranks(text, sites); })
      .value_or(std::vector<Rank>());
}

PlannedFault read_fault(TomlReader& in, const FaultPlan& plan) {
  PlannedFault fault;
  in.require("kind", "e.g. \"kill\"");
  fault.kind = *in.parsed("kind", parse_fault_kind);
  in.require("sites", "whom it befalls, e.g. \"0-2\" or \"all\"");
  fault.sites = read_ranks(in, "sites", plan.sites);
  fault.peers = read_ranks(in, "peers", plan.sites);
  fault.at = in.parsed("at", parse_duration).value_or(0);
  fault.round = in.count("round", 0, 1'000'000'000);
  fault.moment = in.parsed("moment", parse_moment).value_or(FaultMoment::any);
  if (!in.has("at") && !fault.round) {
    in.refuse("at", "say when it happens: at a time, or with `round` in a round of the site");
  }
  fault.lasting = in.parsed("for", parse_duration).value_or(kNever);
  if (fault.lasting != kNever && !fault_kind(fault.kind).lasts) {
    in.refuse("for", "this kind of fault is over at once");
  }
  fault.bytes = in.count("bytes", 0, 1'000'000'000).value_or(0);
  fault.back = in.count("back", 1, 1000).value_or(1);
  if (auto link = in.table("link")) {
    fault.link = read_link(*link, plan.link);
  } else if (fault.kind == FaultKind::slow) {
    in.refuse("link", "say what the link is like then: bandwidth and latency");
  }
  in.finish();
  return fault;
}

PlannedLie read_lie(TomlReader& in, int sites) {
  PlannedLie lie;
  in.require("kind", "what it lies about, e.g. \"takes\"");
  in.require("sites", "who lies, e.g. \"3\"");
  lie.kind = *in.parsed("kind", parse_lie_kind);
  lie.sites = read_ranks(in, "sites", sites);
  lie.strength = in.number("strength");
  lie.often = in.number("often").value_or(lie.often);
  lie.part = in.number("part").value_or(lie.part);
  lie.at = in.parsed("at", parse_duration).value_or(lie.at);
  lie.lasting = in.parsed("for", parse_duration).value_or(lie.lasting);
  lie.restarts = in.truth("restarts").value_or(lie.restarts);
  in.finish();
  return lie;
}

/// What is drawn of each seed: liars into the plan, and the faults.
RandomFaults read_random(TomlReader in, FaultPlan& plan) {
  RandomFaults random;
  in.require("events", "how many faults are drawn");
  random.events = *in.count("events", 0, kMostEvents);
  plan.random_lies.liars = in.count("liars", 0, kMostSites).value_or(0);
  for (const std::string& name : in.texts("lies")) {
    in.at("lies", [&] { plan.random_lies.kinds.push_back(parse_lie_kind(name)); });
  }
  for (const std::string& name : in.texts("kinds")) {
    in.at("kinds", [&] { random.kinds.push_back(parse_fault_kind(name)); });
  }
  for (const FaultKindInfo& kind : fault_kinds()) {
    if (!in.has("kinds") && kind.random && kind.kind != FaultKind::replace) {
      random.kinds.push_back(kind.kind);
    }
  }
  random.from = in.parsed("from", parse_duration).value_or(0);
  random.until = in.parsed("until", parse_duration).value_or(plan.duration / 4 * 3);
  random.longest = in.parsed("longest", parse_duration).value_or(multiple(3, plan.silence));
  in.finish();
  return random;
}

StepRuleOptions read_outer(TomlReader in) {
  StepRuleOptions outer = {.learning_rate = 0.7};
  outer.rule = in.text("step-rule").value_or(outer.rule);
  outer.learning_rate = in.number("lr").value_or(outer.learning_rate);
  outer.momentum = in.number("momentum").value_or(outer.momentum);
  outer.nesterov = in.truth("nesterov").value_or(outer.nesterov);
  in.finish();
  return outer;
}

sites::StepWeighting parse_weighting(const std::string& name) {
  const auto weighting = sites::weighting_named(name);
  if (!weighting) {
    throw Error(fmt::format("'{}' is none of work and equal", name));
  }
  return *weighting;
}

void read_site(TomlReader in, FaultPlan& plan) {
  plan.interval = in.count("interval", 1, 10'000).value_or(plan.interval);
  plan.uneven = in.truth("uneven").value_or(plan.uneven);
  plan.weighting = in.parsed("step-weighting", parse_weighting).value_or(plan.weighting);
  plan.slack = in.count("slack", 0, 1000).value_or(plan.slack);
  plan.window =
      in.count("window", 1, 1000).value_or(plan.slack + sites::usual_window(plan.exchange));
  const auto duration = [&](std::string_view key, SimTime& value) {
    value = in.parsed(key, parse_duration).value_or(value);
    if (value <= 0 || value > kHour) {
      in.refuse(key, "it must be longer than nothing, and an hour at most");
    }
  };
  duration("gradient", plan.gradient);
  duration("commit", plan.commit);
  duration("patience", plan.patience);
  duration("silence", plan.silence);
  duration("found-after", plan.found_after);
  duration("reconnect", plan.reconnect);
  in.finish();
}

}  // namespace

FaultPlan read_fault_plan(const std::string& path) {
  const toml::table file = read_toml("PLAN", path);
  TomlReader in(path, "", file);
  in.require("sotto-faults", "the version of this format, sotto-faults = 1");
  (void)in.count("sotto-faults", kVersion, kVersion);
  FaultPlan plan;
  plan.title = in.text("title").value_or(path);
  plan.graph = in.text("graph").value_or(plan.graph);
  plan.sites = static_cast<int>(in.count("sites", 1, kMostSites).value_or(0));
  in.at("graph", [&] { plan.sites = make_topology(plan.graph, plan.sites)->nodes(); });
  plan.exchange = in.parsed("exchange", parse_exchange).value_or(plan.exchange);
  plan.compressor = in.text("compressor").value_or(plan.compressor);
  plan.rule = in.text("rule").value_or(plan.rule);
  plan.sum.colluders = in.count("secure-colluders", 0, kMostSites).value_or(plan.sum.colluders);
  plan.rounds = in.count("rounds", 1, 1'000'000'000);
  in.require("duration", "how long it runs, e.g. \"2 min\"; with `rounds`, at most");
  plan.duration = *in.parsed("duration", parse_duration);
  if (auto link = in.table("link")) {
    plan.link = read_link(*link, plan.link);
  }
  plan.window = sites::usual_window(plan.exchange);
  if (auto site = in.table("site")) {
    read_site(*site, plan);
  }
  if (auto outer = in.table("outer")) {
    plan.outer = read_outer(*outer);
  }
  for (TomlReader& fault : in.tables("fault")) {
    plan.faults.push_back(read_fault(fault, plan));
    fault.at("kind", [&] { check_fault(plan, plan.faults.back()); });
  }
  for (TomlReader& lie : in.tables("liar")) {
    plan.lies.push_back(read_lie(lie, plan.sites));
  }
  if (auto random = in.table("random")) {
    plan.random = read_random(*random, plan);
  }
  in.finish();
  try {
    check_plan(plan);
  } catch (const Error& error) {
    throw Error(fmt::format("{}: {}", path, error.what()));
  }
  return plan;
}

}  // namespace sotto::study
