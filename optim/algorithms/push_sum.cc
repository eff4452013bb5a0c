#include <sotto/optim/algorithms/push_sum.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include <fmt/format.h>

#include <sotto/optim/algorithm_info.h>
#include <sotto/optim/common_hyperparameters.h>
#include <sotto/optim/exchange/finite_watch.h>
#include <sotto/optim/exchange/neighbours.h>
#include <sotto/optim/state_io.h>

namespace sotto {
namespace {

/// Below this, a step on x moves z by more than any learning rate allows for.
constexpr double kLeastMass = 0x1p-64;
/// Error that rounding may add to the sum of all masses.
constexpr double kMassTolerance = 1e-6;

void write_header(const PushHeader& header, std::span<std::byte> payload) {
  ByteWriter out(payload);
  out.write(header.share);
  out.write(header.mass);
}

/// Number of out-edges in a round with a share that no earlier one has, without the first.
std::size_t further_shares(std::span<const Edge> edges) {
  std::vector<float> shares;
  for (const Edge& edge : edges) {
    shares.push_back(edge.weight);
  }
  std::sort(shares.begin(), shares.end());
  const auto distinct = std::unique(shares.begin(), shares.end()) - shares.begin();
  return distinct == 0 ? 0 : static_cast<std::size_t>(distinct) - 1;
}

std::size_t max_further_shares(const LocalNode& node) {
  std::size_t most = 0;
  for (Round round = 0; round < node.topology().period(); ++round) {
    most = std::max(most, further_shares(node.topology().out_edges(node.rank(), round)));
  }
  return most;
}

Mailbox share_mailbox(const LocalNode& node) {
  return {node, max_in_degree(node),
          PushHeader::kBytes + node.compressor().max_bytes(node.dimension())};
}

}  // namespace

PushSum::PushSum(AlgorithmSetup setup)
    : MailAlgorithm(kInfo, std::move(setup), share_mailbox),
      eta_(node_.hyperparameters().real("eta")),
      sum_(node_),
      x_(node_.x(), node_.ops()),
      error_(node_.vector()),
      v_(node_.vector()),
      half_(node_.vector()),
      heard_(max_in_degree(node_)),
      reframed_(max_further_shares(node_), FrameVector(mail_.max_frame_bytes())) {}

double PushSum::given() const {
  double sum = 0;
  for (const Edge& edge : node_.out_edges()) {
    sum += static_cast<double>(share(edge));
  }
  return sum;
}

Status PushSum::take_gradient(std::span<const float> gradient) {
  check(accepts_gradient(), "push-sum takes one gradient a round");
  // 1. x_i^½ = x_i − γ ∇f_i(z_i)
  if (Status status = node_.stepper().move(x_, gradient, half_); !status.ok()) {
    return status;
  }
  return send_share();
}

Status PushSum::take_direction(const Direction& d) {
  check(accepts_gradient(), "push-sum takes one gradient a round");
  if (Status status = node_.stepper().step_along(x_, d, half_); !status.ok()) {
    return status;
  }
  return send_share();
}

Status PushSum::step_ahead(const Direction& d, std::span<float> stepped) {
  begin_round();
  if (Status status = node_.stepper().step_along(x_, d, half_); !status.ok()) {
    return status;
  }
  // x_i^½ / ω_i
  if (!node_.ops().combine({{static_cast<float>(1 / mass_), half_}}, stepped)) {
    return node_.require_finite(stepped, "updated model");
  }
  return send_share();
}

Status PushSum::send_share() {
  // 2. v_i = x_i^½ + δ_i; send C(v_i); δ_i ← v_i − C(v_i)
  const auto payload = mail_.outgoing();
  const auto encoding =
      node_.encoder().encode_compensated(half_, error_, v_, payload.subspan(PushHeader::kBytes));
  if (!encoding.ok()) {
    return encoding.status();
  }
  const auto edges = node_.out_edges();
  write_header({.share = edges.empty() ? 0 : static_cast<double>(share(edges[0])), .mass = mass_},
               payload);
  std::swap(error_, v_);
  std::swap(x_, half_);
  mail_.post(graph_plan(node_), PushHeader::kBytes + encoding->size());
  frame_other_shares();
  return {};
}

void PushSum::frame_other_shares() {
  const auto edges = node_.out_edges();
  std::size_t frames = 0;
  for (std::size_t k = 1; k < edges.size(); ++k) {
    const auto same = std::find_if(edges.begin(), edges.end(), [&](const Edge& earlier) {
      return earlier.weight == edges[k].weight;
    });
    const auto first = static_cast<std::size_t>(same - edges.begin());
    if (first < k) {
      mail_.send_instead(k, mail_.frame_to(first));
      continue;
    }
    FrameVector& frame = reframed_[frames++];
    const auto sent = mail_.sent();
    const auto payload = std::span(frame).subspan(kFrameHeaderBytes, sent.size());
    std::copy(sent.begin(), sent.end(), payload.begin());
    write_header({.share = static_cast<double>(share(edges[k])), .mass = mass_}, payload);
    mail_.send_instead(k, mail_.seal(frame));
  }
}

Status PushSum::check_mass(double mass) const {
  if (!std::isfinite(mass)) {
    return {Fault::non_finite, fmt::format("ω is {}", mass)};
  }
  const double most = node_.nodes() * (1 + kMassTolerance);
  if (!(mass >= kLeastMass && mass <= most)) {
    return {Fault::malformed,
            fmt::format("ω is {}, outside {} … {}", mass, kLeastMass, node_.nodes())};
  }
  return {};
}

Status PushSum::read_header(std::size_t edge) {
  ByteReader in(mail_.payload(edge));
  PushHeader header;
  header.share = in.read<double>();
  header.mass = in.read<double>();
  if (in.failed()) {
    return {Fault::malformed, "its payload is too short for a share and ω"};
  }
  if (!std::isfinite(header.share)) {
    return {Fault::non_finite, fmt::format("its share is {}", header.share)};
  }
  if (!(header.share >= kLeastMass && header.share <= 1)) {
    return {Fault::malformed,
            fmt::format("its share is {}, outside {} … 1", header.share, kLeastMass)};
  }
  if (Status status = check_mass(header.mass); !status.ok()) {
    return status;
  }
  heard_[edge] = header;
  return {};
}

Status PushSum::complete(const Exchange& exchange) {
  if (Status status =
          mail_.accept(exchange, [this](std::size_t edge) { return read_header(edge); });
      !status.ok()) {
    return status;
  }
  const double gives = given();

  // ω_i ← ω_i + η (Σ_j P_ij ω_j − ω_i)
  double mass = (1 - gives) * mass_;
  for (std::size_t edge = 0; edge < mail_.from().size(); ++edge) {
    mass += heard_[edge].share * heard_[edge].mass;
  }
  const Status weighed = check_mass(mass);

  // 3. x_i ← x_i^½ + η (Σ_j P_ij C(v_j) − C(v_i)),  z_i = x_i / ω_i
  FiniteWatch watch(node_);
  const auto step = [&](std::size_t first, std::span<const float> change) {
    if (!weighed.ok()) {
      return;
    }
    const Ops& ops = node_.ops();
    const auto x = std::span(x_).subspan(first, change.size());
    const auto z = node_.x().subspan(first, change.size());
    ops.axpy(1, change, x);
    watch.note(ops.combine({{static_cast<float>(1 / mass), x}}, z));
  };
  sum_changes(gives);
  if (Status status = sum_.show(node_, mail_, v_, std::cref(step)); !status.ok()) {
    return status;
  }
  mail_.close();
  if (!weighed.ok()) {
    return node_.fault(weighed.fault(), "after mixing, " + weighed.message());
  }
  // Where x_i is not finite, z_i is not.
  if (Status status = watch.require(node_.x(), "updated model"); !status.ok()) {
    return status;
  }
  mass_ = mass;
  node_.finish_round();
  return {};
}

/// η (Σ_j P_ij C(v_j) − C(v_i)). What is given away need not be a float32 value: its two halves
/// make the own loss what the others gain.
void PushSum::sum_changes(double gives) {
  const auto high = static_cast<float>(gives);
  const auto low = static_cast<float>(gives - static_cast<double>(high));
  sum_.clear();
  for (const float part : {high, low}) {
    if (part != 0) {
      sum_.add_own(mail_.sent().subspan(PushHeader::kBytes), -part);
    }
  }
  for (std::size_t edge = 0; edge < mail_.from().size(); ++edge) {
    sum_.add_next(mail_.payload(edge).subspan(PushHeader::kBytes),
                  static_cast<float>(heard_[edge].share));
  }
}

AlgorithmCounters PushSum::counters() const {
  return {
      .saturated = node_.encoder().saturated(), .bad_frames = mail_.bad_frames(), .mass = mass_};
}

void PushSum::save(ByteBuffer& out) const {
  node_.save(out);
  out.write(mass_);
  write_floats(x_, out);
  write_floats(error_, out);
}

Status PushSum::load(ByteReader& in) {
  if (Status status = node_.load(in); !status.ok()) {
    return status;
  }
  const auto mass = in.read<double>();
  if (in.failed()) {
    return {Fault::malformed, "checkpoint ends before ω"};
  }
  if (Status status = check_mass(mass); !status.ok()) {
    return status.with_context("checkpoint");
  }
  mass_ = mass;
  if (Status status = read_floats(in, "x", x_); !status.ok()) {
    return status;
  }
  return read_floats(in, "error", error_);
}

namespace {

constexpr Hyperparameter kPushSumHyperparameters[] = {consensus_stepsize(default_eta<2>)};
constexpr std::string_view kPushSumPlanned[] = {"none", "quant:8"};

}  // namespace

constinit const AlgorithmInfo PushSum::kInfo = {
    .name = "pushsum",
    .title = "Push-sum, stochastic gradient push on directed graphs",
    .paper = "He et al. 2019, arXiv:1910.04956; Assran et al. 2018, arXiv:1811.10792",
    .rule = "x_i ← Σ_j P_ij (x_j − γ ∇f_j(z_j)); ω_i ← Σ_j P_ij ω_j; z_i = x_i / ω_i",
    .summary = "directed and changing graphs; its compressed form is sotto's own",
    .hyperparameters = kPushSumHyperparameters,
    .contract = ContractKind::contraction,
    .graph = GraphNeed::column_stochastic,
    .graph_change = GraphChange::any,
    .cutting = Cutting::separable,
    .hides_behind = HidesBehind::delayed_gradient,
    .accelerated = true,
    .pattern = ExchangePattern::neighbours,
    .bytes = "out-degree · (|C| + 16)",
    .memory = {.floats = 4},
    .default_compressor = "none",
    .planned = {.compressors = kPushSumPlanned},
    .wire_id = wire_id(AlgorithmId::pushsum),
    .build = build_algorithm<PushSum>};

}  // namespace sotto
