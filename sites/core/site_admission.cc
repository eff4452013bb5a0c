#include <sotto/sites/core/site_admission.h>

#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include <sotto/base/check.h>
#include <sotto/base/error.h>
#include <sotto/sites/core/neighbour.h>
#include <sotto/sites/core/sums/sum_group.h>

namespace sotto::sites {
namespace {

constexpr std::size_t kMostWindow = 1024;

void admit_numbers(const SiteSetup& setup) {
  if (setup.incarnation == 0) {
    refuse("incarnation", "0", "it counts from 1");
  }
  if (setup.life == 0) {
    refuse("life", "0", "it counts from 1");
  }
  if (setup.communication_interval < 1 || setup.communication_interval > kMostInterval) {
    refuse("communication_interval", fmt::format("{}", setup.communication_interval),
           fmt::format("1 … {}", kMostInterval));
  }
  if (setup.window < 1 || setup.window > kMostWindow) {
    refuse("window", fmt::format("{}", setup.window), fmt::format("1 … {}", kMostWindow));
  }
  if (setup.slack > kMostWindow) {
    refuse("slack", fmt::format("{}", setup.slack), fmt::format("0 … {}", kMostWindow));
  }
  if (!(setup.mass_cap >= 1 && setup.mass_cap <= 1e9)) {
    refuse("mass_cap", fmt::format("{}", setup.mass_cap), "1 … 1e9");
  }
  admit_bounds(setup.mass, setup.pull, setup.mass_cap);
  if (setup.observer && setup.exchange != MixingKind::push_sum) {
    refuse("observer", "true",
           fmt::format("{} needs neighbours that send, too; it is for push-sum",
                       name_of(setup.exchange)));
  }
  if (setup.consensus_stepsize &&
      !(*setup.consensus_stepsize > 0 && *setup.consensus_stepsize <= 1 &&
        static_cast<float>(*setup.consensus_stepsize) > 0)) {
    refuse("consensus_stepsize", fmt::format("{}", *setup.consensus_stepsize),
           "more than 0, also in float32, and at most 1");
  }
}

/// Checks what SecureSum relies on, for a list as it is at the start.
void admit_sums(const SiteSetup& setup, const Contract& contract) {
  const std::size_t sites = setup.peers.size() + 1;
  if (!contract.meets(ContractKind::exact)) {
    refuse("compressor", setup.compressor->spec(),
           "masks hide numbers on a grid, which no compressor keeps; use none");
  }
  if (sites < 3) {
    refuse("peers", fmt::format("{}", setup.peers.size()),
           "secure sums need 3 sites or more: of two, each could tell the other's model");
  }
  if (setup.sum.colluders + 3 > sites) {
    refuse("secure_colluders", fmt::format("{}", setup.sum.colluders),
           fmt::format("with {} sites at most {}: a sum hides a site among two others, at least, "
                       "that do not collude",
                       sites, sites - 3));
  }
  if (!(setup.sum.range >= 1e-3 && setup.sum.range <= 1e6)) {
    refuse("secure_range", fmt::format("{}", setup.sum.range), "0.001 … 1e6");
  }
  if (setup.slack != 0) {
    refuse("slack", fmt::format("{}", setup.slack), "a secure sum is of one round; use 0");
  }
  if (setup.window < 3) {
    refuse(
        "window", fmt::format("{}", setup.window),
        "a site that was away has parcels of two rounds under way when the next one is due: 3 or "
        "more");
  }
  check(setup.secret != Secret32(), "masks are drawn from a secret");
}

/// Throws Error for a compressor or a robust rule that cannot work with the exchange.
void admit_exchange(const SiteSetup& setup) {
  const std::string spec = setup.compressor->spec();
  const Contract contract = setup.compressor->contract(setup.parameters.size());
  if (!contract.meets(ContractKind::contraction)) {
    refuse("compressor", spec,
           fmt::format("a contraction is needed, and this is {}", contract.describe()));
  }
  if (!setup.rule.empty() && setup.exchange != MixingKind::gossip) {
    refuse("rule", setup.rule,
           setup.exchange == MixingKind::push_sum
               ? "no robust rule is proven for push-sum; use gossip"
               : "a robust rule compares models, which a secure sum hides");
  }
  if (setup.exchange == MixingKind::secure_mean) {
    admit_sums(setup, contract);
  }
  if (!setup.rule.empty() && !contract.meets(ContractKind::exact)) {
    refuse("compressor", spec,
           "a robust rule measures distances between models, and would take what a compressor "
           "loses for a lie; use none");
  }
}

/// Checks what messages about sums rely on, for any list.
void admit_members(const std::vector<SitePeer>& peers) {
  if (peers.size() >= kMostSummed) {
    refuse("peers", fmt::format("{}", peers.size()),
           fmt::format("a secure sum is of {} sites at most", kMostSummed));
  }
  std::set<std::uint64_t> ids;
  for (const SitePeer& peer : peers) {
    if (!ids.insert(site_id(peer.name)).second) {
      refuse("peers", peer.name, "its name has the number of another's; change one of them");
    }
  }
}

}  // namespace

void admit_bounds(const MassRule& mass, const PullLimits& pull, double mass_cap) {
  if (!(mass.back >= 0 && mass.back <= 1)) {
    refuse("mass_return", fmt::format("{}", mass.back), "0 … 1: the part of the way in a round");
  }
  if (!(mass.least > 0 && mass.least <= 1 && mass.most >= 1 && mass.most <= mass_cap)) {
    refuse("mass", fmt::format("{} … {}", mass.least, mass.most),
           fmt::format("its bounds lie on both sides of 1, above 0 and up to {}", mass_cap));
  }
  if (!(mass.parcel > 0 && mass.parcel <= mass_cap)) {
    refuse("parcel_mass", fmt::format("{}", mass.parcel),
           fmt::format("more than 0, and at most {}", mass_cap));
  }
  if (!(pull.most > 0 && pull.most <= 1e9)) {
    refuse("pull_most", fmt::format("{}", pull.most), "more than 0, and at most 1e9 steps");
  }
  if (!(pull.memory >= 1 && pull.memory <= 1e9)) {
    refuse("pull_memory", fmt::format("{}", pull.memory), "1 … 1e9 rounds");
  }
  if (pull.fresh && !(*pull.fresh >= 1 && *pull.fresh <= kMostCount)) {
    refuse("pull_fresh", fmt::format("{}", *pull.fresh), "1 round or more");
  }
}

void admit_peers(const std::vector<SitePeer>& peers, MixingKind kind) {
  std::set<std::string_view> names;
  for (const SitePeer& peer : peers) {
    if (peer.name.empty() || peer.name.size() > kMostName) {
      refuse("peers", peer.name, fmt::format("names have 1 … {} bytes", kMostName));
    }
    if (!names.insert(peer.name).second) {
      refuse("peers", peer.name, "it is there twice");
    }
    if (kind != MixingKind::push_sum && !(peer.hears && peer.tells)) {
      refuse("peers", peer.name,
             kind == MixingKind::gossip ? "gossip needs trust both ways; use push-sum"
                                        : "secure sums need trust both ways");
    }
  }
  if (kind == MixingKind::secure_mean) {
    admit_members(peers);
  }
}

void admit(const SiteSetup& setup) {
  check(setup.step_rule != nullptr && setup.compressor != nullptr && setup.ops != nullptr,
        "a site has a step rule, a compressor and operations");
  if (setup.parameters.empty()) {
    refuse("parameters", "none", "a site trains a model");
  }
  if (setup.step_rule->follows_model()) {
    refuse("step_rule", setup.step_rule->name(),
           "a site's model also moves by who comes and goes, which a momentum of its moves would "
           "repeat; use sgd");
  }
  admit_numbers(setup);
  admit_peers(setup.peers, setup.exchange);
  admit_exchange(setup);
}

}  // namespace sotto::sites
