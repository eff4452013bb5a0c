// What a site (site.h) is made of. Plain values.
//
// The parameters are the caller's, step rule and compressor become the site's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <sotto/base/ids.h>
#include <sotto/base/parameter_layout.h>
#include <sotto/compress/compressor.h>
#include <sotto/kernels/ops.h>
#include <sotto/optim/step_rule.h>
#include <sotto/sites/core/mass_rule.h>
#include <sotto/sites/core/message.h>
#include <sotto/sites/core/mixing_kind.h>
#include <sotto/sites/core/pull_bound.h>
#include <sotto/sites/core/step_weighting.h>
#include <sotto/sites/core/sums/secret_shares.h>
#include <sotto/sites/core/sums/secure_sum_rule.h>

namespace sotto::sites {

/// A peer of a site. Peers are named by their place in the list, from 0. A site keeps parcels for a
/// peer that does not take them.
struct SitePeer {
  std::string name;
  bool hears = true;  ///< whether this site takes in what the peer sends
  bool tells = true;  ///< whether this site sends parcels to the peer
};

/// A peer that gets no more parcels (Site::set_draining).
struct DrainingPeer {
  std::string name;
  bool leaves = false;  ///< whether it leaves the run, and need not confirm anything
};

/// The setup of a site.
struct SiteSetup {
  std::string name;
  /// Digest of all that sites must share: exchange, rule, dimension, compressor, H, window.
  Agreement agreement{};
  /// The settings that `agreement` digests, in words, for peers that have another digest; at most
  /// kMostText bytes.
  std::string settings = {};
  std::vector<SitePeer> peers;
  std::span<float> parameters;  ///< z; initialised
  ParameterLayout layout = {};
  std::unique_ptr<StepRule> step_rule;
  std::unique_ptr<Compressor> compressor;
  MixingKind exchange = MixingKind::push_sum;
  std::string rule = {};  ///< gossip: make_aggregation's; empty: the average
  std::optional<double> consensus_stepsize = {};
  Round communication_interval = 1;  ///< H: most steps of a round
  /// Takes what a round made of the model (outer_step.h); none: the model is what was mixed.
  std::optional<StepRuleOptions> outer_step_rule = {};
  StepWeighting step_weighting = StepWeighting::work;
  Round slack = 0;         ///< rounds that a peer may be behind before it is waited for
  std::size_t window = 2;  ///< most parcels under way to a peer; slack + 2 keeps pace
  /// It takes in what comes, sends nothing and takes no step: push-sum. Its peers lose nothing.
  bool observer = false;
  double mass_cap = 1024;  ///< most mass that a message or a state may hold
  MassRule mass = {};      ///< push-sum: how mass comes back to 1; all sites share it
  PullLimits pull = {};    ///< limits of what one parcel may do to the model
  SecureSumRule sum = {};  ///< secure_mean: parameters of the sums; all sites share them
  Secret32 secret = {};    ///< secure_mean: key that nobody can guess, drawn anew in each start
  /// Seconds for which a peer that was sent a model may be silent before it begins, as note_time
  /// measures them; 0: kNewcomerRounds (peer_habits.h).
  double newcomer_s = 0;
  Round rounds = 0;        ///< rounds after which the site ends; 0: never
  std::uint64_t seed = 0;  ///< seed of rounding
  /// Not 0; drawn anew in each start. load replaces it, and the site takes it should it have to
  /// give up what was loaded.
  Incarnation incarnation = 0;
  /// Process number, larger in each start, also where the state is gone, as far as a clock can tell
  /// (SiteFolder).
  std::uint32_t life = 1;
  const Ops* ops = &host_ops();
};

}  // namespace sotto::sites
