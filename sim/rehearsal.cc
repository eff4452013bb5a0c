#include <sotto/sim/rehearsal.h>

#include <string>
#include <utility>

#include <sotto/base/check.h>
#include <sotto/base/error.h>

namespace sotto {
namespace {

using Timing = RehearsalShape::Timing;
using Pattern = RehearsalShape::Pattern;

/// What the stand-ins of one job have in common.
struct Stage {
  RehearsalShape shape;
  std::shared_ptr<const Topology> topology;
  std::vector<std::byte> frame;    ///< of every send
  std::vector<std::byte> scratch;  ///< of every receive
};

class Rehearsal final : public Algorithm {
 public:
  Rehearsal(std::shared_ptr<Stage> stage, Rank rank) : stage_(std::move(stage)), rank_(rank) {}

  std::string_view name() const override { return "rehearsal"; }
  Peers peers() const override {
    if (stage_->shape.pattern == Pattern::ring) {
      return alone() ? Peers{} : Peers{{next()}, {previous()}, stage_->frame.size()};
    }
    return {stage_->topology->out_peers(rank_), stage_->topology->in_peers(rank_),
            stage_->frame.size()};
  }
  std::span<const float> parameters() const override { return {}; }
  Round round() const override { return round_; }
  bool parameters_ready() const override {
    return stage_->shape.timing != Timing::blocking || !open_;
  }
  bool accepts_gradient() const override { return in_round_ && !open_; }
  bool idle() const override { return !in_round_ && !open_; }

  bool begin_round(Exchange& out) override {
    in_round_ = true;
    return stage_->shape.timing == Timing::before_gradient && post(out);
  }
  Status gradient_ready(std::span<const float> /*gradient*/, Exchange& out, bool* due) override {
    check(accepts_gradient(), "a gradient is taken once its exchange is over");
    *due = stage_->shape.timing != Timing::before_gradient && post(out);
    in_round_ = false;
    ++round_;
    return {};
  }
  Status frame_arrived(Rank /*from*/, std::span<const std::byte> /*frame*/) override { return {}; }
  Result<bool> exchange_done(Exchange& out) override {
    const bool ring = stage_->shape.pattern == Pattern::ring;
    open_ = false;
    if (ring && phase_ + 1 < 2 * (stage_->topology->nodes() - 1)) {
      ++phase_;
      fill(out);
      return true;
    }
    return false;
  }
  AlgorithmCounters counters() const override { return {}; }
  void save(ByteBuffer& out) const override {
    out.write(round_);
    out.write(exchanges_);
  }
  Status load(ByteReader& in) override {
    round_ = in.read<Round>();
    exchanges_ = in.read<Round>();
    return in.failed() ? Status{Fault::malformed, "a rehearsal's state is cut short"} : Status{};
  }

 private:
  bool alone() const { return stage_->topology->nodes() == 1; }
  Rank next() const { return (rank_ + 1) % stage_->topology->nodes(); }
  Rank previous() const {
    return (rank_ + stage_->topology->nodes() - 1) % stage_->topology->nodes();
  }
  bool post(Exchange& out) {
    phase_ = 0;
    if (stage_->shape.pattern == Pattern::ring && alone()) {
      return false;
    }
    fill(out);
    return true;
  }
  void fill(Exchange& out) {
    open_ = true;
    out.sends.clear();
    out.receives.clear();
    // A round that has ended already keeps the number under which its exchange goes on.
    out.tag = {.round = exchanges_++, .phase = 0, .bucket = 0};
    if (stage_->shape.pattern == Pattern::ring) {
      out.sends.push_back({next(), stage_->frame});
      out.receives.push_back({previous(), stage_->scratch});
      return;
    }
    for (const Edge& edge : stage_->topology->out_edges(rank_, round_)) {
      out.sends.push_back({edge.peer, stage_->frame});
    }
    for (const Edge& edge : stage_->topology->in_edges(rank_, round_)) {
      out.receives.push_back({edge.peer, stage_->scratch});
    }
  }

  std::shared_ptr<Stage> stage_;
  Rank rank_;
  int phase_ = 0;
  bool in_round_ = false;
  bool open_ = false;
  Round round_ = 0;
  Round exchanges_ = 0;
};

}  // namespace

RehearsalShape rehearsal_shape(Algorithm& algorithm) {
  RehearsalShape shape;
  Exchange out;
  bool due = algorithm.begin_round(out);
  if (!due) {
    // Any gradient will do, but one of zeros might have nothing to say.
    const std::vector<float> gradient(algorithm.parameters().size(), 1.0F);
    const Status status = algorithm.gradient_ready(gradient, out, &due);
    check(status.ok(), "a fresh algorithm takes a gradient of ones");
    shape.timing = algorithm.parameters_ready() ? Timing::after_gradient : Timing::blocking;
  }
  if (!due || out.sends.empty()) {
    refuse("algorithm", algorithm.name(), "it sends nothing in its first round");
  }
  shape.frame_bytes = out.sends.front().frame.size();
  if (algorithm.name() == "allreduce") {
    shape.pattern = Pattern::ring;
  }
  return shape;
}

std::vector<std::unique_ptr<Algorithm>> make_rehearsals(const RehearsalShape& shape,
                                                        std::shared_ptr<const Topology> topology) {
  const auto stage = std::make_shared<Stage>();
  const int nodes = topology->nodes();
  stage->shape = shape;
  stage->topology = std::move(topology);
  stage->frame.resize(shape.frame_bytes);
  stage->scratch.resize(shape.frame_bytes);
  std::vector<std::unique_ptr<Algorithm>> job;
  job.reserve(static_cast<std::size_t>(nodes));
  for (Rank rank = 0; rank < nodes; ++rank) {
    job.push_back(std::make_unique<Rehearsal>(stage, rank));
  }
  return job;
}

}  // namespace sotto
