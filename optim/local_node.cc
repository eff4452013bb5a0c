#include <sotto/optim/local_node.h>

#include <utility>

#include <fmt/format.h>

#include <sotto/base/float_vector.h>
#include <sotto/compress/none.h>
#include <sotto/optim/state_io.h>

namespace sotto {

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
    : info_(info), setup_(std::move(setup)), stepper_(*this), encoder_(*this) {
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
  stepper_.reset();
  const Status status = setup_.step_rule->load(in);
  return status.ok() ? setup_.compressor->load(in) : status;
}

}  // namespace sotto
