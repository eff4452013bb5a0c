#include <sotto/optim/algorithms/ad_psgd.h>

#include <algorithm>
#include <utility>

#include <sotto/optim/algorithm_info.h>
#include <sotto/optim/exchange/neighbours.h>

namespace sotto {
namespace {

Mailbox pairing_mailbox(const LocalNode& node) {
  return {node, 1, node.compressor().max_bytes(node.dimension())};
}

}  // namespace

AdPsgd::AdPsgd(AlgorithmSetup setup)
    : MailAlgorithm(kInfo, std::move(setup), pairing_mailbox),
      pairings_(node_.topology(), node_.rank(), node_.seed()),
      mixed_(node_.vector()),
      next_(node_.vector()) {}

void AdPsgd::begin_round() {
  node_.begin_round();
  due_ = pairings_.of(node_.round());
  stale_ = 0;
  node_.ops().copy(node_.x(), mixed_);
  post_next();
}

void AdPsgd::post_next() {
  if (due_.empty()) {
    return;
  }
  partner_ = {.peer = due_.front().partner, .weight = 0.5F};
  const auto payload =
      node_.encoder().encode(mixed_, mail_.outgoing(), static_cast<std::uint32_t>(stale_));
  mail_.post({.tag = {.round = node_.round(),
                      .phase = 0,
                      .bucket = static_cast<std::uint32_t>(due_.front().initiator)},
              .compressor = node_.compressor().wire_id(),
              .to = {&partner_, 1},
              .from = {&partner_, 1},
              .elements_out = node_.dimension(),
              .elements_in = node_.dimension()},
             payload.size());
}

Status AdPsgd::complete(const Exchange& exchange) {
  if (Status status = mail_.accept(exchange); !status.ok()) {
    return status;
  }
  // 2. ½ x_i + ½ x_j: the same bits at both nodes, and no overflow.
  node_.ops().copy(mixed_, next_);
  node_.ops().scale(0.5F, next_);
  if (const Status decoded = node_.compressor().decode_add(mail_.payload(0), 0.5F, next_);
      !decoded.ok()) {
    return mail_.refuse(0, decoded);
  }
  mail_.close();
  std::swap(mixed_, next_);
  due_ = due_.subspan(1);
  ++stale_;
  post_next();
  return {};
}

Status AdPsgd::take_gradient(std::span<const float> gradient) {
  check(accepts_gradient(), "AD-PSGD takes a gradient after its pairings");
  // 3. x_i ← x_i − γ g_i
  if (Status status = node_.stepper().step_from(mixed_, gradient, next_); !status.ok()) {
    return status;
  }
  node_.finish_round();
  staleness_.staleness += stale_;
  staleness_.most_stale = std::max(staleness_.most_stale, stale_);
  return {};
}

AlgorithmCounters AdPsgd::counters() const {
  AlgorithmCounters counters = staleness_;
  counters.saturated = node_.encoder().saturated();
  counters.bad_frames = mail_.bad_frames();
  return counters;
}

constexpr std::string_view kAdPsgdPlanned[] = {"none"};

constinit const AlgorithmInfo AdPsgd::kInfo = {
    .name = "adpsgd",
    .title = "AD-PSGD, pairs of nodes at their own pace",
    .paper = "Lian et al. 2018, arXiv:1710.06952",
    .rule =
        "x_i, x_j ← (x_i + x_j) / 2 for random pairs; x_i ← x_i − γ g_i, g_i taken "
        "before",
    .summary = "nodes of uneven speed: each waits only for its next partner",
    .contract = ContractKind::exact,
    .graph = GraphNeed::symmetric,
    .graph_change = GraphChange::any,
    .hides_behind = HidesBehind::next_gradient,
    .accelerated = true,
    .agreement = SettingsAgreement::loose,
    .pattern = ExchangePattern::pairings,
    .bytes = "2 · 4d on average",
    .memory = {.floats = 2},
    .default_compressor = "none",
    .planned = {.compressors = kAdPsgdPlanned, .where = PlannedWhere::uneven_nodes},
    .wire_id = wire_id(AlgorithmId::adpsgd),
    .build = build_algorithm<AdPsgd>};

}  // namespace sotto
