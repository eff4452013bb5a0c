// What one site is told to do. Plain values; pure functions.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <sotto/base/ids.h>
#include <sotto/base/parameter_layout.h>
#include <sotto/comm/trust/security.h>
#include <sotto/optim/privacy/privacy_options.h>
#include <sotto/optim/step_rule.h>
#include <sotto/sites/core/site.h>
#include <sotto/sites/nodes/report/audit_log.h>
#include <sotto/sites/nodes/report/site_report.h>
#include <sotto/sites/nodes/roster_options.h>
#include <sotto/trainers/data/dataset.h>
#include <sotto/trainers/files/model_file.h>
#include <sotto/trainers/files/onnx_file.h>
#include <sotto/trainers/observer.h>
#include <sotto/trainers/settings/agreed_settings.h>

namespace sotto {

struct SiteOptions {
  Security security;
  Rank rank = 0;       ///< this site's line in the list of peers
  std::string name{};  ///< this site's name in the lists of the others
  /// HOST:PORT, or several with spaces between them; empty: the addresses of the own line, and
  /// nowhere where that has none
  std::string listen{};
  std::string source{};  ///< numeric local addresses to dial from; empty: the system chooses

  /// The file of the list of peers, which is followed while the site runs: sites that are taken out
  /// of it are cut off. Empty: the list stays as it is, unless its owner changes it.
  std::string peers_file{};

  /// Nodes find each other, and the list of peers is the roster's: what `security`, `rank` and
  /// `peers_file` say is not used. Unset: the list says who takes part.
  std::optional<RosterOptions> roster{};

  // What is computed; the same at every site.
  sites::MixingKind exchange = sites::MixingKind::push_sum;
  std::string compressor = "none";
  std::string rule{};  ///< rule of gossip (optim/robust/aggregation.h); empty: the average
  /// Step size of gossip; unset: derived from the compressor.
  std::optional<double> consensus_stepsize{};
  StepRuleOptions step_rule{};
  /// Makes the steps in place of step_rule, of which nothing is used then; `further` says what
  /// sites must agree on of it.
  StepRuleFactory own_step_rule{};
  /// What else sites must share, by name: settings of a program's own.
  AgreedSettings further{};
  Round communication_interval = 1;  ///< H: steps of a round, at most
  /// Takes what a round, the site's own steps and its neighbours, made of the model: with a
  /// momentum this is NoLoCo. None: that is the model.
  std::optional<StepRuleOptions> outer_step_rule{};
  /// How much the rounds of a site count that takes fewer than H steps.
  sites::StepWeighting step_weighting = sites::StepWeighting::work;
  std::size_t window = 2;      ///< parcels under way to a peer, at most
  std::uint64_t seed = 0;      ///< seed of the initial model and of rounding
  sites::MassRule mass{};      ///< bounds on mass; push-sum alone
  sites::SecureSumRule sum{};  ///< setting of secure sums; secure_mean alone
  /// model_digest of the initial model; empty: it is drawn from the seed. Unset: SiteOptimizer
  /// digests the parameters that it is given.
  std::optional<std::string> init{};
  DataNames data{};       ///< names of the model's inputs and outputs
  std::string scaling{};  ///< scaling_digest of what scales its inputs; empty: each site's own

  // This site's own.
  Round rounds = 0;  ///< number of rounds; 0: the site goes on until it is told to stop
  /// File into which the model is put after each evaluation and in the end, for other programs
  /// (exported_model.h); empty: none.
  std::string export_file{};
  ModelNotes notes{};  ///< notes in that file
  ModelUnits units{};  ///< units of its graph's data, where it is ONNX
  /// Whether it is an observer: it takes in what comes, sends nothing and takes no steps.
  bool only_takes = false;
  /// Steps of this site in a round, H_i, 1 … H; unset: H.
  std::optional<Round> own_steps{};
  /// Chooses H_i by the site's speed and that of its neighbours (sites/core/own_steps.h), in place
  /// of own_steps.
  bool adapts_steps = false;
  sites::PullLimits pull{};  ///< bounds on what one parcel may do to the model
  Round slack = 0;           ///< rounds that a peer may be behind before it is waited for
  std::chrono::milliseconds timeout{10'000};  ///< silence after which a peer is down
  /// Longest wait in a round for peers that are up and behind.
  std::chrono::milliseconds patience{30'000};
  /// Rounds from one write of the state to the next. 1: each is written before anything of it is
  /// told. More: written while the site goes on, and a site that dies comes back as another one,
  /// with a neighbour's model or this one; what it had not yet told, and its mass, is lost.
  Round save_every = 1;
  /// How long a site without state waits for others before it starts from the initial model.
  std::chrono::milliseconds found_after{30'000};
  /// Once true, every wait ends, and the site is to; a signal handler may set it. Null: nobody
  /// does.
  const std::atomic<bool>* stop = nullptr;
  /// Once true, the site goes at once where it would still wait for others as it leaves, and tells
  /// what is lost by that; the handler of a second signal may set it. Null: nobody does.
  const std::atomic<bool>* haste = nullptr;
  /// Where its reports go, for others to read meanwhile; null: nowhere else.
  SiteBoard* board = nullptr;
  /// Receives evaluations, with the site as the only node; null: no observer.
  Observer* observer = nullptr;
  /// The audit file whose last digest reports show; its owner records the events. Null: none.
  const AuditLog* audit = nullptr;
  /// Noise before anything is sent; the ledger is kept in the folder. After the budget the site
  /// takes no step any more, and goes on to pass on what others make.
  std::optional<PrivacyOptions> privacy{};
};

/// Options of a node that finds the others by a roster; `name` is its own in the run. All else has
/// its default.
SiteOptions options_by_roster(RosterOptions roster, std::string name);

/// What sites must share, in words. `dimension` and `layout` are the model's.
AgreedSettings shared_settings(const SiteOptions& options, const ParameterLayout& layout);

/// By which sites compare their initial models: a prefix of the SHA-256 of its bytes, in hex.
std::string model_digest(std::span<const float> model);

/// The digest of these words (settings_text): SHA-256.
sites::Agreement agreement_of(const std::string& settings);

}  // namespace sotto
