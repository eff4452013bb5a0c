#include <sotto/optim/algorithms/all_reduce.h>

#include <utility>

namespace sotto {

AllReduceSgd::AllReduceSgd(AlgorithmSetup setup)
    : node_(AlgorithmId::allreduce, "allreduce", std::move(setup)),
      mean_(node_, node_.dimension(), RingCodec::compressor),
      sum_(node_.vector()),
      next_(node_.vector()) {}

bool AllReduceSgd::begin_round(Exchange& /*out*/) {
  node_.begin_round();
  return false;
}

Status AllReduceSgd::gradient_ready(std::span<const float> gradient, Exchange& out, bool* post) {
  check(accepts_gradient(), "all-reduce takes one gradient a round");
  *post = false;
  if (!node_.ops().combine({{1, gradient}}, sum_)) {
    return node_.require_finite(gradient, "gradient");
  }
  const auto posted = mean_.begin(sum_, 0, "sum of the gradients", out);
  if (!posted.ok()) {
    return posted.status();
  }
  *post = *posted;
  return *post ? Status() : step();
}

Result<bool> AllReduceSgd::exchange_done(const ExchangeTag& /*tag*/, Exchange& out) {
  auto more = mean_.exchange_done(out);
  if (!more.ok() || *more) {
    return more;
  }
  if (Status status = step(); !status) {
    return status;
  }
  return false;
}

Status AllReduceSgd::step() {
  if (Status status = node_.step(sum_, next_); !status) {
    return status;
  }
  node_.finish_round();
  return {};
}

AlgorithmCounters AllReduceSgd::counters() const {
  return {.saturated = node_.saturated(), .bad_frames = mean_.bad_frames()};
}

}  // namespace sotto
