#include <sotto/optim/algorithms/moniqua.h>

#include <utility>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/optim/algorithm_info.h>
#include <sotto/optim/exchange/neighbours.h>

namespace sotto {
namespace {

GridOptions grid_of(const LocalNode& node) {
  const auto options = grid_options(node.compressor());
  check(options.has_value(), "no other compressor is admitted");
  if (options->bits < ModuloGrid::kLeastBits) {
    refuse("compressor", node.compressor().spec(),
           "so few bits cannot even tell rounded values apart; use 3 to 8");
  }
  return *options;
}

Mailbox grid_mailbox(const LocalNode& node) {
  return {node, max_in_degree(node),
          ModuloGrid::payload_bytes(node.dimension(), grid_of(node).bits)};
}

}  // namespace

Moniqua::Moniqua(AlgorithmSetup setup)
    : MailAlgorithm(kInfo, std::move(setup), grid_mailbox),
      grid_(grid_of(node_), node_.seed(), max_in_degree(node_), node_.ops()),
      mixed_(node_.dimension()),
      next_(node_.dimension()) {
  heard_.reserve(max_in_degree(node_));
  if (const auto far = grid_.beyond_range(node_.x())) {
    refuse("parameters", fmt::format("{}", node_.x()[*far]),
           fmt::format("element {} is beyond 2^48 steps of {}; use a larger step", *far,
                       node_.compressor().spec()));
  }
}

Status Moniqua::require_in_range(std::span<const float> x, std::string_view what) const {
  const auto far = grid_.beyond_range(x);
  return !far ? Status()
              : node_.fault(Fault::non_finite,
                            fmt::format("element {} of the {}, {}, is beyond 2^48 steps of {}; "
                                        "lower the learning rate, or use a larger step",
                                        *far, what, x[*far], node_.compressor().spec()));
}

void Moniqua::begin_round() {
  node_.begin_round();

  // 1. send k_i mod 2^B
  const auto payload = mail_.outgoing().first(grid_.payload_bytes(node_.dimension()));
  grid_.encode(node_.x(), node_.rounding_key(0), payload);
  mail_.post(graph_plan(node_), payload.size());
}

Status Moniqua::complete(const Exchange& exchange) {
  const auto judge = [this](std::size_t edge) {
    return grid_.check_header(mail_.payload(edge), node_.dimension());
  };
  if (Status status = mail_.accept(exchange, judge); !status.ok()) {
    return status;
  }
  // 2. and 3. x_i + Σ_j W_ij (x̂_j − x̂_i)
  heard_.clear();
  for (std::size_t edge = 0; edge < mail_.from().size(); ++edge) {
    heard_.push_back({.payload = mail_.payload(edge), .weight = mail_.from()[edge].weight});
  }
  if (const auto far = grid_.mix(node_.x(), mail_.sent(), heard_, node_.round(), mixed_)) {
    return mail_.refuse(
        *far, {Fault::unexpected,
               fmt::format("the models of nodes {} and {} are further than θ = {:.4g} apart, where "
                           "{} wraps round; raise its step or its bits, or lower the learning rate",
                           node_.rank(), mail_.from()[*far].peer, grid_.reach(),
                           node_.compressor().spec())});
  }
  mail_.close();
  return {};
}

Status Moniqua::take_gradient(std::span<const float> gradient) {
  check(accepts_gradient(), "Moniqua takes a gradient after its exchange");
  // 3. … − γ g_i
  if (Status status = node_.stepper().move(mixed_, gradient, next_); !status.ok()) {
    return status;
  }
  if (Status status = require_in_range(next_, "updated model"); !status.ok()) {
    return status;
  }
  node_.ops().copy(next_, node_.x());
  node_.finish_round();
  return {};
}

Status Moniqua::load(ByteReader& in) {
  const Status status = node_.load(in);
  return status.ok() ? require_in_range(node_.x(), "loaded model") : status;
}

AlgorithmCounters Moniqua::counters() const {
  return {.saturated = 0, .bad_frames = mail_.bad_frames()};
}

constinit const AlgorithmInfo Moniqua::kInfo = {
    .name = "moniqua",
    .title = "Moniqua, models modulo a range",
    .paper = "Lu and De Sa 2020, arXiv:2002.11787",
    .rule =
        "x_i ← x_i + Σ_j W_ij (x̂_j − x̂_i) − γ g_i, x̂ on a grid and sent "
        "modulo 2^B steps",
    .summary =
        "few bits and no memory for neighbours, on graphs that change too; the "
        "models must stay within θ",
    .contract = ContractKind::unbiased_absolute,
    .graph = GraphNeed::doubly_stochastic,
    .graph_change = GraphChange::any,
    .hides_behind = HidesBehind::next_gradient,
    .local_steps = {.outer_after_mixing = true},
    .step_rules = {.may_follow_model = true},
    .compressors = {.family = "grid"},
    .pattern = ExchangePattern::neighbours,
    .bytes = "degree · (B d/8 + 13)",
    .memory = {.floats = 2},
    .default_compressor = "grid:8:0.01",
    .planned =
        {.why_not =
             "its grid has to hold the distances between models, which are not known before a run"},
    .wire_id = wire_id(AlgorithmId::moniqua),
    .build = build_algorithm<Moniqua>};

}  // namespace sotto
