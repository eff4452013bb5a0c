#include <sotto/base/receive_forecast.h>

#include <algorithm>

namespace sotto {
namespace {

constexpr std::size_t kMostBytes = std::size_t{8} << 20U;
constexpr std::size_t kMostRooms = 16;
constexpr std::size_t kMostInAll = 64;
/// Rounds between two posts: the neighbours of a graph that changes come back after log₂ n.
constexpr Round kLongestStride = 16;

}  // namespace

std::size_t ReceiveForecast::rooms_for(std::size_t frame_bytes, std::size_t peers) {
  const std::size_t share = std::max<std::size_t>(kMostInAll / std::max<std::size_t>(peers, 1), 1);
  return std::min({kMostRooms, share, kMostBytes / std::max<std::size_t>(frame_bytes, 1)});
}

void ReceiveForecast::post(const ExchangeTag& tag) {
  Series& series = series_[{tag.phase, tag.bucket}];
  if (series.foretold && !series.told) {
    std::erase(foretold_, ExchangeTag{*series.foretold, tag.phase, tag.bucket});
  } else {
    series.failed = series.failed || (series.foretold && *series.foretold != tag.round);
  }
  series.foretold.reset();
  series.told = false;
  const Round stride = series.last && *series.last < tag.round ? tag.round - *series.last : 0;
  const bool steady = stride > 0 && stride == series.stride && stride <= kLongestStride;
  series.last = tag.round;
  series.stride = stride;
  if (steady && !series.failed && rooms_ > 0) {
    series.foretold = tag.round + stride;
    foretold_.push_back({*series.foretold, tag.phase, tag.bucket});
  }
}

std::optional<ExchangeTag> ReceiveForecast::next() {
  if (foretold_.empty() || taken_ == rooms_) {
    return std::nullopt;
  }
  const ExchangeTag tag = foretold_.front();
  foretold_.erase(foretold_.begin());
  series_[{tag.phase, tag.bucket}].told = true;
  ++taken_;
  return tag;
}

}  // namespace sotto
