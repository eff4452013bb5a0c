#include <sotto/optim/algorithms/all_reduce.h>

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include <sotto/optim/algorithm_info.h>

namespace sotto {

AllReduceSgd::AllReduceSgd(AlgorithmSetup setup)
    : NodeAlgorithm(kInfo, std::move(setup)),
      sum_(node_.vector()),
      next_(node_.vector()),
      buckets_(node_.dimension(), node_.most_buckets()) {
  for (std::size_t b = 0; b < buckets_.count(); ++b) {
    rings_.emplace_back(node_, buckets_.length(b), RingCodec::compressor,
                        node_.bucket() + static_cast<std::uint32_t>(b));
  }
}

Peers AllReduceSgd::peers() const {
  Peers peers = rings_.front().peers();  // the longest is the first
  peers.frames_a_round = rings_.size();
  return peers;
}

Status AllReduceSgd::take_gradient(std::span<const float> gradient) {
  check(accepts_gradient(), "all-reduce takes one gradient a round");
  if (!node_.ops().combine({{1, gradient}}, sum_)) {
    return node_.require_finite(gradient, "gradient");
  }
  for (std::size_t b = 0; b < rings_.size(); ++b) {
    rings_[b].begin(buckets_.of(std::span<float>(sum_), b), 0, "sum of the gradients");
  }
  posted_ = 0;
  summing_ = true;
  return step_if_done();
}

Result<bool> AllReduceSgd::next_exchange(Exchange& out) {
  // The next in the order of phases, and in a phase of buckets.
  const std::size_t b = posted_ % rings_.size();
  auto posted = rings_[b].next_exchange(out);
  if (!posted) {
    return placed(b, posted.status());
  }
  posted_ += *posted ? 1U : 0U;
  return posted;
}

Status AllReduceSgd::complete(const Exchange& exchange) {
  if (const Status status = ring(exchange.tag).complete(exchange); !status.ok()) {
    return placed(exchange.tag.bucket, status);
  }
  return step_if_done();
}

Status AllReduceSgd::step_if_done() {
  const auto busy = [](const RingMean& ring) { return ring.busy(); };
  return std::ranges::any_of(rings_, busy) ? Status() : step();
}

Status AllReduceSgd::step() {
  summing_ = false;  // also where the step overflows: a lone node may be asked again
  if (Status status = node_.stepper().step(sum_, next_); !status.ok()) {
    return status;
  }
  node_.finish_round();
  return {};
}

RingMean& AllReduceSgd::ring(const ExchangeTag& tag) {
  check(tag.bucket >= node_.bucket() && tag.bucket - node_.bucket() < rings_.size(),
        "exchanges are of the model's buckets");
  return rings_[tag.bucket - node_.bucket()];
}

Status AllReduceSgd::placed(std::size_t bucket, const Status& status) const {
  return status.ok() || rings_.size() == 1
             ? status
             : status.with_context(fmt::format("bucket {} of {}", bucket, rings_.size()));
}

AlgorithmCounters AllReduceSgd::counters() const {
  AlgorithmCounters sum{.saturated = node_.encoder().saturated()};
  for (const RingMean& ring : rings_) {
    sum.bad_frames += ring.bad_frames();
  }
  return sum;
}

constexpr std::string_view kAllReducePlanned[] = {"none"};

constinit const AlgorithmInfo AllReduceSgd::kInfo = {
    .name = "allreduce",
    .title = "All-reduce SGD on a ring",
    .paper = "Patarasuk and Yuan 2009",
    .rule = "x ← x − γ (1/n) Σ_i g_i",
    .summary =
        "the centralized baseline: exact averages, for links with bandwidth and "
        "low latency",
    .contract = ContractKind::exact,
    .graph = GraphNeed::any,
    .graph_change = GraphChange::any,
    .cutting = Cutting::by_itself,
    .local_steps = {.fragments = true},
    .accelerated = true,
    .most_nodes = RingMean::most_nodes(1),
    .agreement = SettingsAgreement::required,
    .pattern = ExchangePattern::ring,
    .bytes = "2 (n−1)/n · 4d",
    .memory = {.floats = 2},
    .default_compressor = "none",
    .planned = {.compressors = kAllReducePlanned},
    .wire_id = wire_id(AlgorithmId::allreduce),
    .build = build_algorithm<AllReduceSgd>};

}  // namespace sotto
