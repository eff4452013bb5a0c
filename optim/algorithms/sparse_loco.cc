#include <sotto/optim/algorithms/sparse_loco.h>

#include <algorithm>
#include <utility>

#include <sotto/optim/algorithm_info.h>
#include <sotto/optim/common_hyperparameters.h>
#include <sotto/optim/exchange/neighbours.h>
#include <sotto/optim/state_io.h>

namespace sotto {
namespace {

constexpr std::string_view kLocoDecay = "decay";
constexpr std::string_view kAggregate = "aggregate";
constexpr std::string_view kByCount = "count";

}  // namespace

SparseLoco::SparseLoco(AlgorithmSetup setup)
    : AllToAllAlgorithm(kInfo, std::move(setup)),
      decay_(node_.hyperparameters().real(kLocoDecay)),
      error_(node_.dimension()),
      work_(node_.dimension()),
      next_(node_.dimension()),
      senders_(node_.hyperparameters().text(kAggregate) == kByCount ? node_.dimension() : 0) {
  if (clips_to_median(node_.hyperparameters())) {
    clip_.emplace(node_.nodes());
  }
}

Status SparseLoco::take_gradient(std::span<const float> gradient) {
  check(accepts_gradient(), "SparseLoCo takes one gradient a round");
  check(gradient.size() == node_.dimension(), "a gradient has the dimension of the parameters");
  if (Status status = node_.require_finite(gradient, "gradient"); !status.ok()) {
    return status;
  }
  // 1. e_i ← β e_i + v_i; send c_i = C(e_i); e_i ← e_i − c_i
  node_.ops().copy(gradient, work_);
  node_.ops().axpy(decay_, error_, work_);
  if (Status status = node_.require_finite(work_, "compensated vector"); !status.ok()) {
    return status;
  }
  const auto payload = node_.encoder().encode_residual(work_, mail_.outgoing());
  std::swap(error_, work_);
  post_to_all(payload.size());
  return {};
}

Status SparseLoco::average() {
  if (!senders_.empty()) {
    return average_by_count();
  }
  node_.ops().fill(0, work_);
  return add_mean(work_, clip_ ? &*clip_ : nullptr);
}

Status SparseLoco::average_by_count() {
  node_.ops().fill(0, work_);
  node_.ops().fill(0, senders_);
  for (Rank from = 0; from < node_.nodes(); ++from) {
    node_.ops().fill(0, next_);
    if (Status status = add_message(from, clip_ ? clip_->factor(from) : 1, next_); !status.ok()) {
      return status;
    }
    node_.ops().axpy(1, next_, work_);
    for (std::size_t k = 0; k < next_.size(); ++k) {
      senders_[k] += next_[k] != 0 ? 1.0F : 0.0F;
    }
  }
  for (std::size_t k = 0; k < work_.size(); ++k) {
    work_[k] /= std::max(senders_[k], 1.0F);
  }
  return {};
}

Status SparseLoco::complete(const Exchange& exchange) {
  if (Status status = mail_.accept(exchange); !status.ok()) {
    return status;
  }
  if (Status status = clip_ ? measure_lengths(*clip_, next_) : Status(); !status.ok()) {
    return status;
  }
  if (Status status = average(); !status.ok()) {
    return status;
  }
  mail_.close();
  // 2. x ← x − d of the mean
  if (Status status = node_.stepper().step(work_, next_); !status.ok()) {
    return status;
  }
  node_.finish_round();
  return {};
}

void SparseLoco::save(ByteBuffer& out) const {
  node_.save(out);
  write_floats(error_, out);
}

Status SparseLoco::load(ByteReader& in) {
  const Status status = node_.load(in);
  return status.ok() ? read_floats(in, "error", error_) : status;
}

namespace {

constexpr std::string_view kAggregates[] = {"mean", kByCount};

constexpr Hyperparameter kSparseLocoHyperparameters[] = {
    {.key = kLocoDecay,
     .symbol = "β",
     .help = "what stays of a node's error from one exchange to the next; 1: all of it",
     .kind = HyperparameterKind::real,
     .most = 1,
     .why = "0.9 to 1 is usual",
     .fallback = "0.95"},
    {.key = kAggregate,
     .symbol = "HOW",
     .help = "what sums are divided by: mean, the number of nodes; count, for comparison, the "
             "number of those that sent the element",
     .kind = HyperparameterKind::choice,
     .choices = kAggregates,
     .fallback = "mean",
     .floats = 1},
    clip_to_median(kClipOfMessages)};
constexpr std::string_view kSparseLocoPlanned[] = {"topk:0.03,values=2"};

}  // namespace

constinit const AlgorithmInfo SparseLoco::kInfo = {
    .name = "sparseloco",
    .title = "SparseLoCo, sparse movements with an error that decays",
    .paper = "Sarfi et al. 2025, arXiv:2508.15706",
    .rule =
        "e_i ← β e_i + v_i; e_i ← e_i − C(e_i); x ← x − d(mean_i C(e_i)), "
        "v_i the gradient or the movement of local steps",
    .summary =
        "DiLoCo with the fewest bytes, for up to some ten nodes that all reach each other; in "
        "place of an outer momentum",
    .hyperparameters = kSparseLocoHyperparameters,
    .contract = ContractKind::contraction,
    .graph = GraphNeed::any,
    .graph_change = GraphChange::any,
    .local_steps = {.fragments = true, .errors_as_momentum = true},
    .agreement = SettingsAgreement::required,
    .bytes = "(n−1) · |C|",
    .memory = {.floats = 3},
    .default_compressor = "topk:0.03,values=2",
    .planned = {.compressors = kSparseLocoPlanned},
    .wire_id = wire_id(AlgorithmId::sparseloco),
    .build = build_algorithm<SparseLoco>};

}  // namespace sotto
