#include <sotto/trainers/data/sampler.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include <doctest/doctest.h>

namespace sotto::test::sampler_test {

namespace {

std::vector<std::uint32_t> shard_of(std::size_t count) {
  std::vector<std::uint32_t> shard(count);
  std::iota(shard.begin(), shard.end(), 100U);
  return shard;
}

std::vector<std::uint32_t> batch_of(Sampler& sampler, Round round) {
  const auto batch = sampler.batch(round);
  return {batch.begin(), batch.end()};
}

}  // namespace

TEST_CASE("every pass holds every example of the shard once, whatever the batch") {
  for (const std::size_t size : {1UL, 5UL, 12UL}) {
    for (const std::size_t batch : {1UL, 3UL, 4UL, 12UL, 40UL}) {
      CAPTURE(size);
      CAPTURE(batch);
      Sampler sampler(shard_of(size), batch, 9, 2);
      std::vector<std::uint32_t> walk;
      for (Round round = 0; walk.size() < 6 * size; ++round) {
        const auto rows = sampler.batch(round);
        CHECK(rows.size() == batch);
        walk.insert(walk.end(), rows.begin(), rows.end());
      }
      for (std::size_t pass = 0; pass < 6; ++pass) {
        const auto begin = walk.begin() + static_cast<std::ptrdiff_t>(pass * size);
        std::vector<std::uint32_t> rows(begin, begin + static_cast<std::ptrdiff_t>(size));
        std::sort(rows.begin(), rows.end());
        CHECK(rows == shard_of(size));
      }
    }
  }
}

TEST_CASE("a batch depends on seed, rank and round alone, not on the order of the questions") {
  Sampler forwards(shard_of(50), 7, 11, 3);
  Sampler other_rank(shard_of(50), 7, 11, 4);
  Sampler other_seed(shard_of(50), 7, 12, 3);
  std::vector<std::vector<std::uint32_t>> batches;
  int same_rank = 0;
  int same_seed = 0;
  for (Round round = 0; round < 30; ++round) {
    batches.push_back(batch_of(forwards, round));
    same_rank += batches.back() == batch_of(other_rank, round);
    same_seed += batches.back() == batch_of(other_seed, round);
  }
  CHECK(same_rank == 0);
  CHECK(same_seed == 0);
  CHECK(batches[0] != batches[1]);
  Sampler resumed(shard_of(50), 7, 11, 3);
  for (Round round = 30; round-- > 0;) {
    CHECK(batch_of(resumed, round) == batches[round]);
  }
}

TEST_CASE("passes are shuffled differently, and far rounds are as good as near ones") {
  Sampler sampler(shard_of(20), 20, 1, 0);
  CHECK(batch_of(sampler, 0) != batch_of(sampler, 1));
  const Round far = ~Round{0} / 20;
  auto rows = batch_of(sampler, far);
  std::sort(rows.begin(), rows.end());
  CHECK(std::all_of(rows.begin(), rows.end(), [](auto row) { return row >= 100 && row < 120; }));
}

}  // namespace sotto::test::sampler_test
