#include <sotto/sites/core/mixing/make_mixing.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/optim/common_hyperparameters.h>
#include <sotto/sites/core/mixing/gossip_mixing.h>
#include <sotto/sites/core/mixing/push_sum_mixing.h>
#include <sotto/sites/core/mixing/secure_mixing.h>

namespace sotto::sites {
namespace {

float consensus_stepsize(const SiteSetup& setup) {
  if (setup.consensus_stepsize) {
    return static_cast<float>(*setup.consensus_stepsize);
  }
  const double eta = default_consensus_stepsize(*setup.compressor, setup.parameters.size(), 1);
  if (!(eta > 0)) {
    refuse("consensus_stepsize", "none given",
           fmt::format("{} is no contraction on Gaussian vectors, so that no default can be "
                       "derived; give a small one, e.g. 0.01",
                       setup.compressor->spec()));
  }
  return static_cast<float>(eta);
}

/// The part of ‖x‖² that the compressor keeps of Gaussian vectors; none: it is exact.
std::optional<double> kept_by(const Compressor& compressor, std::size_t dimension) {
  if (compressor.contract(dimension).meets(ContractKind::exact)) {
    return std::nullopt;
  }
  constexpr double kLeastKept = 0.01;
  constexpr double kNoCap = 1e9;
  const double eta = default_consensus_stepsize(compressor, dimension, kNoCap);
  return std::max(1 - std::pow(1 + std::max(eta, 0.0), -3), kLeastKept);
}

/// What every mixing needs of a setup.
MixingSetup common_setup(SiteSetup& setup) {
  MixingSetup mixing;
  mixing.parameters = setup.parameters;
  mixing.layout = complete_layout(setup.layout, setup.parameters.size());
  mixing.consensus_stepsize = consensus_stepsize(setup);
  mixing.pull = setup.pull;
  mixing.kept = kept_by(*setup.compressor, setup.parameters.size());
  mixing.ops = setup.ops;
  mixing.step_rule = std::move(setup.step_rule);
  mixing.compressor = std::move(setup.compressor);
  return mixing;
}

std::unique_ptr<Mixing> make_push_sum(SiteSetup& setup) {
  MassSetup mass = {.rule = setup.mass, .cap = setup.mass_cap};
  if (setup.observer) {
    // An observer's mass is nobody's business: 1 after each round, as it weighs what it has by the
    // last few.
    mass.rule.back = mass.rule.least = mass.rule.most = 1;
  }
  return std::make_unique<PushSumMixing>(common_setup(setup), mass);
}

std::unique_ptr<Mixing> make_secure_mean(SiteSetup& setup) {
  const SumSetup sum = {
      .name = setup.name, .rule = setup.sum, .secret = std::exchange(setup.secret, {})};
  return std::make_unique<SecureMixing>(common_setup(setup), sum);
}

}  // namespace

std::unique_ptr<Mixing> make_mixing(SiteSetup& setup) {
  switch (setup.exchange) {
    case MixingKind::push_sum:
      return make_push_sum(setup);
    case MixingKind::gossip:
      return std::make_unique<GossipMixing>(common_setup(setup), setup.rule);
    case MixingKind::secure_mean:
      return make_secure_mean(setup);
  }
  return nullptr;
}

}  // namespace sotto::sites
