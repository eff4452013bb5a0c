#include <sotto/trainers/data/poisson_sampler.h>

#include <cmath>
#include <utility>

#include <sotto/base/check.h>

namespace sotto {

PoissonSampler::PoissonSampler(std::vector<std::uint32_t> shard, double rate, const SecretKey& key)
    : shard_(std::move(shard)),
      threshold_(rate < 1 ? static_cast<std::uint64_t>(std::ldexp(rate, 64)) : 0),
      all_(rate == 1),
      key_(key) {
  check(rate > 0 && rate <= 1, "a sampling rate above 0 and at most 1");
  batch_.reserve(shard_.size());
}

std::span<const std::uint32_t> PoissonSampler::batch(Round round) {
  SecretStream coins(key_, SecretPurpose::sample, round);
  batch_.clear();
  for (const std::uint32_t example : shard_) {
    if (all_ || coins.next_u64() < threshold_) {
      batch_.push_back(example);
    }
  }
  return batch_;
}

}  // namespace sotto
