#include <sotto/sim/timing_job.h>

#include <algorithm>
#include <utility>

#include <sotto/base/buckets.h>
#include <sotto/base/check.h>
#include <sotto/base/frame.h>
#include <sotto/base/philox.h>
#include <sotto/optim/registry.h>
#include <sotto/topology/pairings.h>

namespace sotto {
namespace {

using Timing = StandInShape::Timing;

/// The parts that the stand-ins of one job share.
struct SharedFrames {
  StandInShape shape;
  std::shared_ptr<const Topology> topology;
  std::vector<std::byte> frame;    ///< content of every frame that is sent
  std::vector<std::byte> scratch;  ///< room for every frame that is received
  /// The frames of chunks in a ring, by bucket; buckets of equal lengths share them.
  struct Chunks {
    std::shared_ptr<const std::vector<std::byte>> longer;
    std::shared_ptr<const std::vector<std::byte>> shorter;
  };
  std::vector<Chunks> rings;
};

class StandIn final : public Algorithm {
 public:
  StandIn(std::shared_ptr<SharedFrames> shared, Rank rank)
      : shared_(std::move(shared)), rank_(rank) {
    if (shared_->shape.pattern == ExchangePattern::pairings) {
      pairings_ =
          std::make_unique<Paired>(Pairings(*shared_->topology, rank_, shared_->shape.seed));
    }
  }

  std::string_view name() const override { return "stand-in"; }
  Peers peers() const override {
    return {shared_->topology->out_peers(rank_), shared_->topology->in_peers(rank_),
            shared_->frame.size()};
  }
  std::span<const float> parameters() const override { return {}; }
  Round round() const override { return round_; }
  bool parameters_ready() const override {
    return shared_->shape.timing != Timing::blocking || !open_;
  }
  bool accepts_gradient() const override { return in_round_ && !open_; }
  bool idle() const override { return !in_round_ && !open_; }

  void begin_round() override {
    in_round_ = true;
    if (pairings_) {
      pairings_->due = pairings_->all.of(round_);
      want(paired());
    } else {
      want(shared_->shape.timing == Timing::before_gradient);
    }
  }
  Status take_gradient(std::span<const float> /*gradient*/) override {
    check(accepts_gradient(), "a gradient is taken once its exchange is over");
    want(shared_->shape.timing != Timing::before_gradient);
    in_round_ = false;
    ++round_;
    return {};
  }
  Result<bool> next_exchange(Exchange& out) override {
    if (!wanted_) {
      return false;
    }
    wanted_ = false;
    pairings_ ? pair(out) : post(out);
    return true;
  }
  Status complete(const Exchange& /*exchange*/) override {
    open_ = false;
    want(paired());
    return {};
  }
  AlgorithmCounters counters() const override { return {}; }
  void save(ByteBuffer& out) const override {
    out.write(round_);
    out.write(exchanges_);
  }
  Status load(ByteReader& in) override {
    round_ = in.read<Round>();
    exchanges_ = in.read<Round>();
    return in.failed() ? Status{Fault::malformed, "a stand-in's state is cut short"} : Status{};
  }

 private:
  /// What a node of pairings has besides.
  struct Paired {
    explicit Paired(Pairings pairings) : all(std::move(pairings)) {}

    Pairings all;
    std::span<const Pairing> due;  ///< of the round, not posted yet
  };

  void want(bool exchange) {
    wanted_ = exchange;
    open_ |= exchange;
  }
  /// A pairing is due.
  bool paired() const { return pairings_ && !pairings_->due.empty(); }
  /// The next pairing of the round.
  void pair(Exchange& out) {
    const Pairing& next = pairings_->due.front();
    out.tag = {.round = round_, .bucket = static_cast<std::uint32_t>(next.initiator)};
    out.sends.assign(1, {next.partner, shared_->frame});
    out.receives.assign(1, {next.partner, shared_->scratch});
    pairings_->due = pairings_->due.subspan(1);
  }
  void post(Exchange& out) {
    out.sends.clear();
    out.receives.clear();
    // A round that has ended already keeps the number under which its exchange goes on.
    out.tag = {.round = exchanges_};
    for (const Edge& edge : shared_->topology->out_edges(rank_, exchanges_)) {
      Send& send = out.sends.emplace_back();
      send.to = edge.peer;
      send.frame = shared_->frame;
    }
    for (const Edge& edge : shared_->topology->in_edges(rank_, exchanges_)) {
      Receive& receive = out.receives.emplace_back();
      receive.from = edge.peer;
      receive.buffer = shared_->scratch;
    }
    ++exchanges_;
  }

  std::shared_ptr<SharedFrames> shared_;
  Rank rank_;
  std::unique_ptr<Paired> pairings_;  ///< null where each round is with all neighbours
  bool in_round_ = false;
  bool open_ = false;    ///< an exchange is due or under way
  bool wanted_ = false;  ///< an exchange is due
  Round round_ = 0;
  Round exchanges_ = 0;
};

/// Buckets on a ring, in the order of all_reduce.h.
class RingStandIn final : public Algorithm {
 public:
  RingStandIn(std::shared_ptr<SharedFrames> shared, Rank rank)
      : shared_(std::move(shared)), rank_(rank), open_(shared_->rings.size()) {}

