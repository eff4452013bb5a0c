#include <sotto/trainers/data/sampler.h>

#include <utility>

#include <sotto/base/check.h>
#include <sotto/base/philox.h>

namespace sotto {

Sampler::Sampler(std::vector<std::uint32_t> shard, std::size_t batch, std::uint64_t seed, Rank rank)
    : shard_(std::move(shard)), seed_(seed), rank_(rank), order_(shard_), batch_(batch) {
  check(!shard_.empty() && batch > 0, "a sampler needs examples and a batch");
  shuffle(0);
}

void Sampler::shuffle(std::uint64_t pass) {
  order_ = shard_;  // every order starts from the shard's own, not from that of another pass
  RandomStream stream({.seed = seed_, .rank = rank_, .round = pass, .purpose = Purpose::shuffle});
  for (std::size_t i = order_.size(); i > 1; --i) {
    std::swap(order_[i - 1], order_[stream.below(i)]);
  }
  pass_ = pass;
}

std::span<const std::uint32_t> Sampler::batch(Round round) {
  std::uint64_t position = round * batch_.size();
  for (std::uint32_t& example : batch_) {
    if (const std::uint64_t pass = position / shard_.size(); pass != pass_) {
      shuffle(pass);
    }
    example = order_[position % shard_.size()];
    ++position;
  }
  return batch_;
}

}  // namespace sotto
