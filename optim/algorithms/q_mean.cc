#include <sotto/optim/algorithms/q_mean.h>

#include <utility>

#include <sotto/optim/algorithm_info.h>
#include <sotto/optim/common_hyperparameters.h>

namespace sotto {
namespace {

constexpr std::string_view kDecay = "decay";

}  // namespace

QMean::QMean(AlgorithmSetup setup)
    : ChunkMeanAlgorithm(kInfo, std::move(setup)),
      work_(node_.dimension()),
      next_(node_.dimension()) {
  mean_.set_error_decay(node_.hyperparameters().real(kDecay));
  if (clips_to_median(node_.hyperparameters())) {
    mean_.clip_to_median();
  }
}

Status QMean::take_gradient(std::span<const float> gradient) {
  if (Status status = enter(gradient); !status.ok()) {
    return status;
  }
  // 1. e_i ← β e_i + v_i; send C(e_i)
  node_.ops().copy(gradient, work_);
  return mean_.begin_compressed(work_);
}

Status QMean::complete(const Exchange& exchange) {
  // 2. a = (1/n) Σ_j c_j + ē; c̄ = C(a)
  if (Status status = mean_.complete(exchange, work_); !status.ok() || mean_.open()) {
    return status;
  }
  // 3. x ← x − d(c̄)
  if (Status status = node_.stepper().step(work_, next_); !status.ok()) {
    return status;
  }
  node_.finish_round();
  return {};
}

void QMean::save(ByteBuffer& out) const {
  node_.save(out);
  mean_.save(out);
}

Status QMean::load(ByteReader& in) {
  const Status status = node_.load(in);
  return status.ok() ? mean_.load(in) : status;
}

namespace {

constexpr Hyperparameter kQMeanHyperparameters[] = {
    {.key = kDecay,
     .symbol = "β",
     .help = "what stays of a node's error from one exchange to the next; 1: all of it",
     .kind = HyperparameterKind::real,
     .most = 1,
     .why = "0.9 to 1 is usual",
     .fallback = "1"},
    clip_to_median(kClipOfChunks)};
constexpr std::string_view kQMeanPlanned[] = {"quant:8", "quant:4", "sign"};

}  // namespace

constinit const AlgorithmInfo QMean::kInfo = {
    .name = "qmean",
    .title = "Quantized mean, error feedback on both passes",
    .paper = "Tang et al. 2019, arXiv:1905.05957; Thérien et al. 2025, arXiv:2505.23725",
    .rule =
        "e_i ← β e_i + v_i; x ← x − d(C(mean_i C(e_i) + ē)), "
        "v_i the gradient or the movement of local steps",
    .summary =
        "means in few bits with any step rule, and DiLoCo's exchange, where all nodes reach "
        "each other",
    .hyperparameters = kQMeanHyperparameters,
    .contract = ContractKind::contraction,
    .graph = GraphNeed::any,
    .graph_change = GraphChange::any,
    .local_steps = {.fragments = true},
    .compressors = {.of_chunks = true},
    .agreement = SettingsAgreement::required,
    .bytes = "2 (n−1)/n · |C|",
    .memory = {.floats = 3, .per_nth = 3},
    .default_compressor = "quant:4",
    .planned = {.compressors = kQMeanPlanned},
    .wire_id = wire_id(AlgorithmId::qmean),
    .build = build_algorithm<QMean>};

}  // namespace sotto
