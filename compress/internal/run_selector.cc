#include "run_selector.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace sotto::internal {
namespace {

/// How many elements are to lie above a bound for k: the k-th largest differs from run to run as a
/// count with mean k does, by √k.
std::size_t few_above(std::size_t k) {
  return k + static_cast<std::size_t>(3 * std::sqrt(static_cast<double>(k)));
}
std::size_t many_above(std::size_t k) {
  return k + 8 + static_cast<std::size_t>(8 * std::sqrt(static_cast<double>(k)));
}
/// More are no gain over the whole run.
std::size_t most_above(std::size_t k, std::size_t elements) {
  return std::min(elements, 4 * k + 256);
}

/// A change of the bits of magnitudes by half an octave.
constexpr std::int64_t kLeap = std::int64_t{1} << 22;

}  // namespace

void RunSelector::select(std::span<const float> x, std::size_t first,
                         std::span<std::uint32_t> indices, std::span<float> values) {
  const std::size_t k = indices.size();
  const auto offset = static_cast<std::uint32_t>(first);
  if (k == x.size()) {
    std::iota(indices.begin(), indices.end(), offset);
    std::ranges::copy(x, values.begin());
    return;
  }
  const std::size_t room = most_above(k, x.size());
  if (indices_.size() < room) {
    indices_.resize(room);
    values_.resize(room);
  }
  const std::size_t found = bound_ == 0
                                ? 0
                                : ops_.gather_above(x, bound_, std::span(indices_).first(room),
                                                    std::span(values_).first(room));
  const bool enough = found >= k && found <= room;
  const auto among = enough ? std::span<const float>(values_).first(found) : x;
  const TopK top = ops_.top_k(among, k);
  ops_.top_k_gather(among, top, indices, values);
  for (std::uint32_t& index : indices) {
    index = offset + (enough ? indices_[index] : index);
  }
  learn(x, k, top.threshold, found, enough);
}

void RunSelector::learn(std::span<const float> x, std::size_t k, std::uint32_t threshold,
                        std::size_t found, bool enough) {
  if (threshold_ == 0) {
    const std::size_t wanted = std::min((few_above(k) + many_above(k)) / 2, x.size());
    distance_ = std::int64_t{threshold} - ops_.top_k(x, wanted).threshold;
    threshold_ = threshold;
  } else {
    const std::int64_t change = threshold - threshold_;
    threshold_ += std::abs(change) > kLeap ? change : change / 4;
    if (found < few_above(k)) {
      distance_ += distance_ / (enough ? 8 : 2) + 1;
    } else if (found > many_above(k)) {
      distance_ -= distance_ / (enough ? 8 : 2);
    }
  }
  // A bound of 0 finds nothing, from which nothing would be learnt.
  distance_ = std::min(distance_, std::max<std::int64_t>(threshold_ - 1, 0));
  bound_ = threshold_ == 0 ? 0 : static_cast<std::uint32_t>(threshold_ - distance_);
}

}  // namespace sotto::internal
