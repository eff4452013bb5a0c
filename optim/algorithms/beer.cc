#include <sotto/optim/algorithms/beer.h>

#include <array>
#include <utility>

#include <sotto/optim/algorithm_info.h>
#include <sotto/optim/common_hyperparameters.h>
#include <sotto/optim/exchange/neighbours.h>
#include <sotto/optim/state_io.h>

namespace sotto {
namespace {

/// A payload is the length of the first encoding and the two encodings.
constexpr std::size_t kLengthBytes = sizeof(std::uint64_t);

struct Parts {
  std::array<std::span<const std::byte>, 2> encodings;
  bool whole = false;
};

Parts split(std::span<const std::byte> payload) {
  ByteReader in(payload);
  Parts parts;
  const auto length = in.read<std::uint64_t>();
  parts.whole = !in.failed() && length <= in.remaining();
  if (parts.whole) {
    parts.encodings = {in.take(length), in.take(in.remaining())};
  }
  return parts;
}

/// The first or the second encoding of a payload.
template <std::size_t part>
std::span<const std::byte> encoding(std::span<const std::byte> payload) {
  return split(payload).encodings[part];
}

Mailbox two_encodings_mailbox(const LocalNode& node) {
  return {node, max_in_degree(node),
          kLengthBytes + 2 * node.compressor().max_bytes(node.dimension())};
}

}  // namespace

Beer::Beer(AlgorithmSetup setup)
    : MailAlgorithm(kInfo, std::move(setup), two_encodings_mailbox),
      eta_(node_.hyperparameters().real("eta")),
      model_(node_),
      gradient_(node_),
      shift_(node_.vector()),
      tracked_(node_.vector()),
      next_(node_.vector()) {}

Status Beer::take_gradient(std::span<const float> gradient) {
  check(accepts_gradient(), "BEER takes a gradient after the exchange of the round before");
  if (Status status = node_.require_finite(gradient, "gradient"); !status.ok()) {
    return status;
  }
  const Ops& ops = node_.ops();
  const auto x = node_.x();

  // 1. v_i = ∇_i + s_i + η r_i
  ops.copy(shift_, tracked_);
  ops.axpy(eta_, gradient_.pull, tracked_);
  ops.axpy(1, gradient, tracked_);
  if (Status status = node_.require_finite(tracked_, "tracked gradient"); !status.ok()) {
    return status;
  }

  // 2. x_i ← x_i + η p_i − d(v_i)
  if (Status status = node_.stepper().move(x, tracked_, next_); !status.ok()) {
    return status;
  }
  ops.axpy(eta_, model_.pull, next_);
  if (Status status = node_.require_finite(next_, "updated model"); !status.ok()) {
    return status;
  }

  // 3. send C(v_i − g_i), C(x_i − h_i); nothing is kept before both are known to be finite
  if (node_.round() == 0) {
    ops.fill(0, tracked_);  // G_0 = 0
  } else {
    ops.subtract(tracked_, gradient_.copy, tracked_);
  }
  if (Status status = node_.require_finite(tracked_, "difference to the public gradient");
      !status.ok()) {
    return status;
  }
  const auto payload = mail_.outgoing();
  const std::size_t first =
      node_.encoder().encode(tracked_, payload.subspan(kLengthBytes), 0).size();
  ops.subtract(next_, model_.copy, tracked_);
  if (Status status = node_.require_finite(tracked_, "difference to the public model");
      !status.ok()) {
    return status;
  }
  const std::size_t second =
      node_.encoder().encode(tracked_, payload.subspan(kLengthBytes + first), 1).size();
  ByteWriter(payload).write(std::uint64_t{first});
  ops.axpy(eta_, gradient_.pull, shift_);
  ops.copy(next_, x);
  mail_.post(graph_plan(node_), kLengthBytes + first + second);
  node_.finish_round();
  return {};
}

Status Beer::complete(const Exchange& exchange) {
  const auto judge = [this](std::size_t edge) {
    return split(mail_.payload(edge)).whole
               ? Status()
               : Status{Fault::malformed, "its payload is too short for two encodings"};
  };
  if (Status status = mail_.accept(exchange, judge); !status.ok()) {
    return status;
  }
  // Nothing is kept before all payloads are known to be right.
  if (Status status = PublicCopy::sum_changes(node_, mail_, tracked_, encoding<0>); !status.ok()) {
    return status;
  }
  if (Status status = PublicCopy::sum_changes(node_, mail_, next_, encoding<1>); !status.ok()) {
    return status;
  }
  mail_.close();
  node_.ops().axpy(1, tracked_, gradient_.pull);
  node_.ops().axpy(1, next_, model_.pull);
  const auto own = mail_.sent();
  if (Status status = node_.encoder().decode_own(encoding<0>(own), 1, gradient_.copy);
      !status.ok()) {
    return status;
  }
  return node_.encoder().decode_own(encoding<1>(own), 1, model_.copy);
}

void Beer::save(ByteBuffer& out) const {
  node_.save(out);
  model_.save(out);
  gradient_.save(out);
  write_floats(shift_, out);
}

Status Beer::load(ByteReader& in) {
  if (Status status = node_.load(in); !status.ok()) {
    return status;
  }
  if (Status status = model_.load(in, "model"); !status.ok()) {
    return status;
  }
  if (Status status = gradient_.load(in, "gradient"); !status.ok()) {
    return status;
  }
  return read_floats(in, "shift", shift_);
}

namespace {

constexpr Hyperparameter kBeerHyperparameters[] = {consensus_stepsize(default_eta<1>)};

}  // namespace

constexpr std::string_view kBeerPlanned[] = {"quant:4", "topk:0.1"};

constinit const AlgorithmInfo Beer::kInfo = {
    .name = "beer",
    .title = "BEER, compressed gradient tracking",
    .paper = "Zhao et al. 2022, arXiv:2201.13320",
    .rule =
        "V ← V + η G (W − I) + ∇_t − ∇_{t−1}; X ← X + η H (W − I) − γ V; "
        "G ← G + C(V − G); H ← H + C(X − H)",
    .summary = "any contraction where the nodes' data differ much; two messages a round",
    .hyperparameters = kBeerHyperparameters,
    .contract = ContractKind::contraction,
    .graph = GraphNeed::symmetric,
    .hides_behind = HidesBehind::next_gradient,
    .accelerated = true,
    .encodings_a_frame = 2,
    .bytes = "degree · 2 |C|",
    .memory = {.floats = 7},
    .default_compressor = "topk:0.1",
    .planned = {.compressors = kBeerPlanned, .where = PlannedWhere::unlike_data},
    .wire_id = wire_id(AlgorithmId::beer),
    .build = build_algorithm<Beer>};

}  // namespace sotto
