#include <sotto/optim/algorithms/sharded.h>

#include <utility>

#include <sotto/compress/registry.h>
#include <sotto/optim/algorithm_info.h>
#include <sotto/optim/common_hyperparameters.h>

namespace sotto {
namespace {

constexpr std::string_view kGather = "gather";
constexpr std::string_view kAsScattered = "same";

/// C′; null where it is C.
std::unique_ptr<Compressor> make_gather(const LocalNode& node) {
  const std::string_view spec = node.hyperparameters().text(kGather);
  if (spec == kAsScattered) {
    return nullptr;
  }
  auto gather = make_compressor(spec, Sharded::kInfo.contract, node.ops());
  gather->set_workers(node.compressor().shared_workers());
  return gather;
}

}  // namespace

Sharded::Sharded(AlgorithmSetup setup)
    : Sharded(chunk_of(setup.parameters.size(), setup.nodes, setup.rank), std::move(setup)) {}

Sharded::Sharded(Chunk owned, AlgorithmSetup&& setup)
    : ChunkMeanAlgorithm(kInfo, std::move(setup), one_tensor(owned.size), make_gather),
      owned_(owned),
      work_(node_.dimension()) {
  mean_.set_owner([this](std::span<float> mean) { return step(mean); });
  if (clips_to_median(node_.hyperparameters())) {
    mean_.clip_to_median();
  }
}

Status Sharded::take_gradient(std::span<const float> gradient) {
  if (Status status = enter(gradient); !status.ok()) {
    return status;
  }
  // 1. v = g_i + δ_i; send C(v); δ_i ← v − C(v)
  node_.ops().copy(gradient, work_);
  return mean_.begin_compressed(work_);
}

Status Sharded::step(std::span<float> mean) {
  // 2. d_k = d(ḡ_k) at x_k + e_k
  const auto exact = std::span(work_).first(owned_.size);
  node_.ops().combine({{1, owned_.of(node_.x())}, {1, mean_.chunk_error()}}, exact);
  if (Status status = node_.stepper().direction_at(owned_.offset, exact, mean, mean);
      !status.ok()) {
    return status;
  }
  node_.ops().scale(-1, mean);
  return {};
}

Status Sharded::complete(const Exchange& exchange) {
  // 3. u_k = e_k − d_k; send C′(u_k); e_k ← u_k − C′(u_k)
  if (Status status = mean_.complete(exchange, work_); !status.ok() || mean_.open()) {
    return status;
  }
  // 4. x ← x + C′(u)
  node_.ops().axpy(1, node_.x(), work_);
  if (Status status = node_.require_finite(work_, "updated model"); !status.ok()) {
    return status;
  }
  node_.ops().copy(work_, node_.x());
  node_.finish_round();
  return {};
}

void Sharded::save(ByteBuffer& out) const {
  node_.save(out);
  mean_.save(out);
}

Status Sharded::load(ByteReader& in) {
  const Status status = node_.load(in);
  return status.ok() ? mean_.load(in) : status;
}

namespace {

constexpr Hyperparameter kShardedHyperparameters[] = {
    clip_to_median(kClipOfChunks),
    {.key = kGather,
     .symbol = "C′",
     .help = "the compressor of the updates that owners send, as in gather=quant:8; same: the one "
             "of the gradients",
     .kind = HyperparameterKind::compressor,
     .contract = ContractKind::contraction,
     .fallback = kAsScattered}};
constexpr std::string_view kShardedPlanned[] = {"quant:8", "quant:4"};

}  // namespace

constinit const AlgorithmInfo Sharded::kInfo = {
    .name = "sharded",
    .title = "Sharded optimizer, moments with the owners of chunks",
    .paper =
        "Dai et al. 2019, arXiv:1804.05839; Rajbhandari et al. 2020, arXiv:1910.02054; "
        "Wang et al. 2023, arXiv:2306.10209",
    .rule =
        "v_i = g_i + δ_i; δ_i ← v_i − C(v_i); u_k = e_k − d(mean_i C(v_i)_k); "
        "x_k ← x_k + C′(u_k); e_k ← u_k − C′(u_k)",
    .summary =
        "Adam and other rules by element with an n-th of their moments a node, in few bits, where "
        "all nodes reach each other",
    .hyperparameters = kShardedHyperparameters,
    .contract = ContractKind::contraction,
    .graph = GraphNeed::any,
    .graph_change = GraphChange::any,
    .local_steps = {.fragments = true},
    .step_rules = {.by_element = true},
    .compressors = {.of_chunks = true},
    .agreement = SettingsAgreement::required,
    .bytes = "(n−1)/n · (|C| + |C′|)",
    .memory = {.floats = 2, .per_nth = 3},
    .default_compressor = "quant:8",
    .planned = {.compressors = kShardedPlanned},
    .wire_id = wire_id(AlgorithmId::sharded),
    .build = build_algorithm<Sharded>};

}  // namespace sotto
