#include <sotto/optim/algorithms/ef21.h>

#include <utility>

#include <sotto/optim/algorithm_info.h>
#include <sotto/optim/exchange/neighbours.h>
#include <sotto/optim/state_io.h>

namespace sotto {
namespace {

constexpr std::string_view kMomentum = "momentum";

}  // namespace

Ef21::Ef21(AlgorithmSetup setup)
    : AllToAllAlgorithm(kInfo, std::move(setup)),
      momentum_(node_.hyperparameters().real(kMomentum)),
      average_(momentum_ < 1 ? node_.vector() : Vector()),
      estimate_(node_.vector()),
      mean_(node_.vector()),
      next_(node_.vector()),
      direction_(node_.vector()) {}

std::span<const float> Ef21::next_average(std::span<const float> gradient) {
  if (average_.empty()) {
    return gradient;
  }
  if (node_.round() == 0) {
    node_.ops().copy(gradient, direction_);
  } else {
    node_.ops().combine({{1 - momentum_, average_}, {momentum_, gradient}}, direction_);
  }
  return direction_;
}

Status Ef21::take_gradient(std::span<const float> gradient) {
  check(accepts_gradient(), "EF21 takes one gradient a round");
  check(gradient.size() == node_.dimension(), "a gradient has the dimension of the parameters");
  if (Status status = node_.require_finite(gradient, "gradient"); !status.ok()) {
    return status;
  }

  // 0. v_i ← (1 − η) v_i + η ∇_i
  // 1. send c_i = C(v_i − g_i);  g_i ← g_i + c_i
  node_.ops().subtract(next_average(gradient), estimate_, next_);
  if (Status status = node_.require_finite(next_, "difference of the gradients"); !status.ok()) {
    return status;
  }
  if (!average_.empty()) {
    std::swap(average_, direction_);
  }
  const auto payload = node_.encoder().encode(next_, mail_.outgoing());
  if (Status status = node_.encoder().decode_own(payload, 1, estimate_); !status.ok()) {
    return status;
  }
  post_to_all(payload.size());
  return {};
}

Status Ef21::complete(const Exchange& exchange) {
  if (Status status = mail_.accept(exchange); !status.ok()) {
    return status;
  }
  // 2. G ← G + (1/n) Σ_j c_j
  node_.ops().copy(mean_, next_);
  if (Status status = add_mean(next_); !status.ok()) {
    return status;
  }
  mail_.close();

  // 3. x ← x − γ G
  if (Status status = node_.stepper().move(node_.x(), next_, direction_); !status.ok()) {
    return status;
  }
  std::swap(mean_, next_);
  node_.ops().copy(direction_, node_.x());
  node_.finish_round();
  return {};
}

void Ef21::save(ByteBuffer& out) const {
  node_.save(out);
  write_floats(average_, out);
  write_floats(estimate_, out);
  write_floats(mean_, out);
}

Status Ef21::load(ByteReader& in) {
  if (Status status = node_.load(in); !status.ok()) {
    return status;
  }
  if (Status status = read_floats(in, "average of the gradients", average_); !status.ok()) {
    return status;
  }
  if (Status status = read_floats(in, "estimate of the gradient", estimate_); !status.ok()) {
    return status;
  }
  return read_floats(in, "mean of the estimates", mean_);
}

namespace {

constexpr Hyperparameter kEf21Hyperparameters[] = {
    {.key = kMomentum,
     .symbol = "η",
     .help = "the weight of the newest gradient in the average that is compressed; 1: no average",
     .kind = HyperparameterKind::real,
     .most = 1,
     .why = "0.1 averages over about 10 rounds",
     .fallback = "1",
     .floats = 1}};

}  // namespace

constexpr std::string_view kEf21Planned[] = {"topk:0.1,values=4"};

constinit const AlgorithmInfo Ef21::kInfo = {
    .name = "ef21",
    .title = "EF21 and EF21-SGDM, compressed differences of gradients",
    .paper = "Richtárik et al. 2021, arXiv:2106.05203; Fatkhullin et al. 2023, arXiv:2305.15155",
    .rule =
        "v_i ← (1 − η) v_i + η ∇_i; g_i ← g_i + C(v_i − g_i); "
        "x ← x − γ (1/n) Σ_i g_i",
    .summary =
        "exact descent with any contraction where all nodes reach each other; "
        "momentum=0.1 where gradients are noisy",
    .hyperparameters = kEf21Hyperparameters,
    .contract = ContractKind::contraction,
    .graph = GraphNeed::any,
    .graph_change = GraphChange::any,
    .accelerated = true,
    .agreement = SettingsAgreement::required,
    .bytes = "(n−1) · |C|",
    .memory = {.floats = 4},
    .default_compressor = "topk:0.1",
    .planned = {.compressors = kEf21Planned, .hyperparameters = "momentum=0.1"},
    .wire_id = wire_id(AlgorithmId::ef21),
    .build = build_algorithm<Ef21>};

}  // namespace sotto
