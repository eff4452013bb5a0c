#include <sotto/groups/halo_cache.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include <sotto/base/error.h>

namespace sotto {
namespace {

constexpr std::uint32_t kNeverSent = std::numeric_limits<std::uint32_t>::max();

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
  sorted_.resize(boundary_.size());
}

std::span<const std::uint8_t> HaloCache::choose(std::span<const float> norms) {
  check(norms.size() == chosen_.size(), "there is a norm for each row");
  for (std::size_t i = 0; i < boundary_.size(); ++i) {
    // A NaN has no place in an order; its row is sent, and refused.
    const float norm = norms[boundary_[i]];
    sorted_[i] = std::isnan(norm) ? std::numeric_limits<float>::infinity() : norm;
  }
  const auto below = static_cast<std::size_t>(options_.share * static_cast<double>(sorted_.size()));
  float threshold = std::numeric_limits<float>::infinity();
  if (below < sorted_.size()) {
    const auto at = sorted_.begin() + static_cast<std::ptrdiff_t>(below);
    std::ranges::nth_element(sorted_, at);
    threshold = *at;
  }
  for (std::size_t i = 0; i < boundary_.size(); ++i) {
    const std::uint32_t row = boundary_[i];
    const std::uint32_t age = ages_[i] == kNeverSent ? kNeverSent : ages_[i] + 1;
    const bool stable = norms[row] < threshold && age <= options_.most_age && age != kNeverSent;
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
