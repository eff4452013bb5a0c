#include <sotto/groups/halo_cache.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include <fmt/format.h>

#include <sotto/base/error.h>

namespace sotto {
namespace {

constexpr std::uint32_t kNeverSent = std::numeric_limits<std::uint32_t>::max();

/// A norm's place in an order. A NaN has none; its row is sent, and refused.
float comparable(float norm) {
  return std::isnan(norm) ? std::numeric_limits<float>::infinity() : norm;
}

}  // namespace

HaloCache::HaloCache(std::size_t rows, const HaloLists& lists, const HaloCacheOptions& options)
    : options_(options), chosen_(rows) {
  if (!(options.share >= 0 && options.share <= 1)) {
    refuse("share", fmt::format("{}", options.share), "take a share of the rows, 0 to 1");
  }
  for (const HaloEdge& edge : lists.out) {
    boundary_.insert(boundary_.end(), edge.rows.begin(), edge.rows.end());
  }
  std::ranges::sort(boundary_);
  boundary_.erase(std::unique(boundary_.begin(), boundary_.end()), boundary_.end());
  check(boundary_.empty() || boundary_.back() < rows, "lists name rows of the matrix");
  ages_.assign(boundary_.size(), kNeverSent);
  order_.resize(boundary_.size());
  std::iota(order_.begin(), order_.end(), 0U);
  // A share of 0.29 of 100 rows is 29 rows, and their product a little less in double.
  constexpr double kRounding = 1e-12;
  const auto count = static_cast<double>(boundary_.size());
  small_ = static_cast<std::size_t>(std::min(count, options.share * count * (1 + kRounding)));
}

std::span<const std::uint8_t> HaloCache::choose(std::span<const float> norms) {
  check(norms.size() == chosen_.size(), "there is a norm for each row");
  const auto smaller = [&](std::uint32_t i, std::uint32_t j) {
    const float a = comparable(norms[boundary_[i]]);
    const float b = comparable(norms[boundary_[j]]);
    return a != b ? a < b : i < j;
  };
  if (small_ < order_.size()) {
    std::ranges::nth_element(order_, order_.begin() + static_cast<std::ptrdiff_t>(small_), smaller);
  }
  for (std::size_t at = 0; at < order_.size(); ++at) {
    const std::uint32_t i = order_[at];
    const std::uint32_t row = boundary_[i];
    const std::uint32_t age = ages_[i] == kNeverSent ? kNeverSent : ages_[i] + 1;
    const bool stable =
        at < small_ && std::isfinite(norms[row]) && age <= options_.most_age && age != kNeverSent;
    chosen_[row] = stable ? 0 : 1;
    ages_[i] = stable ? age : 0;
    ++(stable ? kept_ : sent_);
  }
  return chosen_;
}

void HaloCache::save(ByteBuffer& out) const {
  out.write(static_cast<std::uint64_t>(ages_.size()));
  out.write_span(std::span(ages_));
}

Status HaloCache::load(ByteReader& in) {
  const auto count = in.read<std::uint64_t>();
  if (in.failed() || count != ages_.size()) {
    return {Fault::malformed, fmt::format("ages of {} boundary rows where the graph's part has {}",
                                          count, ages_.size())};
  }
  in.read_into(std::span(ages_));
  return in.failed() ? Status(Fault::malformed, "the ages of boundary rows are cut off") : Status();
}

}  // namespace sotto
