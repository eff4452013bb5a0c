#include <sotto/optim/registry.h>

#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <sotto/base/nearest.h>
#include <sotto/compress/registry.h>
#include <sotto/optim/admission.h>
#include <sotto/optim/algorithm_id.h>
#include <sotto/optim/algorithms/ad_psgd.h>
#include <sotto/optim/algorithms/all_reduce.h>
#include <sotto/optim/algorithms/apm_squeeze.h>
#include <sotto/optim/algorithms/beer.h>
#include <sotto/optim/algorithms/bucketed.h>
#include <sotto/optim/algorithms/choco_sgd.h>
#include <sotto/optim/algorithms/d2.h>
#include <sotto/optim/algorithms/d_psgd.h>
#include <sotto/optim/algorithms/dcd_psgd.h>
#include <sotto/optim/algorithms/deep_squeeze.h>
#include <sotto/optim/algorithms/delayed_gradient.h>
#include <sotto/optim/algorithms/ecd_psgd.h>
#include <sotto/optim/algorithms/ef21.h>
#include <sotto/optim/algorithms/gossip_adam.h>
#include <sotto/optim/algorithms/local_steps.h>
#include <sotto/optim/algorithms/moniqua.h>
#include <sotto/optim/algorithms/onebit_lamb.h>
#include <sotto/optim/algorithms/power_gossip.h>
#include <sotto/optim/algorithms/power_sgd.h>
#include <sotto/optim/algorithms/push_sum.h>
#include <sotto/optim/algorithms/robust_gossip.h>
#include <sotto/optim/algorithms/weighted_gradient.h>
#include <sotto/optim/algorithms/zero_one_adam.h>
#include <sotto/optim/exchange/ring_mean.h>
#include <sotto/optim/privacy/private_gradient.h>
#include <sotto/optim/robust/byzantine_node.h>

