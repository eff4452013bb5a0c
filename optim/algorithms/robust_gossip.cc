#include <sotto/optim/algorithms/robust_gossip.h>

#include <string_view>
#include <utility>

#include <sotto/optim/algorithm_info.h>
#include <sotto/optim/exchange/neighbours.h>
#include <sotto/optim/robust/byzantine_node.h>
#include <sotto/optim/state_io.h>

namespace sotto {

RobustGossip::RobustGossip(AlgorithmSetup setup)
    : MailAlgorithm(kInfo, std::move(setup)),
      rule_(make_aggregation(node_.hyperparameters().text("rule"), max_in_degree(node_),
                             node_.dimension(), node_.ops())),
      half_(node_.dimension()),
      step_(node_.dimension()),
      next_(node_.dimension()),
      models_(max_in_degree(node_), std::vector<float>(node_.dimension())) {
  received_.reserve(models_.size());
}

Status RobustGossip::take_gradient(std::span<const float> gradient) {
  check(accepts_gradient(), "robust gossip takes one gradient a round");
  // x_i^½ = x_i − γ g_i
  if (Status status = node_.stepper().move(node_.x(), gradient, next_); !status.ok()) {
    return status;
  }
  std::swap(half_, next_);
  node_.ops().subtract(half_, node_.x(), step_);
  const auto payload = node_.encoder().encode(half_, mail_.outgoing());
  mail_.post(graph_plan(node_), payload.size());
  return {};
}

void RobustGossip::open_mail() {
  received_.clear();
  for (std::size_t edge = 0; edge < mail_.from().size(); ++edge) {
    std::vector<float>& model = models_[edge];
    node_.ops().fill(0, model);
    if (node_.compressor().decode_add(mail_.payload(edge), 1, model)) {
      received_.push_back({model, mail_.from()[edge].weight});
    } else {
      ++refused_;
    }
  }
}

Status RobustGossip::complete(const Exchange& exchange) {
  if (Status status = mail_.accept(exchange); !status.ok()) {
    return status;
  }
  open_mail();
  // x_i ← A(x_i^½; x_j^½)
  set_aside_ += rule_->aggregate({.own = half_, .step = step_, .received = received_}, next_);
  if (Status status = node_.require_finite(next_, "updated model"); !status.ok()) {
    return status;
  }
  node_.ops().copy(next_, node_.x());
  mail_.close();
  node_.finish_round();
  return {};
}

AlgorithmCounters RobustGossip::counters() const {
  return {.bad_frames = mail_.bad_frames() + refused_, .set_aside = set_aside_};
}

void RobustGossip::save(ByteBuffer& out) const {
  node_.save(out);
  out.write_string(rule_->spec());
}

Status RobustGossip::load(ByteReader& in) {
  if (Status status = node_.load(in); !status.ok()) {
    return status;
  }
  return expect_name(in, "rule", rule_->spec());
}

namespace {

std::unique_ptr<Algorithm> build_robust(AlgorithmSetup setup) {
  if (setup.adversary != nullptr && setup.adversary->includes(setup.rank)) {
    return std::make_unique<ByzantineNode>(std::move(setup));
  }
  return std::make_unique<RobustGossip>(std::move(setup));
}

}  // namespace

namespace {

constexpr Hyperparameter kRobustHyperparameters[] = {
    {.key = "rule",
     .symbol = "RULE",
     .help = "how neighbours that may lie are taken in, see `sotto list`",
     .kind = HyperparameterKind::text,
     .fallback = kDefaultAggregation,
     .setting = "rule"}};
constexpr std::string_view kRobustPlanned[] = {"none"};

}  // namespace

constinit const AlgorithmInfo RobustGossip::kInfo = {
    .name = "robust",
    .title = "Robust gossip, for neighbours that may lie",
    .paper = "He, Karimireddy, Jaggi 2022, arXiv:2202.01545",
    .rule =
        "x_i^½ = x_i − γ g_i; x_i ← x_i^½ + Σ_j W_ij clip(x_j^½ − x_i^½, τ_i), "
        "or another robust mean",
    .summary = "sites that may be Byzantine; its rule says how neighbours are doubted",
    .hyperparameters = kRobustHyperparameters,
    .contract = ContractKind::exact,
    .graph = GraphNeed::symmetric,
    .graph_change = GraphChange::any,
    .robust = true,
    .bytes = "degree · 4d",
    .memory = {.floats = 3, .per_neighbour = 1},
    .default_compressor = "none",
    .planned = {.compressors = kRobustPlanned},
    .wire_id = wire_id(AlgorithmId::robust),
    .build = build_robust};

}  // namespace sotto
