#include <sotto/optim/algorithms/demo.h>

#include <utility>

#include <sotto/base/error.h>
#include <sotto/optim/algorithm_info.h>
#include <sotto/optim/common_hyperparameters.h>
#include <sotto/optim/exchange/neighbours.h>
#include <sotto/optim/state_io.h>
#include <sotto/optim/step_rules/sgd.h>

namespace sotto {
namespace {

constexpr std::string_view kMomentumDecay = "decay";

float sign_of(float value) {
  return static_cast<float>(static_cast<int>(value > 0) - static_cast<int>(value < 0));
}

}  // namespace

Demo::Demo(AlgorithmSetup setup)
    : AllToAllAlgorithm(kInfo, std::move(setup)),
      decay_(node_.hyperparameters().real(kMomentumDecay)),
      momentum_(node_.dimension()),
      work_(node_.dimension()),
      next_(node_.dimension()) {
  if (clips_to_median(node_.hyperparameters())) {
    clip_.emplace(node_.nodes());
  }
  const auto* const sgd = dynamic_cast<const Sgd*>(&node_.step_rule());
  if (sgd == nullptr) {  // a rule of the caller's own may have that name, too
    refuse("step_rule", node_.step_rule().name(),
           "demo goes by the learning rate, which it knows of sotto's own sgd alone");
  }
  if (sgd->clips()) {
    throw Error("clip_norm",
                "demo steps along signs, whose norm says nothing of the gradients'; leave it out");
  }
}

Status Demo::take_gradient(std::span<const float> gradient) {
  check(accepts_gradient(), "DeMo takes one gradient a round");
  check(gradient.size() == node_.dimension(), "a gradient has the dimension of the parameters");
  if (Status status = node_.stepper().enter_step_rule(gradient); !status.ok()) {
    return status;
  }
  // 1. m_i ← β m_i + γ g_i; send c_i = C(m_i); m_i ← m_i − c_i
  const auto gamma = static_cast<float>(Sgd::of(node_.step_rule()).learning_rate(node_.round()));
  node_.ops().combine({{decay_, momentum_}, {gamma, gradient}}, work_);
  if (Status status = node_.require_finite(work_, "momentum"); !status.ok()) {
    return status;
  }
  const auto payload = node_.encoder().encode_residual(work_, mail_.outgoing());
  std::swap(momentum_, work_);
  post_to_all(payload.size());
  return {};
}

Status Demo::complete(const Exchange& exchange) {
  if (Status status = mail_.accept(exchange); !status.ok()) {
    return status;
  }
  if (Status status = clip_ ? measure_lengths(*clip_, work_) : Status(); !status.ok()) {
    return status;
  }
  node_.ops().fill(0, work_);
  if (Status status = add_mean(work_, clip_ ? &*clip_ : nullptr); !status.ok()) {
    return status;
  }
  if (Status status = node_.require_finite(work_, "mean of the messages"); !status.ok()) {
    return status;
  }
  mail_.close();
  // 2. x ← (1 − γλ) x − γ sign(q)
  for (float& value : work_) {
    value = sign_of(value);
  }
  const auto d = node_.step_rule().direction_in(node_.round(), node_.x(), work_, next_);
  if (!d) {
    return node_.here(d.status());
  }
  if (Status status = node_.stepper().step_along(node_.x(), *d, next_); !status.ok()) {
    return status;
  }
  node_.ops().copy(next_, node_.x());
  node_.finish_round();
  return {};
}

void Demo::save(ByteBuffer& out) const {
  node_.save(out);
  write_floats(momentum_, out);
}

Status Demo::load(ByteReader& in) {
  const Status status = node_.load(in);
  return status.ok() ? read_floats(in, "momentum", momentum_) : status;
}

namespace {

constexpr std::string_view kPapersCompressor = "dct/topk:0.0078125,chunk=4096";

constexpr Hyperparameter kDemoHyperparameters[] = {
    {.key = kMomentumDecay,
     .symbol = "β",
     .help = "what stays of a node's momentum from one round to the next, besides what it sends",
     .kind = HyperparameterKind::real,
     .most = 1,
     .why = "0.999 is the paper's",
     .fallback = "0.999"},
    clip_to_median(kClipOfMessages)};
constexpr std::string_view kDemoPlanned[] = {kPapersCompressor};

}  // namespace

constinit const AlgorithmInfo Demo::kInfo = {
    .name = "demo",
    .title = "DeMo, the largest cosine coefficients of the nodes' momenta",
    .paper = "Peng et al. 2024, arXiv:2411.19870",
    .rule = "m_i ← β m_i + γ g_i; m_i ← m_i − C(m_i); x ← (1 − γλ) x − γ sign(mean_i C(m_i))",
    .summary =
        "an exchange in every round at about a hundredth of the bytes, with steps that need no "
        "Adam, for up to some ten nodes that all reach each other",
    .hyperparameters = kDemoHyperparameters,
    .contract = ContractKind::contraction,
    .graph = GraphNeed::any,
    .graph_change = GraphChange::any,
    .local_steps = {.errors_as_momentum = true},
    .step_rules = {.only = "sgd"},
    .learning_rate = 0.001,
    .agreement = SettingsAgreement::required,
    .bytes = "(n−1) · |C|",
    .memory = {.floats = 3},
    .default_compressor = kPapersCompressor,
    .planned = {.compressors = kDemoPlanned},
    .wire_id = wire_id(AlgorithmId::demo),
    .build = build_algorithm<Demo>};

}  // namespace sotto
