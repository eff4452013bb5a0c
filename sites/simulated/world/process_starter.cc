#include "process_starter.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include <sotto/compress/registry.h>

namespace sotto::sites {
namespace {

constexpr double kLearningRate = 0.05;

/// The digest of settings that all sites share; what they are does not matter here.
constexpr Agreement kAgreement = {std::byte{1}};

}  // namespace

SiteSetup ProcessStarter::setup_of(Process& process) {
  SiteSetup setup;
  setup.name = fmt::format("site-{}", process.site);
  setup.agreement = kAgreement;
  setup.peers = state_.peers_of(process.site, process.listed);
  setup.parameters = process.parameters;
  setup.step_rule = make_step_rule({.learning_rate = kLearningRate});
  setup.compressor = make_compressor(state_.plan.compressor);
  setup.exchange = state_.plan.exchange;
  setup.rule = state_.plan.rule;
  setup.communication_interval = state_.plan.interval;
  setup.outer_step_rule = state_.plan.outer;
  setup.step_weighting = state_.plan.weighting;
  setup.slack = state_.plan.slack;
  setup.window = state_.plan.window;
  setup.sum = state_.plan.sum;
  for (std::uint8_t& byte : setup.secret) {
    byte = static_cast<std::uint8_t>(state_.random.next_u64());
  }
  setup.seed = state_.options.seed;
  setup.rounds = state_.plan.rounds.value_or(0);
  setup.incarnation = state_.random.next_u64() | 1U;
  // As a real site's: models here are small.
  setup.newcomer_s = to_seconds(state_.plan.found_after) + 3 * to_seconds(state_.plan.patience);
  setup.life = process.life;
  return setup;
}

void ProcessStarter::begin(Rank site) {
  Slot& slot = state_.slot(site);
  const auto id = static_cast<ProcessId>(state_.processes.size());
  Process& process = state_.processes.emplace_back();
  slot.process = id;
  process.id = id;
  process.site = site;
  process.disk = slot.disk;
  process.listed = slot.listed;
  process.seen.resumes.assign(state_.slots.size(), 1);
  process.seen.arrivals.resize(state_.slots.size());
  process.parameters.assign(state_.options.dimension, 0.0F);
  process.moved = state_.now();
  process.patience = Patience(to_seconds(state_.plan.patience));
  if (process.disk->damaged) {
    try_damaged(process);
  }
  // As a site's folder counts: one more than before, and at least the clock's seconds.
  const auto clock = static_cast<std::uint32_t>(state_.now() / 1'000'000'000) + 1;
  process.life = process.disk->life = std::max(process.disk->life + 1, clock);
  state_.note(SimulatedSiteEvent::Kind::began, site, -1, process.life);
  state_.liveness.disturb(site, state_.now());
  state_.begin_event(site, "the start of its process");
  process.node = std::make_unique<Site>(setup_of(process));
  process.access = state_.options.access(process.site, *process.node);
  load(process);
  process.node->plan_steps(state_.steps_of(site));
  process.channels.assign(process.listed.size(), kNoWire);
  state_.audit.began(process);
  rounds_.start(process);
}

void ProcessStarter::load(Process& process) {
  if (process.disk->commits.empty()) {
    return;
  }
  const Commit& commit = process.disk->commits.back();
  ByteReader in(commit.bytes);
  if (const Status status = process.node->load(in); !status.ok()) {
    state_.audit.fail(fmt::format("refuses the state that it wrote: {}", status.message()));
  }
}

/// The checksum of the file does not match: the state is gone. What would happen if it did must
/// not be the end of the process either.
void ProcessStarter::try_damaged(Process& process) {
  Disk& disk = *process.disk;
  std::vector<std::byte> bytes = disk.commits.back().bytes;
  bytes[state_.random.below(bytes.size())] ^= std::byte{1} << state_.random.below(8);
  if (state_.random.below(2) == 0) {
    bytes.resize(state_.random.below(bytes.size()));
  }
  process.life = 1;
  Site victim(setup_of(process));
  ByteReader in(bytes);
  (void)victim.load(in);
  std::fill(process.parameters.begin(), process.parameters.end(), 0.0F);
  disk.bare = disk.account();
  disk.bare.give_up();
  disk.commits.clear();
  disk.damaged = false;
  disk.life = 0;
}

}  // namespace sotto::sites
