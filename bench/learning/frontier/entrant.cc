#include "entrant.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include <sotto/optim/registry.h>

namespace sotto::bench {
namespace {

constexpr double kAdam = 2;
constexpr double kMomentum = 1;
constexpr double kLocalSteps = 3;
constexpr double kOuterMomentum = 1;
constexpr double kOuterAfterMixing = 2;
constexpr double kStreamed = 3 + 2.0 / 2;  // 3 + 2/P with P = 2 fragments

constexpr int kRingDegree = 2;

const std::vector<double> kAdamRates = {0.001, 0.003, 0.01};
const std::vector<double> kMuonRates = {0.01, 0.03, 0.1};
const std::vector<double> kMomentumRates = {0.03, 0.1, 0.3};

}  // namespace

std::string Entrant::at(double rate) const { return fmt::format("{} lr={}", words, rate); }

double Entrant::state_floats(int nodes) const {
  const AlgorithmInfo& info = algorithm_info(words.substr(0, words.find(' ')));
  return rule_floats + sotto::state_floats(info.memory, nodes, kRingDegree, false);
}

std::optional<double> further_rate(const std::vector<double>& tried, std::size_t best) {
  const auto at = std::ranges::find(kRates, tried[best]);
  if (at == std::end(kRates)) {
    return std::nullopt;
  }
  if (best == 0 && at != std::begin(kRates)) {
    return *(at - 1);
  }
  if (best + 1 == tried.size() && at + 1 != std::end(kRates)) {
    return *(at + 1);
  }
  return std::nullopt;
}

std::vector<Entrant> entrants(Round rounds) {
  const std::string local = " communication-interval=10";
  // The outer rule of DiLoCo, Douillard et al. 2023 (arXiv:2311.08105).
  const std::string diloco = local + " outer-lr=0.7 outer-momentum=0.9 outer-nesterov=true";
  const std::string adamw = " step-rule=adamw";
  const double around = kAdam + kLocalSteps + kOuterMomentum;
  return {
      {"AdamW all-reduce", "allreduce" + adamw, kAdamRates, kAdam},
      {"DiLoCo", "allreduce" + adamw + diloco, kAdamRates, around},
      {"DiLoCo, streamed", "allreduce" + adamw + diloco + " fragments=2 sync-delay=2 sync-mix=0.5",
       kAdamRates, kAdam + kStreamed + kOuterMomentum},
      {"DiLoCo, 8 bits", "qmean quant:8" + adamw + diloco, kAdamRates, around},
      {"DiLoCo, 4 bits", "qmean quant:4" + adamw + diloco, kAdamRates, around},
      {"DiLoCo, 2 bits", "qmean quant:2" + adamw + diloco, kAdamRates, around},
      {"SparseLoCo, 3 %", "sparseloco topk:0.03,values=2" + adamw + local, kAdamRates,
       kAdam + kLocalSteps},
      {"SparseLoCo, 1 %", "sparseloco topk:0.01,values=2" + adamw + local, kAdamRates,
       kAdam + kLocalSteps},
      // One vector in one bit, where the paper pairs nodes in full precision.
      {"NoLoCo, 1 bit",
       "choco sign ring outer-after-mixing=true outer-lr=0.7 outer-momentum=0.5" + adamw + local,
       kAdamRates, kAdam + kLocalSteps + kOuterAfterMixing + kOuterMomentum},
      {"Muon, DiLoCo", "allreduce step-rule=muon" + diloco, kMuonRates,
       kMomentum + kLocalSteps + kOuterMomentum},
      {"Muon, DiLoCo, 2 bits", "qmean quant:2 step-rule=muon" + diloco, kMuonRates,
       kMomentum + kLocalSteps + kOuterMomentum},
      {"DeMo", "demo", kAdamRates, 0},
      {"PowerSGD, rank 4", "powersgd lowrank:4 momentum=0.9", kMomentumRates, kMomentum},
      {"Dion, rank 8", "dion:scale=50 lowrank:8", kAdamRates, 0},
      {"1-bit Adam", fmt::format("onebit-adam freeze-step={}", rounds / 6), kAdamRates, kAdam},
      {"DCD, 8 bits", "dcd quant:8 ring" + adamw, kAdamRates, kAdam},
  };
}

}  // namespace sotto::bench
