#include <sotto/optim/algorithms/lead.h>

#include <algorithm>
#include <limits>
#include <utility>

#include <sotto/base/error.h>
#include <sotto/compress/registry.h>
#include <sotto/optim/algorithm_info.h>
#include <sotto/optim/exchange/neighbours.h>
#include <sotto/optim/state_io.h>
#include <sotto/optim/step_rules/sgd.h>

namespace sotto {
namespace {

/// The factor of U where γ goes from one value to another, as far as float32 holds it.
float scale_between(double from, double to) {
  constexpr double kMost = std::numeric_limits<float>::max();
  return from > 0 && to > 0 ? static_cast<float>(std::min(to / from, kMost)) : 1;
}

}  // namespace

Lead::Lead(AlgorithmSetup setup)
    : MailAlgorithm(kInfo, std::move(setup)),
      half_step_(node_.hyperparameters().real("gamma") / 2),
      copy_step_(node_.hyperparameters().real("alpha")),
      correction_(node_.vector()),
      public_(node_),
      y_(node_.vector()),
      work_(node_.vector()) {
  // A rule of the caller's own may have that name, too.
  if (dynamic_cast<const Sgd*>(&node_.step_rule()) == nullptr) {
    refuse("step_rule", node_.step_rule().name(),
           "lead goes by the learning rate, which it knows of sotto's own sgd alone");
  }
}

Status Lead::take_gradient(std::span<const float> gradient) {
  check(accepts_gradient(), "LEAD takes one gradient a round");
  const Ops& ops = node_.ops();
  const double gamma = Sgd::of(node_.step_rule()).learning_rate(node_.round());
  stands_ = !(gamma > 0);
  round_rate_ = stands_ ? correction_rate_ : gamma;
  correction_scale_ = scale_between(correction_rate_, round_rate_);

  // 1. y_i = x_i − γ g_i − U_i; U_i itself waits for the end of the round
  const auto d = node_.stepper().direction_in(gradient, y_);
  if (!d) {
    return d.status();
  }
  ops.combine(
      {{1, node_.x()}, {-d->scale, d->values}, {gamma > 0 ? -correction_scale_ : 0, correction_}},
      y_);
  if (Status status = node_.require_finite(y_, "corrected model"); !status.ok()) {
    return status;
  }

  // 2. send q_i = C(y_i − ĥ_i)
  ops.subtract(y_, public_.copy, work_);
  if (Status status = node_.require_finite(work_, "difference to the public copy"); !status.ok()) {
    return status;
  }
  const auto payload = node_.encoder().encode(work_, mail_.outgoing());
  mail_.post(graph_plan(node_), payload.size());
  return {};
}

Status Lead::complete(const Exchange& exchange) {
  if (Status status = mail_.accept(exchange); !status.ok()) {
    return status;
  }
  // 3. Σ_j (W_ij − 1[i = j]) q_j; nothing is kept before all payloads are known to be right
  if (Status status = PublicCopy::sum_changes(node_, mail_, work_); !status.ok()) {
    return status;
  }
  mail_.close();
  const Ops& ops = node_.ops();

  // 4. s_i = p_i + that sum; x_i ← y_i + (γ_c/2) s_i; U_i ← U_i − (γ_c/2) s_i
  ops.combine({{1, y_}, {half_step_, public_.pull}, {half_step_, work_}}, y_);
  if (Status status = node_.require_finite(y_, "updated model"); !status.ok()) {
    return status;
  }
  if (!stands_) {
    ops.combine(
        {{correction_scale_, correction_}, {-half_step_, public_.pull}, {-half_step_, work_}},
        correction_);
  }
  if (Status status = node_.require_finite(correction_, "correction"); !status.ok()) {
    return status;
  }
  correction_rate_ = round_rate_;
  ops.axpy(copy_step_, work_, public_.pull);
  if (Status status = node_.encoder().decode_own(mail_.sent(), copy_step_, public_.copy);
      !status.ok()) {
    return status;
  }
  ops.copy(y_, node_.x());
  node_.finish_round();
  return {};
}

void Lead::save(ByteBuffer& out) const {
  node_.save(out);
  public_.save(out);
  write_floats(correction_, out);
  out.write(correction_rate_);
}

Status Lead::load(ByteReader& in) {
  if (Status status = node_.load(in); !status.ok()) {
    return status;
  }
  if (Status status = public_.load(in, "model"); !status.ok()) {
    return status;
  }
  if (Status status = read_floats(in, "correction", correction_); !status.ok()) {
    return status;
  }
  correction_rate_ = in.read<double>();
  if (in.failed() || !is_learning_rate(correction_rate_)) {
    return {Fault::malformed, "checkpoint without the learning rate of the correction"};
  }
  return {};
}

namespace {

/// C of the theory's bounds, measured on Gaussian vectors: E‖C(x) − x‖² = C ‖x‖².
double variance_of(const Compressor& compressor, std::size_t dimension) {
  const double alpha = dimension == 0 ? 0 : typical_alpha(compressor, dimension);
  return alpha * alpha;
}

double default_gamma(const Compressor& compressor, std::size_t dimension) {
  return 1 / (1 + 3 * variance_of(compressor, dimension));
}

double default_alpha(const Compressor& compressor, std::size_t dimension) {
  return 0.5 / (1 + variance_of(compressor, dimension));
}

constexpr Hyperparameter kLeadHyperparameters[] = {
    {.key = "gamma",
     .symbol = "γ_c",
     .help = "how far to move to the neighbours: half of it a round; by default derived from the "
             "compressor",
     .kind = HyperparameterKind::real,
     .most = 1,
     .why = "1 is what exact messages allow; few bits want less, e.g. 0.5 for 2",
     .derive = default_gamma},
    {.key = "alpha",
     .symbol = "α",
     .help = "the part of a message that public copies take; by default derived from the "
             "compressor",
     .kind = HyperparameterKind::real,
     .most = 1,
     .why = "few bits want less, e.g. 0.3 for 2",
     .derive = default_alpha}};
constexpr std::string_view kLeadPlanned[] = {"quant:8", "quant:4"};

}  // namespace

constinit const AlgorithmInfo Lead::kInfo = {
    .name = "lead",
    .title = "LEAD, exact diffusion in few bits",
    .paper = "Liu et al. 2021, arXiv:2007.00232",
    .rule =
        "y = x − γ g − u; ŷ = h + C(y − h); s = Σ_j W_ij (ŷ_j − ŷ_i); h ← h + α C(y − h); "
        "u ← u − γ_c/2 s; x ← y + γ_c/2 s",
    .summary = "unbiased compressors where the nodes' data differ much; one message a round",
    .hyperparameters = kLeadHyperparameters,
    .contract = ContractKind::unbiased,
    .graph = GraphNeed::symmetric,
    .step_rules = {.only = "sgd"},
    .accelerated = true,
    .pattern = ExchangePattern::neighbours,
    .bytes = "degree · |C|",
    .memory = {.floats = 5},
    .default_compressor = "quant:4",
    .planned = {.compressors = kLeadPlanned},
    .wire_id = wire_id(AlgorithmId::lead),
    .build = build_algorithm<Lead>};

}  // namespace sotto