  std::string_view name() const override { return "stand-in"; }
  Peers peers() const override {
    return phases() == 0 ? Peers{}
                         : Peers{{neighbour(1)},
                                 {neighbour(-1)},
                                 shared_->scratch.size(),
                                 shared_->rings.size()};
  }
  std::span<const float> parameters() const override { return {}; }
  Round round() const override { return round_; }
  bool parameters_ready() const override { return !summing_; }
  bool accepts_gradient() const override { return in_round_ && !summing_; }
  bool idle() const override { return !in_round_; }

  void begin_round() override { in_round_ = true; }
  Status take_gradient(std::span<const float> /*gradient*/) override {
    check(accepts_gradient(), "a gradient is taken once its exchange is over");
    summing_ = true;
    posted_ = 0;
    return {};
  }
  Result<bool> next_exchange(Exchange& out) override { return post(out); }
  Status complete(const Exchange& exchange) override {
    open_[exchange.tag.bucket] = false;
    return {};
  }
  AlgorithmCounters counters() const override { return {}; }
  void save(ByteBuffer& out) const override { out.write(round_); }
  Status load(ByteReader& in) override {
    round_ = in.read<Round>();
    return in.failed() ? Status{Fault::malformed, "a stand-in's state is cut short"} : Status{};
  }

 private:
  int nodes() const { return shared_->topology->nodes(); }
  std::size_t phases() const { return 2 * static_cast<std::size_t>(nodes() - 1); }
  Rank neighbour(int steps) const { return ((rank_ + steps) % nodes() + nodes()) % nodes(); }

  /// Posts what is next, once its bucket is free; ends the round where nothing is.
  bool post(Exchange& out) {
    const std::size_t bucket = posted_ % open_.size();
    const std::size_t phase = posted_ / open_.size();
    if (!summing_ || open_[bucket]) {
      return false;
    }
    if (phase == phases()) {
      if (std::ranges::find(open_, true) == open_.end()) {
        summing_ = in_round_ = false;
        ++round_;
      }
      return false;
    }
    // Chunk `rank − phase` goes on in each phase (ring_mean.h).
    const Rank chunk = neighbour(-static_cast<int>(phase % static_cast<std::size_t>(nodes())));
    const StandInShape::Ring& ring = shared_->shape.rings[bucket];
    const bool is_short = ring.short_from > 0 && chunk >= ring.short_from;
    out.tag = {.round = round_,
               .phase = static_cast<std::uint16_t>(phase),
               .bucket = static_cast<std::uint32_t>(bucket)};
    const SharedFrames::Chunks& frames = shared_->rings[bucket];
    out.sends.assign(1, {neighbour(1), is_short ? *frames.shorter : *frames.longer});
    out.receives.assign(1, {neighbour(-1), shared_->scratch});
    open_[bucket] = true;
    ++posted_;
    return true;
  }

