#include <sotto/optim/algorithms/beer.h>

#include <array>
#include <utility>

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

}  // namespace

Beer::Beer(AlgorithmSetup setup)
    : node_(AlgorithmId::beer, "beer", std::move(setup)),
      mail_(node_, max_in_degree(node_),
            kLengthBytes + 2 * node_.compressor().max_bytes(node_.dimension())),
      eta_(node_.consensus_stepsize()),
      model_(node_.dimension()),
      gradient_(node_.dimension()),
      shift_(node_.dimension()),
      tracked_(node_.dimension()),
      next_(node_.dimension()) {}

Peers Beer::peers() const { return graph_peers(node_, mail_); }

bool Beer::begin_round(Exchange& /*out*/) {
  node_.begin_round();
  return false;
}

Status Beer::gradient_ready(std::span<const float> gradient, Exchange& out, bool* post) {
  check(accepts_gradient(), "BEER takes a gradient after the exchange of the round before");
  *post = false;
  if (Status status = node_.require_finite(gradient, "gradient"); !status) {
    return status;
  }
  const Ops& ops = node_.ops();
  const auto x = node_.x();

  // 1. v_i = ∇_i + s_i + η r_i
  ops.copy(shift_, tracked_);
  ops.axpy(eta_, gradient_.pull, tracked_);
  ops.axpy(1, gradient, tracked_);
  if (Status status = node_.require_finite(tracked_, "tracked gradient"); !status) {
    return status;
  }

  // 2. x_i ← x_i + η p_i − d(v_i)
  if (Status status = node_.direction(tracked_, next_); !status) {
    return status;
  }
  ops.subtract(x, next_, next_);
  ops.axpy(eta_, model_.pull, next_);
  if (Status status = node_.require_finite(next_, "updated model"); !status) {
    return status;
  }

  // 3. send C(v_i − g_i), C(x_i − h_i); nothing is kept before both are known to be finite
  if (node_.round() == 0) {
    ops.fill(0, tracked_);  // G_0 = 0
  } else {
    ops.subtract(tracked_, gradient_.copy, tracked_);
  }
  if (Status status = node_.require_finite(tracked_, "difference to the public gradient");
      !status) {
    return status;
  }
  const auto payload = mail_.outgoing();
  const std::size_t first = node_.encode(tracked_, payload.subspan(kLengthBytes), 0).size();
  ops.subtract(next_, model_.copy, tracked_);
  if (Status status = node_.require_finite(tracked_, "difference to the public model"); !status) {
    return status;
  }
  const std::size_t second =
      node_.encode(tracked_, payload.subspan(kLengthBytes + first), 1).size();
  ByteWriter(payload).write(std::uint64_t{first});
  ops.axpy(eta_, gradient_.pull, shift_);
  ops.copy(next_, x);
  mail_.post(graph_plan(node_), kLengthBytes + first + second, out);
  *post = true;
  node_.finish_round();
  return {};
}

Status Beer::frame_arrived(Rank from, std::span<const std::byte> frame) {
  const auto edge = mail_.accept(from, frame);
  if (!edge) {
    return edge.status();
  }
  if (!split(mail_.payload(*edge)).whole) {
    return mail_.refuse(*edge, {Fault::malformed, "its payload is too short for two encodings"});
  }
  return {};
}

Status Beer::pull_change(std::size_t part, std::span<float> change) {
  node_.ops().fill(0, change);
  const auto own = split(mail_.sent()).encodings[part];
  if (Status status = node_.decode_own(own, node_.self_weight() - 1, change); !status) {
    return status;
  }
  for (std::size_t edge = 0; edge < mail_.from().size(); ++edge) {
    const auto encoding = split(mail_.payload(edge)).encodings[part];
    const Status decoded =
        node_.compressor().decode_add(encoding, mail_.from()[edge].weight, change);
    if (!decoded) {
      return mail_.refuse(edge, decoded);
    }
  }
  return {};
}

Result<bool> Beer::exchange_done(Exchange& /*out*/) {
  if (Status status = mail_.require_complete(); !status) {
    return status;
  }
  if (Status status = pull_change(0, tracked_); !status) {
    return status;
  }
  if (Status status = pull_change(1, next_); !status) {
    return status;
  }
  mail_.close();
  const auto own = split(mail_.sent());
  node_.ops().axpy(1, tracked_, gradient_.pull);
  node_.ops().axpy(1, next_, model_.pull);
  if (Status status = node_.decode_own(own.encodings[0], 1, gradient_.copy); !status) {
    return status;
  }
  if (Status status = node_.decode_own(own.encodings[1], 1, model_.copy); !status) {
    return status;
  }
  return false;
}

AlgorithmCounters Beer::counters() const {
  return {.saturated = node_.saturated(), .bad_frames = mail_.bad_frames()};
}

void Beer::save(ByteBuffer& out) const {
  node_.save(out);
  for (const auto* vector :
       {&model_.copy, &model_.pull, &gradient_.copy, &gradient_.pull, &shift_}) {
    write_floats(*vector, out);
  }
}

Status Beer::load(ByteReader& in) {
  if (Status status = node_.load(in); !status) {
    return status;
  }
  struct Part {
    std::string_view name;
    std::vector<float>& vector;
  };
  for (const Part& part :
       {Part{"public model", model_.copy}, Part{"pull on the model", model_.pull},
        Part{"public gradient", gradient_.copy}, Part{"pull on the gradient", gradient_.pull},
        Part{"shift", shift_}}) {
    if (Status status = read_floats(in, part.name, part.vector); !status) {
      return status;
    }
  }
  return {};
}

}  // namespace sotto
