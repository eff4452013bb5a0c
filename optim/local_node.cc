#include <sotto/optim/local_node.h>

#include <functional>
#include <utility>

#include <fmt/format.h>

#include <sotto/base/float_vector.h>
#include <sotto/compress/none.h>
#include <sotto/optim/state_io.h>

namespace sotto {
namespace {

constexpr std::string_view kUpdated = "updated model";

}  // namespace

AlgorithmSetup stepping_part(AlgorithmSetup& setup) {
  AlgorithmSetup part;
  part.rank = setup.rank;
  part.nodes = setup.nodes;
  part.parameters = setup.parameters;
  part.layout = setup.layout;
  part.step_rule = std::move(setup.step_rule);
  part.compressor = setup.compressor->clone();  // names itself in checkpoints
  part.ops = setup.ops;
  part.accelerator = setup.accelerator;
  part.directed = setup.directed;
  part.terms = setup.terms;
  return part;
}

LocalNode::LocalNode(const AlgorithmInfo& info, AlgorithmSetup setup,
                     const std::optional<ParameterLayout>& stepped)
    : info_(info), setup_(std::move(setup)) {
  if (setup_.terms == nullptr) {
    setup_.terms = std::make_shared<RoundTerms>();
  }
  setup_.step_rule->resize(stepped ? *stepped : setup_.layout);
}

void LocalNode::begin_round() {
  check(!in_round_, "begin_round starts a round once");
  in_round_ = true;
}

void LocalNode::finish_round() {
  in_round_ = false;
  ++round_;
}

Status LocalNode::require_finite(std::span<const float> values, std::string_view what) const {
  const NonFinite bad = ops().count_non_finite(values);
  if (bad.count == 0) {
    return {};
  }
  return fault(
      Fault::non_finite,
      fmt::format("the {} has {} elements of {} that are not finite, the first is number "
                  "{}, {}; lower the learning rate, or look at the data",
                  what, bad.count, values.size(), bad.first, element(values, bad.first, ops())));
}

Status LocalNode::direction(std::span<const float> gradient, std::span<float> d) {
  check(gradient.size() == dimension(), "a gradient has the dimension of the parameters");
  return direction_at(0, x(), gradient, d);
}

Status LocalNode::direction_at(std::size_t first, std::span<const float> at,
                               std::span<const float> gradient, std::span<float> d) {
  if (Status status = begin_step(gradient); !status.ok()) {
    return status;
  }
  Status status = setup_.step_rule->direction(round_, at, gradient, d);
  if (status.ok()) {
    return status;
  }
  if (first > 0) {
    status = status.with_context(fmt::format("from parameter {} on", first));
  }
  const bool overwritten = gradient.data() == d.data();  // what was finite
  return overwritten ? overflow_ = here(status) : leave_step_rule(status, gradient);
}

Status LocalNode::enter_step_rule(std::span<const float> gradient) {
  if (!overflow_.ok()) {
    return overflow_;
  }
  Status status = require_finite(gradient, "gradient");
  return status.ok() ? take_gradient() : status;
}

Status LocalNode::begin_step(std::span<const float> gradient, bool begins) {
  if (!overflow_.ok()) {
    return overflow_;
  }
  if (!setup_.step_rule->stateless()) {
    if (Status status = require_finite(gradient, "gradient"); !status.ok()) {
      return status;
    }
  }
  return begins ? take_gradient() : Status();
}

Status LocalNode::take_gradient() {
  if (stepped_ == round_) {
    return fault(Fault::non_finite,
                 "the update overflowed, and the step rule has taken its gradient in: it takes no "
                 "other; go on from a checkpoint, with a lower learning rate");
  }
  stepped_ = round_;
  return {};
}

Status LocalNode::leave_step_rule(const Status& status, std::span<const float> gradient,
                                  bool begins) {
  if (status.ok()) {
    return status;
  }
  if (setup_.step_rule->stateless()) {
    if (Status bad = require_finite(gradient, "gradient"); !bad.ok()) {
      stepped_ = begins ? std::nullopt : stepped_;  // nothing of it stays: another may come
      return bad;
    }
  }
  return overflow_ = here(status);
}

Status LocalNode::direction_part(bool begins, std::size_t first, std::span<const float> gradient,
                                 std::span<float> d) {
  if (Status status = begin_step(gradient, begins); !status.ok()) {
    return status.with_context(fmt::format("from parameter {} on", first));
  }
  if (begins) {
    setup_.step_rule->begin_parts(round_);
  }
  const Status status = leave_step_rule(
      setup_.step_rule->direction_part(first, x().subspan(first, d.size()), gradient, d), gradient,
      begins);
  return status.with_context(fmt::format("from parameter {} on", first));
}

Result<Direction> LocalNode::direction_in(std::span<const float> gradient, std::span<float> room) {
  check(gradient.size() == dimension(), "a gradient has the dimension of the parameters");
  if (Status status = begin_step(gradient); !status.ok()) {
    return status;
  }
  auto d = setup_.step_rule->direction_in(round_, x(), gradient, room);
  if (Status status = leave_step_rule(d.status(), gradient); !status.ok()) {
    return status;
  }
  return d;
}

Status LocalNode::move(std::span<const float> from, std::span<const float> gradient,
                       std::span<float> out) {
  const auto d = direction_in(gradient, out);
  return d ? step_along(from, *d, out) : d.status();
}

Status LocalNode::step_along(std::span<const float> from, const Direction& d,
                             std::span<float> out) const {
  const bool finite = ops().combine({{1, from}, {-d.scale, d.values}}, out);
  return finite ? Status() : require_finite(out, kUpdated);
}

Status LocalNode::step(std::span<const float> gradient, std::span<float> scratch) {
  check(!setup_.directed, "the step rule makes the step");
  if (Status status = begin_step(gradient); !status.ok()) {
    return status;
  }
  const std::span<float> next = setup_.step_rule->moves_in_place() ? x() : scratch;
  const Status status = setup_.step_rule->next_model(round_, x(), gradient, next, ops());
  if (!status.ok()) {
    return leave_step_rule(status, gradient);
  }
  if (Status finite = require_finite(next, kUpdated); !finite.ok()) {
    return finite;
  }
  if (next.data() != x().data()) {
    ops().copy(next, x());
  }
  return {};
}

Status LocalNode::step_from(std::span<const float> from, std::span<const float> gradient,
                            std::span<float> scratch) {
  if (nodes() == 1 && !setup_.directed) {
    return step(gradient, scratch);
  }
  if (Status status = move(from, gradient, scratch); !status.ok()) {
    return status;
  }
  ops().copy(scratch, x());
  return {};
}

std::shared_ptr<std::byte> LocalNode::frame_memory(std::size_t bytes) const {
  if (setup_.accelerator) {
    return setup_.accelerator->frame_memory(bytes);
  }
  const auto frame = std::make_shared<FrameVector>(bytes);
  return {frame, frame->data()};
}

std::unique_ptr<Compressor> LocalNode::make_exact() const {
  auto exact = make_none(setup_.accelerator ? host_ops() : ops());
  return setup_.accelerator ? setup_.accelerator->adopt(*exact) : std::move(exact);
}

std::span<float> LocalNode::scratch() {
  if (setup_.scratch == nullptr) {
    setup_.scratch = std::make_shared<Vector>(dimension(), ops());
  }
  return std::span(*setup_.scratch).first(dimension());
}

RandomKey LocalNode::rounding_key(std::uint32_t part) const {
  return {.seed = setup_.seed,
          .rank = rank(),
          .round = round_,
          .purpose = Purpose::quantize,
          .bucket = setup_.bucket + part};
}

std::span<const std::byte> LocalNode::encode(std::span<const float> x, std::span<std::byte> out,
                                             std::uint32_t part) {
  const std::size_t bytes = setup_.compressor->encode(x, rounding_key(part), out);
  saturated_ += compressor().saturated();
  return out.first(bytes);
}

std::span<const std::byte> LocalNode::encode_residual(std::span<float> v, std::span<std::byte> out,
                                                      std::uint32_t part) {
  return encode_residual(compressor(), v, out, part);
}

std::span<const std::byte> LocalNode::encode_residual(Compressor& codec, std::span<float> v,
                                                      std::span<std::byte> out,
                                                      std::uint32_t part) {
  const std::size_t bytes = codec.encode_residual(v, rounding_key(part), out);
  saturated_ += codec.saturated();
  return out.first(bytes);
}

Result<std::span<const std::byte>> LocalNode::encode_made(const Compressor::Prepare& prepare,
                                                          std::span<float> v,
                                                          std::span<std::byte> out,
                                                          std::string_view what) {
  const auto bytes = setup_.compressor->encode_prepared(prepare, v, rounding_key(0), out);
  if (!bytes) {
    prepare.make(0, v);  // for the count and the place, of what has moved as it is now
    const Status status = require_finite(v, what);
    return status.ok() ? fault(Fault::non_finite,
                               fmt::format("the {} is too large to be encoded by {}; lower the "
                                           "learning rate, or look at the data",
                                           what, compressor().spec()))
                       : status;
  }
  saturated_ += compressor().saturated();
  return std::span<const std::byte>(out.first(*bytes));
}

Result<std::span<const std::byte>> LocalNode::encode_compensated(std::span<const float> x,
                                                                 std::span<const float> error,
                                                                 std::span<float> v,
                                                                 std::span<std::byte> out) {
  const auto compensate = [&](std::size_t first, std::span<float> piece) {
    return ops().combine(
        {{1, x.subspan(first, piece.size())}, {1, error.subspan(first, piece.size())}}, piece);
  };
  return encode_made({std::ref(compensate), {x, error}}, v, out, "compensated model");
}

Status LocalNode::decode_own(std::span<const std::byte> encoding, float scale,
                             std::span<float> y) const {
  return here(compressor().decode_add(encoding, scale, y).with_context("own encoding"));
}

Status LocalNode::fault(Fault kind, std::string_view message) const {
  return {kind, fmt::format("node {}, round {}: {}", rank(), round_, message)};
}

Status LocalNode::here(const Status& status) const {
  return status.ok() ? status : fault(status.fault(), status.message());
}

void LocalNode::save(ByteBuffer& out) const {
  out.write_string(name());
  out.write_string(compressor().spec());
  out.write(rank());
  out.write(std::int32_t{nodes()});
  out.write(std::uint64_t{dimension()});
  out.write(round_);
  setup_.step_rule->save(out);
  setup_.compressor->save(out);
}

Status LocalNode::load(ByteReader& in) {
  if (Status status = expect_name(in, "algorithm", name()); !status.ok()) {
    return status;
  }
  if (Status status = expect_name(in, "compressor", compressor().spec()); !status.ok()) {
    return status;
  }
  const auto saved_rank = in.read<std::int32_t>();
  const auto saved_nodes = in.read<std::int32_t>();
  const auto saved_dimension = in.read<std::uint64_t>();
  const auto saved_round = in.read<Round>();
  if (in.failed() || saved_rank != rank() || saved_nodes != nodes() ||
      saved_dimension != dimension()) {
    return {Fault::malformed,
            fmt::format("checkpoint of node {} of {} with {} parameters where node {} of {} has {}",
                        saved_rank, saved_nodes, saved_dimension, rank(), nodes(), dimension())};
  }
  round_ = saved_round;
  in_round_ = false;
  stepped_.reset();
  const Status status = setup_.step_rule->load(in);
  return status.ok() ? setup_.compressor->load(in) : status;
}

}  // namespace sotto