  std::shared_ptr<SharedFrames> shared_;
  Rank rank_;
  std::vector<bool> open_;  ///< exchanges under way, by bucket
  std::size_t posted_ = 0;  ///< exchanges posted in this round
  bool in_round_ = false;
  bool summing_ = false;
  Round round_ = 0;
};

/// A pull to 0, so that models stay bounded, and noise.
void noise(Rank rank, Round round, std::span<const float> x, std::span<float> gradient) {
  RandomStream random({.rank = rank, .round = round, .purpose = Purpose::generate});
  // A linear congruential generator is noise enough, and a multiplication an element.
  auto state = static_cast<std::uint32_t>(random.below(std::uint64_t{1} << 32U));
  for (std::size_t k = 0; k < x.size(); ++k) {
    state = state * 1664525U + 1013904223U;
    gradient[k] = 0.5F * x[k] + static_cast<float>(state >> 8U) * 0x1p-24F - 0.5F;
  }
}

/// A frame that says how many parameters it encodes, and holds none.
std::vector<std::byte> stand_in(std::size_t bytes, std::uint64_t elements) {
  std::vector<std::byte> frame(bytes);
  if (bytes >= kFrameHeaderBytes) {
    (void)seal_frame({.elements = elements, .payload_bytes = bytes - kFrameHeaderBytes}, frame);
  }
  return frame;
}

/// The stand-ins of chunks, by bucket.
std::vector<SharedFrames::Chunks> ring_frames(const std::vector<StandInShape::Ring>& rings) {
  const auto make = [](std::size_t bytes, std::uint64_t elements) {
    return std::make_shared<const std::vector<std::byte>>(stand_in(bytes, elements));
  };
  std::vector<SharedFrames::Chunks> frames;
  for (const StandInShape::Ring& ring : rings) {
    const bool alike = !frames.empty() && ring.elements == rings.front().elements &&
                       ring.frame_bytes == rings.front().frame_bytes;
    frames.push_back(alike ? frames.front()
                           : SharedFrames::Chunks{make(ring.frame_bytes, ring.elements),
                                                  make(ring.short_frame_bytes, ring.elements - 1)});
  }
  return frames;
}

/// Whether stand-ins play the algorithm: where replicas are kept, frames along edges that are new
/// are whole models.
bool played(const AlgorithmInfo& info, const Topology& topology) {
  return info.pattern != ExchangePattern::irregular &&
         !(info.graph_change == GraphChange::with_handover && topology.period() > 1);
}

/// Counts the frame to one peer of all that the algorithm has to post. Where those go round a ring,
/// each is its bucket's. Says whether anything is posted, which may have no frames.
bool add_frames(Algorithm& algorithm, StandInShape& shape) {
  Exchange out;
  for (bool any = false;; any = true) {
    const auto more = algorithm.next_exchange(out);
    check(more.ok(), "a fresh algorithm takes a gradient of order 1");
    if (!*more) {
      return any;
    }
    if (!out.sends.empty()) {
      const auto frame = out.sends.front().frame;
      shape.frame_bytes += frame.size();
      shape.elements += announced_elements(frame);
      shape.rings.push_back({.frame_bytes = frame.size(), .elements = announced_elements(frame)});
    }
  }
}

/// A node that has somebody to send to in the first round: its frames are those of all. Node 0
/// where none has.
Rank first_sender(const Topology& topology) {
  for (Rank rank = 0; rank < topology.nodes(); ++rank) {
    if (!topology.out_edges(rank, 0).empty()) {
      return rank;
    }
  }
  return 0;
}

}  // namespace

std::optional<StandInShape> stand_in_shape(Algorithm& algorithm, const Topology& topology,
                                           std::uint64_t seed) {
  const AlgorithmInfo& info = algorithm_info(algorithm.name());
  if (!played(info, topology)) {
    return {};
  }
  StandInShape shape{.pattern = info.pattern, .seed = seed};
  algorithm.begin_round();
  if (!add_frames(algorithm, shape)) {
    std::vector<float> gradient(algorithm.parameters().size());
    noise(0, 0, algorithm.parameters(), gradient);
    const Status status = algorithm.take_gradient(gradient);
    check(status.ok(), "a fresh algorithm takes a gradient of order 1");
    (void)add_frames(algorithm, shape);
    shape.timing = algorithm.parameters_ready() ? Timing::after_gradient : Timing::blocking;
  }
  if (shape.frame_bytes == 0) {
    return {};
  }
  if (shape.pattern != ExchangePattern::ring) {
    shape.rings.clear();
    return shape;
  }
  const auto nodes = static_cast<std::size_t>(topology.nodes());
  const Buckets buckets(algorithm.parameters().size(),
                        static_cast<std::uint32_t>(shape.rings.size()));
  for (std::size_t b = 0; b < shape.rings.size(); ++b) {
    StandInShape::Ring& ring = shape.rings[b];
    ring.short_from = static_cast<int>(buckets.length(b) % nodes);
    ring.short_frame_bytes = ring.frame_bytes - (ring.frame_bytes - kFrameHeaderBytes) /
                                                    std::max<std::uint64_t>(ring.elements, 1);
  }
  return shape;
}

std::vector<std::unique_ptr<Algorithm>> make_stand_ins(const StandInShape& shape,
                                                       std::shared_ptr<const Topology> topology) {
  const auto shared = std::make_shared<SharedFrames>();
  const int nodes = topology->nodes();
  shared->shape = shape;
  shared->topology = std::move(topology);
  const bool ring = shape.pattern == ExchangePattern::ring;
  if (ring) {
    check(!shape.rings.empty(), "a ring has a bucket");
    shared->rings = ring_frames(shape.rings);
    shared->scratch.resize(shape.rings.front().frame_bytes);
  } else {
    shared->frame = stand_in(shape.frame_bytes, shape.elements);
    shared->scratch.resize(shape.frame_bytes);
  }
  std::vector<std::unique_ptr<Algorithm>> job;
  job.reserve(static_cast<std::size_t>(nodes));
  for (Rank rank = 0; rank < nodes; ++rank) {
    if (ring) {
      job.push_back(std::make_unique<RingStandIn>(shared, rank));
    } else {
      job.push_back(std::make_unique<StandIn>(shared, rank));
    }
  }
  return job;
}

TimingJob make_timing_job(const NodeFactory& make, std::shared_ptr<const Topology> topology,
                          std::span<const float> start, const TimingJobOptions& options) {
  TimingJob job;
  const int nodes = options.nodes > 0 ? options.nodes : topology->nodes();
  if (options.light) {
    std::vector<float> x(start.begin(), start.end());
    const auto sample = make(first_sender(*topology), x);
    if (const auto shape = stand_in_shape(*sample, *topology, options.seed)) {
      job.nodes = make_stand_ins(*shape, std::move(topology));
      return job;
    }
  }
  job.parameters.assign(static_cast<std::size_t>(nodes), {start.begin(), start.end()});
  for (Rank rank = 0; rank < nodes; ++rank) {
    job.nodes.push_back(make(rank, job.parameters[static_cast<std::size_t>(rank)]));
  }
  job.gradient = noise;
  return job;
}

}  // namespace sotto
