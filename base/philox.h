// Philox4x32, the counter-based random generator behind every random decision of sotto: with ten
// rounds, and with seven for the noise of stochastic rounding.
//
// A number is a pure function of (seed, rank, round, purpose, bucket, element): results never
// depend on thread count, vector width, device or the order of evaluation. Pure functions;
// thread-safe.
//
// Source: J. K. Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include <sotto/base/ids.h>

namespace sotto {

using PhiloxCounter = std::array<std::uint32_t, 4>;  ///< words from the least significant on
using PhiloxKey = std::array<std::uint32_t, 2>;      ///< words from the least significant on

/// A constant of the paper, as all here.
inline constexpr std::uint32_t kPhiloxMultiplier0 = 0xD2511F53;
inline constexpr std::uint32_t kPhiloxMultiplier1 = 0xCD9E8D57;  ///< of the other half
/// Added to the key's first word in each round.
inline constexpr std::uint32_t kPhiloxWeyl0 = 0x9E3779B9;
inline constexpr std::uint32_t kPhiloxWeyl1 = 0xBB67AE85;  ///< added to its second word
/// The paper's default, with a margin.
inline constexpr int kPhiloxRounds = 10;
/// The fewest that pass all of BigCrush (the paper, table 2). Rounding draws more bits than all
/// else together, and needs no margin: 30 % less work.
inline constexpr int kNoiseRounds = 7;

/// The 128 random bits that belong to (counter, key).
template <int kRounds = kPhiloxRounds>
constexpr PhiloxCounter philox4x32(PhiloxCounter counter, PhiloxKey key) {
  for (int i = 0; i < kRounds; ++i) {
    const std::uint64_t product0 = std::uint64_t{kPhiloxMultiplier0} * counter[0];
    const std::uint64_t product1 = std::uint64_t{kPhiloxMultiplier1} * counter[2];
    counter = {static_cast<std::uint32_t>(product1 >> 32) ^ counter[1] ^ key[0],
               static_cast<std::uint32_t>(product1),
               static_cast<std::uint32_t>(product0 >> 32) ^ counter[3] ^ key[1],
               static_cast<std::uint32_t>(product0)};
    key = {key[0] + kPhiloxWeyl0, key[1] + kPhiloxWeyl1};
  }
  return counter;
}

/// The purpose of a random number; numbers for different purposes are independent.
enum class Purpose : std::uint8_t {
  quantize = 1,    ///< stochastic rounding
  select = 2,      ///< rand-k's choice of elements
  initialize = 3,  ///< initial parameters
  shuffle = 4,     ///< order of training examples
  partition = 5,   ///< split of the data over nodes
  generate = 6,    ///< generated data sets
  topology = 7,    ///< random graphs
  measure = 8,     ///< test vectors for measured contracts
  test = 9,
  jitter = 10,        ///< simulated latency
  compute_time = 11,  ///< simulated duration of a gradient
  attack = 20,        ///< what Byzantine nodes make up
  faults = 21,        ///< kinds and times of faults between simulated sites
};

/// Names one stream of random numbers. Rounds count modulo 2^32 and buckets modulo 2^24.
struct RandomKey {
  std::uint64_t seed = 0;
  Rank rank = 0;
  Round round = 0;
  Purpose purpose = Purpose::test;
  std::uint32_t bucket = 0;

  /// The seed as the generator's key.
  constexpr PhiloxKey philox_key() const {
    return {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)};
  }
  /// The counter of 128-bit block number `block` of this stream.
  constexpr PhiloxCounter counter(std::uint32_t block) const {
    return {block, static_cast<std::uint32_t>(rank), static_cast<std::uint32_t>(round),
            static_cast<std::uint32_t>(purpose) | (bucket << 8)};
  }
  /// Block `number` of the key's stream: 128 bits.
  constexpr PhiloxCounter block(std::uint32_t number) const {
    return philox4x32(counter(number), philox_key());
  }
  /// Block `number` with kNoiseRounds: what rounding noise is taken from.
  constexpr PhiloxCounter noise_block(std::uint32_t number) const {
    return philox4x32<kNoiseRounds>(counter(number), philox_key());
  }
};

/// Elements whose rounding noise comes from one group of 16 consecutive noise blocks.
inline constexpr std::size_t kNoiseGroup = 128;

/// The 16 random bits that round element `element` of the stream `key`.
///
/// Element e lies in group g = e / 128 at place j = e % 128. It takes half j / 64 (0 low, 1 high)
/// of word (j / 16) % 4 of block 16 g + j % 16: sixteen blocks side by side fill whole vector
/// registers without a transpose, whatever the register's width.
constexpr std::uint16_t rounding_noise(const RandomKey& key, std::size_t element) {
  const std::size_t place = element % kNoiseGroup;
  const auto block = static_cast<std::uint32_t>(16 * (element / kNoiseGroup) + place % 16);
  const std::uint32_t word = key.noise_block(block)[(place / 16) % 4];
  return static_cast<std::uint16_t>(place < 64 ? word : word >> 16);
}

/// A sequential reader of one stream, for code that draws numbers one after another (shuffles,
/// generated data). Not thread-safe; copy it to fork.
class RandomStream {
 public:
  /// The stream of `key` from its first block on.
  explicit RandomStream(const RandomKey& key) : key_(key) {}

  /// The next 32 bits.
  std::uint32_t next_u32() {
    if (at_ == 4) {
      words_ = key_.block(block_++);
      at_ = 0;
    }
    return words_[at_++];
  }
  /// The next 64 bits: two words, the lower one first.
  std::uint64_t next_u64() {
    const std::uint64_t low = next_u32();
    return low | (std::uint64_t{next_u32()} << 32);
  }
  /// Uniform in [0, 1), 53 bits.
  double uniform() { return static_cast<double>(next_u64() >> 11) * 0x1.0p-53; }
  /// Uniform in {0, …, bound − 1} without bias; requires bound > 0.
  std::uint64_t below(std::uint64_t bound);
  /// Standard normal (Box–Muller).
  double normal();
  /// Gamma(shape, 1), shape > 0 (Marsaglia and Tsang 2000).
  double gamma(double shape);

  // Satisfies std::uniform_random_bit_generator. The standard's distributions differ between
  // libraries, so results that must be portable use the members above.
  using result_type = std::uint32_t;  ///< what a call gives, for the standard's algorithms
  static constexpr result_type min() { return 0; }
  static constexpr result_type max() { return 0xFFFFFFFFU; }
  result_type operator()() { return next_u32(); }

 private:
  RandomKey key_;
  PhiloxCounter words_{};
  std::uint32_t block_ = 0;
  std::uint32_t at_ = 4;
};

}  // namespace sotto
