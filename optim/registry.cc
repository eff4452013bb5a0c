#include <sotto/optim/registry.h>

#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <sotto/base/names.h>
#include <sotto/compress/registry.h>
#include <sotto/optim/admission.h>
#include <sotto/optim/algorithms/ad_psgd.h>
#include <sotto/optim/algorithms/all_reduce.h>
#include <sotto/optim/algorithms/apm_squeeze.h>
#include <sotto/optim/algorithms/beer.h>
#include <sotto/optim/algorithms/choco_sgd.h>
#include <sotto/optim/algorithms/d2.h>
#include <sotto/optim/algorithms/d_psgd.h>
#include <sotto/optim/algorithms/dcd_psgd.h>
#include <sotto/optim/algorithms/deep_squeeze.h>
#include <sotto/optim/algorithms/demo.h>
#include <sotto/optim/algorithms/dion.h>
#include <sotto/optim/algorithms/ecd_psgd.h>
#include <sotto/optim/algorithms/ef21.h>
#include <sotto/optim/algorithms/gossip_adam.h>
#include <sotto/optim/algorithms/lead.h>
#include <sotto/optim/algorithms/moniqua.h>
#include <sotto/optim/algorithms/onebit_lamb.h>
#include <sotto/optim/algorithms/power_gossip.h>
#include <sotto/optim/algorithms/power_sgd.h>
#include <sotto/optim/algorithms/push_sum.h>
#include <sotto/optim/algorithms/q_mean.h>
#include <sotto/optim/algorithms/robust_gossip.h>
#include <sotto/optim/algorithms/sharded.h>
#include <sotto/optim/algorithms/sparse_loco.h>
#include <sotto/optim/algorithms/zero_one_adam.h>
#include <sotto/optim/privacy/private_gradient.h>
#include <sotto/optim/wrappers/bucketed.h>
#include <sotto/optim/wrappers/delayed_gradient.h>
#include <sotto/optim/wrappers/local_steps.h>
#include <sotto/optim/wrappers/streamed_steps.h>
#include <sotto/optim/wrappers/two_level.h>
#include <sotto/optim/wrappers/weighted_gradient.h>

namespace sotto {
namespace {

/// The algorithm with what decides when it takes gradients.
std::unique_ptr<Algorithm> build_stepping(const AlgorithmInfo& info, AlgorithmSetup setup) {
  if (setup.streaming.on()) {
    return std::make_unique<StreamedSteps>(info, std::move(setup));
  }
  if (setup.outer_step_rule != nullptr) {
    return std::make_unique<LocalSteps>(info, std::move(setup));
  }
  return build_exchanging(info, std::move(setup));
}

}  // namespace

std::span<const AlgorithmInfo> algorithms() {
  // clang-format off
  static const std::array all = {
      AllReduceSgd::kInfo,
      PowerSgd::kInfo,
      Dion::kInfo,
      DPsgd::kInfo,
      DcdPsgd::kInfo,
      EcdPsgd::kInfo,
      DeepSqueeze::kInfo,
      ChocoSgd::kInfo,
      PowerGossip::kInfo,
      PushSum::kInfo,
      D2::kInfo,
      Beer::kInfo,
      Lead::kInfo,
      ApmSqueeze::kApmSqueeze,
      ApmSqueeze::kOneBitAdam,
      ZeroOneAdam::kInfo,
      OneBitLamb::kInfo,
      GossipAdam::kInfo,
      Ef21::kInfo,
      QMean::kInfo,
      Sharded::kInfo,
      SparseLoco::kInfo,
      Demo::kInfo,
      Moniqua::kInfo,
      AdPsgd::kInfo,
      RobustGossip::kInfo,
  };
  // clang-format on
  return all;
}

const AlgorithmInfo& algorithm_info(std::string_view spec) {
  const std::string_view name = spec.substr(0, spec.find(':'));
  for (const AlgorithmInfo& info : algorithms()) {
    if (info.name == name) {
      return info;
    }
  }
  refuse_unknown("algorithm", name, names_of(algorithms()));
}

std::string AlgorithmSpec::text() const {
  const std::string values = hyperparameters.spec();
  return values.empty() ? std::string(info->name) : fmt::format("{}:{}", info->name, values);
}

AlgorithmSpec parse_algorithm(std::string_view spec) {
  const AlgorithmInfo& info = algorithm_info(spec);
  AlgorithmSpec parsed{&info, {info.name, info.hyperparameters}};
  if (spec.size() > info.name.size()) {
    parsed.hyperparameters.read(spec.substr(info.name.size() + 1));
  }
  return parsed;
}

std::unique_ptr<Algorithm> build_piece(const AlgorithmInfo& info, AlgorithmSetup setup) {
  return setup.delayed_gradient ? std::make_unique<DelayedGradient>(info, std::move(setup))
                                : info.build(std::move(setup));
}

std::unique_ptr<Algorithm> build_exchanging(const AlgorithmInfo& info, AlgorithmSetup setup) {
  return setup.buckets > 1 && info.cutting != Cutting::by_itself
             ? std::make_unique<Bucketed>(info, std::move(setup))
             : build_piece(info, std::move(setup));
}

std::unique_ptr<Algorithm> make_algorithm(std::string_view spec, AlgorithmSetup setup,
                                          std::vector<std::string>* warnings) {
  AlgorithmSpec parsed = parse_algorithm(spec);
  const AlgorithmInfo& info = *parsed.info;
  setup.hyperparameters = std::move(parsed.hyperparameters);
  const bool in_groups = setup.groups != nullptr;
  if (!in_groups) {
    admit(info, setup, warnings);
  }
  if (setup.terms == nullptr) {
    setup.terms = std::make_shared<RoundTerms>();
  }
  // Local steps at different rates leave the models equal after each exchange.
  setup.terms->agreement =
      setup.outer_step_rule == nullptr ? info.agreement : SettingsAgreement::expected;
  const auto privacy = setup.privacy;
  const Rank rank = setup.rank;
  const bool weighted = setup.weighted && (in_groups || setup.outer_step_rule == nullptr);
  const auto terms = setup.terms;
  const Ops& ops = *setup.ops;
  const auto accelerator = setup.accelerator;
  const std::string inner(spec);
  std::unique_ptr<Algorithm> algorithm =
      in_groups ? std::make_unique<TwoLevel>(info, inner, std::move(setup), warnings)
                : build_stepping(info, std::move(setup));
  if (terms->agreement != SettingsAgreement::required) {
    terms->reserve(algorithm->peers().from.size());  // no frame allocates
  }
  if (weighted) {
    algorithm = std::make_unique<WeightedGradient>(std::move(algorithm), terms, ops, accelerator);
  }
  if (privacy) {
    return std::make_unique<PrivateGradient>(std::move(algorithm), privacy, rank);
  }
  return algorithm;
}

}  // namespace sotto