namespace sotto {
namespace {

constexpr std::uint16_t wire_id(AlgorithmId id) { return static_cast<std::uint16_t>(id); }

template <typename T>
std::unique_ptr<Algorithm> build(AlgorithmSetup setup) {
  return std::make_unique<T>(std::move(setup));
}

constexpr std::string_view kSqueezeRule =
    "m_i = β₁ m̄ + (1 − β₁) g_i; m̄ ← C(mean_i C(m_i + δ_i) + δ̄); "
    "x ← x − γ m̄ / (√v + ε), v frozen";

template <AlgorithmId id>
std::unique_ptr<Algorithm> build_squeeze(AlgorithmSetup setup) {
  return std::make_unique<ApmSqueeze>(id, std::move(setup));
}

std::unique_ptr<Algorithm> build_robust(AlgorithmSetup setup) {
  if (setup.adversary != nullptr && setup.adversary->includes(setup.rank)) {
    return std::make_unique<ByzantineNode>(std::move(setup));
  }
  return std::make_unique<RobustGossip>(std::move(setup));
}

constexpr std::array kAlgorithms = {
    AlgorithmInfo{.name = "allreduce",
                  .title = "All-reduce SGD on a ring",
                  .paper = "Patarasuk and Yuan 2009",
                  .rule = "x ← x − γ (1/n) Σ_i g_i",
                  .summary =
                      "the centralized baseline: exact averages, for links with bandwidth and "
                      "low latency",
                  .contract = ContractKind::exact,
                  .graph = GraphNeed::any,
                  .time_varying = true,
                  .separable = true,
                  .cuts_itself = true,
                  .accelerated = true,
                  .most_nodes = RingMean::most_nodes(1),
                  .agreement = SettingsAgreement::required,
                  .bytes = "2 (n−1)/n · 4d",
                  .memory = {.floats = 2},
                  .default_compressor = "none",
                  .wire_id = wire_id(AlgorithmId::allreduce),
                  .build = build<AllReduceSgd>},
    AlgorithmInfo{.name = "powersgd",
                  .title = "PowerSGD, all-reduce of low-rank factors",
                  .paper = "Vogels et al. 2019, arXiv:1905.13727",
                  .rule = "M_i = g_i + e_i; P = orth(mean_i M_i S); Q = mean_i M_iᵀ P; "
                          "x ← x − γ P Qᵀ; e_i = M_i − P Qᵀ; S ← Q",
                  .summary = "as allreduce, for models of large matrices, in K columns of each",
                  .contract = ContractKind::contraction,
                  .graph = GraphNeed::any,
                  .time_varying = true,
                  .family = "lowrank",
                  .most_nodes = RingMean::most_nodes(2),
                  .agreement = SettingsAgreement::required,
                  .bytes = "2 (n−1)/n · 4f, f = Σ K (rows + columns) over the matrices",
                  .memory = {.floats = 4},
                  .default_compressor = "lowrank:2",
                  .wire_id = wire_id(AlgorithmId::powersgd),
                  .build = build<PowerSgd>},
    AlgorithmInfo{.name = "dpsgd",
                  .title = "D-PSGD, full precision between neighbours",
                  .paper = "Lian et al. 2017, arXiv:1705.09056",
                  .rule = "x_i ← Σ_j W_ij x_j − γ g_i",
                  .summary = "for links with latency and with bandwidth to spare",
                  .contract = ContractKind::exact,
                  .graph = GraphNeed::doubly_stochastic,
                  .time_varying = true,
                  .overlaps = true,
                  .separable = true,
                  .accelerated = true,
                  .bytes = "degree · 4d",
                  .memory = {.floats = 2},
                  .default_compressor = "none",
                  .wire_id = wire_id(AlgorithmId::dpsgd),
                  .build = build<DPsgd>},
    AlgorithmInfo{.name = "dcd",
                  .title = "DCD-PSGD, difference compression",
                  .paper = "Tang et al. 2018, arXiv:1803.06443",
                  .rule = "z_i = Σ_j W_ij x̂_j − γ g_i − x_i; x_i ← x_i + C(z_i)",
                  .summary = "the first choice for quantizers of 4 bits and more on slow links",
                  .contract = ContractKind::unbiased,
                  .graph = GraphNeed::symmetric,
                  .time_varying = true,
                  .replicas = true,
                  .overlaps = true,
                  .separable = true,
                  .bounded_by_spectrum = true,
                  .accelerated = true,
                  .bytes = "degree · |C|; 4d along a new edge",
                  .memory = {.floats = 2, .per_neighbour = 1},
                  .default_compressor = "quant:8",
                  .wire_id = wire_id(AlgorithmId::dcd),
                  .build = build<DcdPsgd>},
    AlgorithmInfo{.name = "ecd",
                  .title = "ECD-PSGD, extrapolation compression",
                  .paper = "Tang et al. 2018, arXiv:1803.06443",
                  .rule = "x_i⁺ = Σ_j W_ij y_j − γ g_i; y_i ← (1 − 2/t) y_i + (2/t) C(z_i), "
                          "z_i = (1 − t/2) x_i + (t/2) x_i⁺",
                  .summary = "for coarse unbiased quantizers with a fixed step",
                  .contract = ContractKind::unbiased_absolute,
                  .graph = GraphNeed::symmetric,
                  .time_varying = true,
                  .replicas = true,
                  .overlaps = true,
                  .separable = true,
                  .extrapolation_clock = true,
                  .accelerated = true,
                  .bytes = "degree · |C|; 4d along a new edge",
                  .memory = {.floats = 3, .per_neighbour = 1},
                  .default_compressor = "grid:8:0.05",
                  .wire_id = wire_id(AlgorithmId::ecd),
                  .build = build<EcdPsgd>},
    AlgorithmInfo{.name = "deepsqueeze",
                  .title = "DeepSqueeze, error-compensated compression",
                  .paper = "Tang et al. 2019, arXiv:1907.07346",
                  .rule = "v_i = x_i − γ g_i + δ_i; δ_i ← v_i − C(v_i); "
                          "x_i ← x_i − γ g_i + η Σ_j (W_ij − 1[i=j]) C(v_j)",
                  .summary = "any contraction, changing graphs, little memory",
                  .contract = ContractKind::contraction,
                  .graph = GraphNeed::doubly_stochastic,
                  .time_varying = true,
                  .delayable = true,
                  .separable = true,
                  .consensus_stepsize = true,
                  .consensus_stepsize_cap = 0.5,
                  .accelerated = true,
                  .bytes = "degree · |C|",
                  .memory = {.floats = 3},
                  .default_compressor = "sign",
                  .wire_id = wire_id(AlgorithmId::deepsqueeze),
                  .build = build<DeepSqueeze>},
    AlgorithmInfo{.name = "choco",
                  .title = "CHOCO-SGD, compressed gossip",
                  .paper = "Koloskova et al. 2019, arXiv:1902.00340, arXiv:1907.09356",
                  .rule = "x̂_i ← x̂_i + C(x_i − γ g_i − x̂_i); "
                          "x_i ← x_i − γ g_i + η Σ_j W_ij (x̂_j − x̂_i)",
                  .summary = "any contraction, however strong; cheap on a graph that stays",
                  .contract = ContractKind::contraction,
                  .graph = GraphNeed::symmetric,
                  .time_varying = true,
                  .replicas = true,
                  .delayable = true,
                  .separable = true,
                  .consensus_stepsize = true,
                  .accelerated = true,
                  .bytes = "degree · |C|; 4d along a new edge",
                  .memory = {.floats = 4, .per_changing_neighbour = 1},
                  .default_compressor = "topk:0.1",
                  .wire_id = wire_id(AlgorithmId::choco),
                  .build = build<ChocoSgd>},
    AlgorithmInfo{.name = "powergossip",
                  .title = "PowerGossip, power iteration on neighbours' differences",
                  .paper = "Vogels et al. 2020, arXiv:2008.01425",
                  .rule = "X_i ← X_i + Σ_j W_ij C(X_j − X_i) − γ G_i; C(D) = (D B) Bᵀ; "
                          "B ← orth(D B), for D and Dᵀ by turns",
                  .summary = "large matrices between neighbours: no consensus step to tune, no "
                             "replicas, graphs that change",
                  .contract = ContractKind::contraction,
                  .graph = GraphNeed::symmetric,
                  .time_varying = true,
                  .overlaps = true,
                  .family = "lowrank",
                  .bytes = "degree · 4f, f = Σ K (rows + columns) / 2 over the matrices, times "
                           "their steps, and all other elements",
                  .memory = {.floats = 2, .of_matrices = "3 K (degree + 1) / shorter side"},
                  .default_compressor = "lowrank:1",
                  .wire_id = wire_id(AlgorithmId::powergossip),
                  .build = build<PowerGossip>},
    AlgorithmInfo{.name = "pushsum",
                  .title = "Push-sum, stochastic gradient push on directed graphs",
                  .paper = "He et al. 2019, arXiv:1910.04956; Assran et al. 2018, arXiv:1811.10792",
                  .rule = "x_i ← Σ_j P_ij (x_j − γ ∇f_j(z_j)); ω_i ← Σ_j P_ij ω_j; z_i = x_i / ω_i",
                  .summary = "directed and changing graphs; its compressed form is sotto's own",
                  .contract = ContractKind::contraction,
                  .graph = GraphNeed::column_stochastic,
                  .time_varying = true,
                  .delayable = true,
                  .separable = true,
                  .consensus_stepsize = true,
                  .accelerated = true,
                  .bytes = "out-degree · (|C| + 16)",
                  .memory = {.floats = 4},
                  .default_compressor = "none",
                  .wire_id = wire_id(AlgorithmId::pushsum),
                  .build = build<PushSum>},
    AlgorithmInfo{.name = "d2",
                  .title = "D², for nodes with different data",
                  .paper = "Tang et al. 2018, arXiv:1803.07068",
                  .rule = "X_{t+1} = W (2 X_t − X_{t−1} − γ G_t + γ G_{t−1})",
                  .summary = "as dpsgd, where the nodes' data differ much",
                  .contract = ContractKind::exact,
                  .graph = GraphNeed::symmetric,
                  .eigenvalues_above = -1.0 / 3,
                  .accelerated = true,
                  .bytes = "degree · 4d",
                  .memory = {.floats = 4},
                  .default_compressor = "none",
                  .wire_id = wire_id(AlgorithmId::d2),
                  .build = build<D2>},
    AlgorithmInfo{
        .name = "beer",
        .title = "BEER, compressed gradient tracking",
        .paper = "Zhao et al. 2022, arXiv:2201.13320",
        .rule = "V ← V + η G (W − I) + ∇_t − ∇_{t−1}; X ← X + η H (W − I) − γ V; "
                "G ← G + C(V − G); H ← H + C(X − H)",
        .summary = "any contraction where the nodes' data differ much; two messages a round",
        .contract = ContractKind::contraction,
        .graph = GraphNeed::symmetric,
        .overlaps = true,
        .consensus_stepsize = true,
        .consensus_stepsize_cap = 0.5,
        .accelerated = true,
        .bytes = "degree · 2 |C|",
        .memory = {.floats = 7},
        .default_compressor = "topk:0.1",
        .wire_id = wire_id(AlgorithmId::beer),
        .build = build<Beer>},
    AlgorithmInfo{
        .name = "apmsqueeze",
        .title = "APMSqueeze, Adam-preconditioned momentum through chunk owners",
        .paper = "Tang et al. 2020, arXiv:2008.11343",
        .rule = kSqueezeRule,
        .summary = "Adam to all nodes in a bit an element, after freeze_step plain rounds",
        .contract = ContractKind::contraction,
        .graph = GraphNeed::any,
        .time_varying = true,
        .step_rule = "adam",
        .freezing = Freezing::given,
        .agreement = SettingsAgreement::required,
        .bytes = "2 (n−1)/n · |C|; 4d for |C| before freeze_step",
        .memory = {.floats = 3, .per_nth = 3},
        .default_compressor = "sign",
        .wire_id = wire_id(AlgorithmId::apmsqueeze),
        .build = build_squeeze<AlgorithmId::apmsqueeze>},
    AlgorithmInfo{.name = "onebit-adam",
                  .title = "1-bit Adam, momentum through chunk owners",
                  .paper = "Tang et al. 2021, arXiv:2102.02888",
                  .rule = kSqueezeRule,
                  .summary = "as apmsqueeze, but finds by itself when the variance is stable",
                  .contract = ContractKind::contraction,
                  .graph = GraphNeed::any,
                  .time_varying = true,
                  .step_rule = "adam",
                  .freezing = Freezing::automatic,
                  .agreement = SettingsAgreement::required,
                  .bytes = "2 (n−1)/n · |C|; 4d for |C| before the freeze",
                  .memory = {.floats = 3, .per_nth = 3},
                  .default_compressor = "sign",
                  .wire_id = wire_id(AlgorithmId::onebit_adam),
                  .build = build_squeeze<AlgorithmId::onebit_adam>},
    AlgorithmInfo{.name = "zeroone-adam",
                  .title = "0/1 Adam, fewer variances and local steps",
                  .paper = "Lu et al. 2022, arXiv:2202.06009",
                  .rule =
                      "m_i = β₁ m_i + (1 − β₁) g_i; u_i ← u_i + γ m_i; x_i = x' − u_i / (√v + ε); "
                      "now and then u ← C(mean_i C(u_i + δ_i) + δ̄), m_i = u / Σγ, x' = x_i",
                  .summary = "as onebit-adam without its warm-up: a bit an element from the start, "
                             "and not in every round after freeze_step",
                  .contract = ContractKind::contraction,
                  .graph = GraphNeed::any,
                  .time_varying = true,
                  .step_rule = "adam",
                  .freezing = Freezing::optional,
                  .local_step_limit = true,
                  .agreement = SettingsAgreement::required,
                  .bytes = "2 (n−1)/n · |C|; 4d for |C| in rounds of variance, 0 in local steps",
                  .memory = {.floats = 5, .per_nth = 3},
                  .default_compressor = "sign",
                  .wire_id = wire_id(AlgorithmId::zero_one_adam),
                  .build = build<ZeroOneAdam>},
    AlgorithmInfo{.name = "onebit-lamb",
                  .title = "1-bit LAMB, step lengths by tensor",
                  .paper = "Li et al. 2021, arXiv:2104.06069",
                  .rule = "m_i = β₁ m̄ + (1 − β₁) g_i; m̄ ← C(mean_i C(s m_i + δ_i) + δ̄) / s; "
                          "x_l ← x_l − γ r_l c_l (m̄ / (√v + ε) + λ x)_l, v and c frozen",
                  .summary = "as onebit-adam, for large batches",
                  .contract = ContractKind::contraction,
                  .graph = GraphNeed::any,
                  .time_varying = true,
                  .step_rule = "lamb",
                  .freezing = Freezing::given,
                  .agreement = SettingsAgreement::required,
                  .bytes = "2 (n−1)/n · |C|; 4d for |C| before freeze_step",
                  .memory = {.floats = 4, .per_nth = 3},
                  .default_compressor = "sign",
                  .wire_id = wire_id(AlgorithmId::onebit_lamb),
                  .build = build<OneBitLamb>},
    AlgorithmInfo{
        .name = "onebit-adam-gossip",
        .title = "Decentralized 1-bit Adam",
        .paper = "sotto's own, after arXiv:2102.02888 and arXiv:1902.00340",
        .rule = "m_i ← β₁ m_i + (1 − β₁) g_i; x_i^½ = x_i − γ m_i / (√v + ε), v frozen and "
                "common; x̂_i ← x̂_i + C(x_i^½ − x̂_i); x_i ← x_i^½ + η Σ_j W_ij (x̂_j − x̂_i)",
        .summary = "Adam between neighbours in a bit an element, after freeze_step rounds in "
                   "full precision",
        .contract = ContractKind::contraction,
        .graph = GraphNeed::symmetric,
        .consensus_stepsize = true,
        .consensus_stepsize_cap = 0.5,
        .step_rule = "adam",
        .freezing = Freezing::given,
        .bytes = "degree · |C|; degree · 8d before the freeze",
        .memory = {.floats = 5},
        .default_compressor = "sign",
        .wire_id = wire_id(AlgorithmId::gossip_adam),
        .build = build<GossipAdam>},
    AlgorithmInfo{.name = "ef21",
                  .title = "EF21, compressed differences of gradients",
                  .paper = "Richtárik et al. 2021, arXiv:2106.05203",
                  .rule = "g_i ← g_i + C(∇_i − g_i); x ← x − γ (1/n) Σ_i g_i",
                  .summary = "exact descent with any contraction where all nodes reach each other "
                             "and gradients have little noise",
                  .contract = ContractKind::contraction,
                  .graph = GraphNeed::any,
                  .time_varying = true,
                  .accelerated = true,
                  .agreement = SettingsAgreement::required,
                  .bytes = "(n−1) · |C|",
                  .memory = {.floats = 4},
                  .default_compressor = "topk:0.1",
                  .wire_id = wire_id(AlgorithmId::ef21),
                  .build = build<Ef21>},
    AlgorithmInfo{.name = "moniqua",
                  .title = "Moniqua, models modulo a range",
                  .paper = "Lu and De Sa 2020, arXiv:2002.11787",
                  .rule = "x_i ← x_i + Σ_j W_ij (x̂_j − x̂_i) − γ g_i, x̂ on a grid and sent "
                          "modulo 2^B steps",
                  .summary =
                      "few bits and no memory for neighbours, on graphs that change too; the "
                      "models must stay within θ",
                  .contract = ContractKind::unbiased_absolute,
                  .graph = GraphNeed::doubly_stochastic,
                  .time_varying = true,
                  .overlaps = true,
                  .family = "grid",
                  .bytes = "degree · (B d/8 + 13)",
                  .memory = {.floats = 2},
                  .default_compressor = "grid:8:0.01",
                  .wire_id = wire_id(AlgorithmId::moniqua),
                  .build = build<Moniqua>},
    AlgorithmInfo{.name = "adpsgd",
                  .title = "AD-PSGD, pairs of nodes at their own pace",
                  .paper = "Lian et al. 2018, arXiv:1710.06952",
                  .rule =
                      "x_i, x_j ← (x_i + x_j) / 2 for random pairs; x_i ← x_i − γ g_i, g_i taken "
                      "before",
                  .summary = "nodes of uneven speed: each waits only for its next partner",
                  .contract = ContractKind::exact,
                  .graph = GraphNeed::symmetric,
                  .time_varying = true,
                  .overlaps = true,
                  .accelerated = true,
                  .agreement = SettingsAgreement::loose,
                  .bytes = "2 · 4d on average",
                  .memory = {.floats = 2},
                  .default_compressor = "none",
                  .wire_id = wire_id(AlgorithmId::adpsgd),
                  .build = build<AdPsgd>},
    AlgorithmInfo{.name = "robust",
                  .title = "Robust gossip, for neighbours that may lie",
                  .paper = "He, Karimireddy, Jaggi 2022, arXiv:2202.01545",
                  .rule = "x_i^½ = x_i − γ g_i; x_i ← x_i^½ + Σ_j W_ij clip(x_j^½ − x_i^½, τ_i), "
                          "or another robust mean",
                  .summary = "sites that may be Byzantine; --rule says how neighbours are doubted",
                  .contract = ContractKind::exact,
                  .graph = GraphNeed::symmetric,
                  .time_varying = true,
                  .aggregation = true,
                  .bytes = "degree · 4d",
                  .memory = {.floats = 3, .per_neighbour = 1},
                  .default_compressor = "none",
                  .wire_id = wire_id(AlgorithmId::robust),
                  .build = build_robust},
};

/// The algorithm with what decides when it takes gradients.
std::unique_ptr<Algorithm> build_stepping(const AlgorithmInfo& info, AlgorithmSetup setup) {
  if (setup.outer_step_rule != nullptr) {
    return std::make_unique<LocalSteps>(info, std::move(setup));
  }
  return build_exchanging(info, std::move(setup));
}

}  // namespace

std::span<const AlgorithmInfo> algorithms() { return kAlgorithms; }

const AlgorithmInfo& algorithm_info(std::string_view name) {
  for (const AlgorithmInfo& info : kAlgorithms) {
    if (info.name == name) {
      return info;
    }
  }
  refuse_unknown("algorithm", name, names_of(kAlgorithms));
}

std::unique_ptr<Algorithm> build_piece(const AlgorithmInfo& info, AlgorithmSetup setup) {
  return setup.delayed_gradient ? std::make_unique<DelayedGradient>(info, std::move(setup))
                                : info.build(std::move(setup));
}

std::unique_ptr<Algorithm> build_exchanging(const AlgorithmInfo& info, AlgorithmSetup setup) {
  return setup.buckets > 1 && !info.cuts_itself ? std::make_unique<Bucketed>(info, std::move(setup))
                                                : build_piece(info, std::move(setup));
}

std::unique_ptr<Algorithm> make_algorithm(std::string_view name, AlgorithmSetup setup,
                                          std::vector<std::string>* warnings) {
  const AlgorithmInfo& info = algorithm_info(name);
  admit(info, setup, warnings);
  if (setup.terms == nullptr) {
    setup.terms = std::make_shared<RoundTerms>();
  }
  // Local steps at different rates leave the models equal after each exchange.
  setup.terms->agreement =
      setup.outer_step_rule == nullptr ? info.agreement : SettingsAgreement::expected;
  const auto privacy = setup.privacy;
  const Rank rank = setup.rank;
  const bool weighted = setup.weighted && setup.outer_step_rule == nullptr;
  const auto terms = setup.terms;
  const Ops& ops = *setup.ops;
  const auto accelerator = setup.accelerator;
  auto algorithm = build_stepping(info, std::move(setup));
  if (terms->agreement != SettingsAgreement::required) {
    terms->reserve(algorithm->peers().from.size());  // no frame allocates
  }
  if (weighted) {
    algorithm = std::make_unique<WeightedGradient>(std::move(algorithm), terms, ops, accelerator);
  }
  if (privacy) {
    return std::make_unique<PrivateGradient>(std::move(algorithm), *privacy, rank);
  }
  return algorithm;
}

double state_floats(const StateMemory& memory, int nodes, int degree, bool changing_graph) {
  return memory.floats + memory.per_nth / nodes +
         degree * (memory.per_neighbour + (changing_graph ? memory.per_changing_neighbour : 0));
}

std::string state_formula(const StateMemory& memory) {
  const auto times = [](double factor, std::string_view what) {
    return factor == 1 ? std::string(what) : fmt::format("{} {}", factor, what);
  };
  std::string text = fmt::format("{}", memory.floats);
  if (memory.per_neighbour > 0) {
    text += " + " + times(memory.per_neighbour, "degree");
  }
  if (memory.per_nth > 0) {
    text += fmt::format(" + {}/n", memory.per_nth);
  }
  if (!memory.of_matrices.empty()) {
    text += fmt::format(" + {}", memory.of_matrices);
  }
  if (memory.per_changing_neighbour > 0) {
    text += fmt::format(", or {} + {} where the graph changes", text,
                        times(memory.per_changing_neighbour, "degree"));
  }
  return text;
}

std::string_view graph_need_name(GraphNeed need) {
  switch (need) {
    case GraphNeed::any:
      return "any";
    case GraphNeed::doubly_stochastic:
      return "doubly stochastic";
    case GraphNeed::symmetric:
      return "symmetric and doubly stochastic";
    case GraphNeed::column_stochastic:
      return "column stochastic";
  }
  return "unknown";
}

}  // namespace sotto
