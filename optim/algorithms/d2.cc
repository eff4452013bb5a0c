#include <sotto/optim/algorithms/d2.h>

#include <utility>

#include <sotto/optim/algorithm_info.h>
#include <sotto/optim/exchange/neighbours.h>
#include <sotto/optim/state_io.h>

namespace sotto {

D2::D2(AlgorithmSetup setup)
    : MailAlgorithm(kInfo, std::move(setup)),
      correction_(node_.vector()),
      y_(node_.vector()),
      change_(node_.vector()),
      difference_(node_.vector()) {}

Status D2::take_gradient(std::span<const float> gradient) {
  check(accepts_gradient(), "D² takes one gradient a round");
  // 1. y_i = x_i − γ g_i + u_i
  if (Status status = node_.stepper().move(node_.x(), gradient, y_); !status.ok()) {
    return status;
  }
  node_.ops().axpy(1, correction_, y_);
  if (Status status = node_.require_finite(y_, "corrected model"); !status.ok()) {
    return status;
  }
  const auto payload = node_.encoder().encode(y_, mail_.outgoing());
  mail_.post(graph_plan(node_), payload.size());
  return {};
}

Status D2::complete(const Exchange& exchange) {
  if (Status status = mail_.accept(exchange); !status.ok()) {
    return status;
  }
  const Ops& ops = node_.ops();

  // 2. Δ_i = Σ_j W_ij (y_j − y_i), in rank order
  ops.fill(0, change_);
  for (std::size_t edge = 0; edge < mail_.from().size(); ++edge) {
    ops.fill(0, difference_);
    if (Status status = node_.encoder().decode_own(mail_.sent(), -1, difference_); !status.ok()) {
      return status;
    }
    const Status decoded = node_.compressor().decode_add(mail_.payload(edge), 1, difference_);
    if (!decoded.ok()) {
      return mail_.refuse(edge, decoded);
    }
    ops.axpy(mail_.from()[edge].weight, difference_, change_);
  }
  mail_.close();

  // x_i ← y_i + Δ_i; u_i ← u_i + Δ_i
  ops.copy(y_, difference_);
  ops.axpy(1, change_, difference_);
  ops.axpy(1, change_, correction_);
  for (const auto& next :
       {std::span<const float>(difference_), std::span<const float>(correction_)}) {
    if (Status status = node_.require_finite(next, "updated model"); !status.ok()) {
      return status;
    }
  }
  ops.copy(difference_, node_.x());
  node_.finish_round();
  return {};
}

void D2::save(ByteBuffer& out) const {
  node_.save(out);
  write_floats(correction_, out);
}

Status D2::load(ByteReader& in) {
  if (Status status = node_.load(in); !status.ok()) {
    return status;
  }
  return read_floats(in, "correction", correction_);
}

constexpr std::string_view kD2Planned[] = {"none"};

constinit const AlgorithmInfo D2::kInfo = {
    .name = "d2",
    .title = "D², for nodes with different data",
    .paper = "Tang et al. 2018, arXiv:1803.07068",
    .rule = "X_{t+1} = W (2 X_t − X_{t−1} − γ G_t + γ G_{t−1})",
    .summary = "as dpsgd, where the nodes' data differ much",
    .contract = ContractKind::exact,
    .graph = GraphNeed::symmetric,
    .eigenvalues_above = -1.0 / 3,
    .accelerated = true,
    .pattern = ExchangePattern::neighbours,
    .bytes = "degree · 4d",
    .memory = {.floats = 4},
    .default_compressor = "none",
    .planned = {.compressors = kD2Planned, .where = PlannedWhere::unlike_data},
    .wire_id = wire_id(AlgorithmId::d2),
    .build = build_algorithm<D2>};

}  // namespace sotto
