#include <sotto/optim/wrappers/bucketed.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include <sotto/optim/wrappers/piece_setup.h>

namespace sotto {
namespace {

/// A bucket's vectors stay in the second cache, and its frames are longer than a few packets.
constexpr std::size_t kBucketElements = std::size_t{1} << 18U;
constexpr std::size_t kMostByDefault = 64;

AlgorithmSetup bucket_part(const AlgorithmSetup& setup, std::uint32_t number,
                           std::span<float> parameters, const std::shared_ptr<Vector>& scratch) {
  AlgorithmSetup part =
      piece_setup(setup, number, parameters, make_step_rule({.learning_rate = 1}, *setup.ops));
  part.delayed_gradient = setup.delayed_gradient;
  part.directed = true;
  part.scratch = scratch;
  return part;
}

}  // namespace

std::uint32_t default_buckets(std::size_t elements) {
  return static_cast<std::uint32_t>(
      std::clamp(elements / kBucketElements, std::size_t{1}, kMostByDefault));
}

Bucketed::Bucketed(const AlgorithmInfo& info, AlgorithmSetup setup)
    : NodeAlgorithm(info, stepping_part(setup)),
      direction_(node_.stepper().direction_room()),
      queue_({node_.dimension(), setup.buckets}),
      begun_(queue_.buckets().count()) {
  const auto scratch = std::make_shared<Vector>(queue_.buckets().length(0), node_.ops());
  buckets_.reserve(queue_.buckets().count());
  directions_.resize(queue_.buckets().count());
  for (std::size_t b = 0; b < queue_.buckets().count(); ++b) {
    buckets_.push_back(build_piece(info, bucket_part(setup, static_cast<std::uint32_t>(b),
                                                     queue_.buckets().of(node_.x(), b), scratch)));
  }
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
  return node_.in_round() && begun_ == buckets_.size() && queue_.given() == 0;
}

bool Bucketed::idle() const {
  return !node_.in_round() && std::all_of(buckets_.begin(), buckets_.end(),
                                          [](const auto& bucket) { return bucket->idle(); });
}

void Bucketed::begin_round() {
  node_.begin_round();
  begun_ = 0;
}

Status Bucketed::take_gradient(std::span<const float> gradient) {
  check(accepts_gradient(), "buckets take one gradient a round");
  // 1. d_i; an overflow is found here, before a bucket has stepped
  const auto d = node_.stepper().direction_in(gradient, direction_);
  if (!d) {
    return d.status();
  }
  cut(*d);
  queue_.give(0, d->values.size());
  return {};
}

Status Bucketed::gradient_part(std::size_t first, std::span<const float> part) {
  check(queue_.given() > 0 || accepts_gradient(), "buckets take one gradient a round");
  check(first <= direction_.size() && part.size() <= direction_.size() - first,
        "parts lie in the gradient");
  if (part.empty()) {
    return {};
  }
  const bool begins = queue_.given() == 0;
  if (begins) {
    cut({1, direction_});
  }
  const auto d = std::span(direction_).subspan(first, part.size());
  if (Status status = node_.stepper().direction_part(begins, first, part, d); !status.ok()) {
    return status;
  }
  queue_.give(first, part.size());
  return {};
}

void Bucketed::cut(const Direction& direction) {
  scale_ = direction.scale;
  for (std::size_t b = 0; b < directions_.size(); ++b) {
    directions_[b] = queue_.buckets().of(direction.values, b);
  }
}

void Bucketed::await_directions() {
  queue_.clear();
  stepped_ = 0;
}

Result<bool> Bucketed::next_exchange(Exchange& out) {
  while (begun_ < buckets_.size()) {
    const std::size_t b = begun_++;
    buckets_[b]->begin_round();
    auto posted = buckets_[b]->next_exchange(out);
    if (!posted.ok() || *posted) {
      return posted.ok() ? posted : placed(b, posted.status());
    }
  }
  // 2. A takes d_i[b], in the order in which they came
  const auto whole = queue_.whole();
  while (stepped_ < whole.size() && buckets_[whole[stepped_]]->accepts_gradient()) {
    const std::size_t b = whole[stepped_++];
    if (Status status = buckets_[b]->take_direction({scale_, directions_[b]}); !status.ok()) {
      return placed(b, status);
    }
    auto posted = buckets_[b]->next_exchange(out);
    if (!posted.ok()) {
      return placed(b, posted.status());
    }
    if (*posted) {
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

Status Bucketed::complete(const Exchange& exchange) {
  if (Status status = at(exchange.tag).complete(exchange); !status.ok()) {
    return placed(exchange.tag.bucket, status);
  }
  finish_if_done();
  return {};
}

std::vector<std::string> Bucketed::take_warnings() {
  std::vector<std::string> all;
  for (const auto& bucket : buckets_) {
    std::ranges::move(bucket->take_warnings(), std::back_inserter(all));
  }
  return all;
}

AlgorithmCounters Bucketed::counters() const {
  AlgorithmCounters sum;
  for (const auto& bucket : buckets_) {
    const AlgorithmCounters part = bucket->counters();
    sum.add(part);
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
  if (Status status = node_.load(in); !status.ok()) {
    return status;
  }
  const auto count = in.read<std::uint32_t>();
  if (in.failed() || count != buckets_.size()) {
    return {Fault::malformed, fmt::format("checkpoint of a model in {} buckets where {} are due",
                                          count, buckets_.size())};
  }
  for (std::size_t b = 0; b < buckets_.size(); ++b) {
    if (Status status = buckets_[b]->load(in); !status.ok()) {
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
