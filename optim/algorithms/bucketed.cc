#include <sotto/optim/algorithms/bucketed.h>

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace sotto {
namespace {

/// Buckets begin at multiples of it, so that the chunks of compressors are cut as in the whole.
constexpr std::size_t kGrain = 4096;
/// A bucket's vectors stay in the second cache, and its frames are longer than a few packets.
constexpr std::size_t kBucketElements = std::size_t{1} << 18U;
constexpr std::size_t kMostByDefault = 64;

std::size_t bucket_length(std::size_t elements, std::uint32_t buckets) {
  const std::size_t even = (elements + buckets - 1) / buckets;
  return (even + kGrain - 1) / kGrain * kGrain;
}

AlgorithmSetup bucket_part(const AlgorithmSetup& setup, std::uint32_t number,
                           std::span<float> parameters, const std::shared_ptr<Vector>& scratch,
                           const float* direction_scale) {
  AlgorithmSetup part;
  part.rank = setup.rank;
  part.nodes = setup.nodes;
  part.parameters = parameters;
  part.layout = complete_layout({}, parameters.size());
  part.topology = setup.topology;
  part.step_rule = make_step_rule({.learning_rate = 1}, *setup.ops);
  part.compressor = setup.compressor->clone();
  part.compressor->use(setup.compressor->used());
  part.consensus_stepsize = setup.consensus_stepsize;
  part.extrapolation_clock = setup.extrapolation_clock;
  part.seed = setup.seed;
  part.run_id = setup.run_id;
  part.bucket = number;
  part.delayed_gradient = setup.delayed_gradient;
  part.direction_scale = direction_scale;
  part.scratch = scratch;
  part.allow_contract_violation = setup.allow_contract_violation;
  part.ops = setup.ops;
  part.accelerator = setup.accelerator;
  return part;
}

}  // namespace

std::uint32_t default_buckets(std::size_t elements) {
  return static_cast<std::uint32_t>(
      std::clamp(elements / kBucketElements, std::size_t{1}, kMostByDefault));
}

Bucketed::Bucketed(const AlgorithmInfo& info, AlgorithmSetup setup)
    : node_(static_cast<AlgorithmId>(info.wire_id), info.name, stepping_part(setup)),
      direction_(node_.direction_room()) {
  const std::size_t length = bucket_length(node_.dimension(), setup.buckets);
  const std::size_t count = (node_.dimension() + length - 1) / length;
  const auto scratch = std::make_shared<Vector>(std::min(length, node_.dimension()), node_.ops());
  buckets_.reserve(count);
  directions_.reserve(count);
  for (std::size_t first = 0; first < node_.dimension(); first += length) {
    const std::size_t elements = std::min(length, node_.dimension() - first);
    const auto number = static_cast<std::uint32_t>(buckets_.size());
    buckets_.push_back(build_piece(
        info, bucket_part(setup, number, node_.x().subspan(first, elements), scratch, &scale_)));
    directions_.push_back(node_.x().subspan(first, elements));  // as long as its direction
  }
  begun_ = buckets_.size();
  missing_.resize(buckets_.size());
  whole_.reserve(buckets_.size());
  await_directions();
}

Peers Bucketed::peers() const {
  Peers peers = buckets_.front()->peers();  // the longest is the first
  peers.frames_a_round *= buckets_.size();
  return peers;
}

bool Bucketed::parameters_ready() const {
  return !stepping() && std::all_of(buckets_.begin(), buckets_.end(),
                                    [](const auto& bucket) { return bucket->parameters_ready(); });
}

bool Bucketed::accepts_gradient() const {
  return node_.in_round() && begun_ == buckets_.size() && given_ == 0;
}

bool Bucketed::idle() const {
  return !node_.in_round() && std::all_of(buckets_.begin(), buckets_.end(),
                                          [](const auto& bucket) { return bucket->idle(); });
}

bool Bucketed::begin_round(Exchange& out) {
  node_.begin_round();
  begun_ = 0;
  return begin_buckets(out);
}

bool Bucketed::begin_buckets(Exchange& out) {
  while (begun_ < buckets_.size()) {
    if (buckets_[begun_++]->begin_round(out)) {
      return true;
    }
  }
  return false;
}

Status Bucketed::gradient_ready(std::span<const float> gradient, Exchange& /*out*/, bool* post) {
  check(accepts_gradient(), "buckets take one gradient a round");
  *post = false;
  // 1. d_i; an overflow is found here, before a bucket has stepped
  const auto d = node_.direction_in(gradient, direction_);
  if (!d) {
    return d.status();
  }
  cut(*d);
  give(0, d->values.size());
  return {};
}

Status Bucketed::gradient_part(std::size_t first, std::span<const float> part) {
  check(given_ > 0 || accepts_gradient(), "buckets take one gradient a round");
  check(first <= direction_.size() && part.size() <= direction_.size() - first,
        "parts lie in the gradient");
  if (part.empty()) {
    return {};
  }
  if (given_ == 0) {
    cut({1, direction_});
  }
  const auto d = std::span(direction_).subspan(first, part.size());
  if (Status status = node_.direction_part(given_ == 0, first, part, d); !status) {
    return status;
  }
  give(first, part.size());
  return {};
}

void Bucketed::give(std::size_t first, std::size_t elements) {
  given_ += elements;
  const std::size_t length = directions_.front().size();
  for (const std::size_t end = first + elements; first < end;) {
    const std::size_t b = first / length;
    const std::size_t count = std::min(end, (b + 1) * length) - first;
    check(missing_[b] >= count, "each parameter is in one part");
    missing_[b] -= count;
    if (missing_[b] == 0) {
      whole_.push_back(b);
    }
    first += count;
  }
}

void Bucketed::cut(const Direction& direction) {
  scale_ = direction.scale;
  auto rest = direction.values;
  for (auto& piece : directions_) {
    piece = rest.first(piece.size());
    rest = rest.subspan(piece.size());
  }
}

void Bucketed::await_directions() {
  given_ = stepped_ = 0;
  whole_.clear();
  std::ranges::transform(directions_, missing_.begin(), [](auto d) { return d.size(); });
}

Result<bool> Bucketed::next_exchange(Exchange& out) {
  if (begin_buckets(out)) {
    return true;
  }
  // 2. A takes d_i[b], in the order in which they came
  while (stepped_ < whole_.size() && buckets_[whole_[stepped_]]->accepts_gradient()) {
    bool post = false;
    const std::size_t b = whole_[stepped_++];
    if (Status status = buckets_[b]->gradient_ready(directions_[b], out, &post); !status) {
      return placed(b, status);
    }
    if (post) {
      finish_if_done();
      return true;
    }
  }
  finish_if_done();
  return false;
}

void Bucketed::finish_if_done() {
  const bool done = node_.in_round() && stepped_ == buckets_.size() &&
                    std::all_of(buckets_.begin(), buckets_.end(), [&](const auto& bucket) {
                      return bucket->round() > node_.round();
                    });
  if (done) {
    node_.finish_round();
    await_directions();
  }
}

Algorithm& Bucketed::at(const ExchangeTag& tag) {
  check(tag.bucket < buckets_.size(), "an exchange is of a bucket that there is");
  return *buckets_[tag.bucket];
}

Status Bucketed::placed(std::size_t bucket, const Status& status) const {
  return status.with_context(fmt::format("bucket {} of {}", bucket, buckets_.size()));
}

Status Bucketed::frame_arrived(const ExchangeTag& tag, Rank from,
                               std::span<const std::byte> frame) {
  Status status = at(tag).frame_arrived(tag, from, frame);
  return status.ok() ? status : placed(tag.bucket, status);
}

Result<bool> Bucketed::exchange_done(const ExchangeTag& tag, Exchange& out) {
  auto more = at(tag).exchange_done(tag, out);
  if (!more.ok()) {
    return placed(tag.bucket, more.status());
  }
  finish_if_done();
  return more;
}

AlgorithmCounters Bucketed::counters() const {
  AlgorithmCounters sum;
  for (const auto& bucket : buckets_) {
    const AlgorithmCounters part = bucket->counters();
    sum.saturated += part.saturated;
    sum.bad_frames += part.bad_frames;
    sum.drifted += part.drifted;
    sum.mass = part.mass;  // all have the same: it goes by graph and round
  }
  return sum;
}

void Bucketed::save(ByteBuffer& out) const {
  node_.save(out);
  out.write(static_cast<std::uint32_t>(buckets_.size()));
  for (const auto& bucket : buckets_) {
    bucket->save(out);
  }
}

Status Bucketed::load(ByteReader& in) {
  if (Status status = node_.load(in); !status) {
    return status;
  }
  const auto count = in.read<std::uint32_t>();
  if (in.failed() || count != buckets_.size()) {
    return {Fault::malformed, fmt::format("checkpoint of a model in {} buckets where {} are due",
                                          count, buckets_.size())};
  }
  for (std::size_t b = 0; b < buckets_.size(); ++b) {
    if (Status status = buckets_[b]->load(in); !status) {
      return placed(b, status);
    }
    if (buckets_[b]->round() != node_.round()) {
      return placed(b, {Fault::malformed, fmt::format("checkpoint of round {} where {} is due",
                                                      buckets_[b]->round(), node_.round())});
    }
  }
  begun_ = buckets_.size();
  await_directions();
  return {};
}

}  // namespace sotto
