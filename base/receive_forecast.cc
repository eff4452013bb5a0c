#include <sotto/base/receive_forecast.h>

#include <algorithm>

namespace sotto {
namespace {

constexpr std::size_t kMostBytes = std::size_t{8} << 20U;
constexpr std::size_t kMostRooms = 16;
/// Rounds between two posts: the neighbours of a graph that changes come back after log₂ n.
constexpr Round kLongestStride = 16;

}  // namespace

std::size_t ReceiveForecast::rooms_for(std::size_t frame_bytes, std::size_t frames) {
  return std::min({frames, kMostRooms, kMostBytes / std::max<std::size_t>(frame_bytes, 1)});
}

ReceiveForecast::Posted ReceiveForecast::post(const ExchangeTag& tag) {
  Series& series = series_[{tag.phase, tag.bucket}];
  Posted posted;
  if (series.told) {
    posted.told = series.told == tag.round;
    series.failed = series.failed || !posted.told;
    series.told.reset();
  }
  const Round stride = series.last && *series.last < tag.round ? tag.round - *series.last : 0;
  const bool steady = stride > 0 && stride == series.stride && stride <= kLongestStride;
  series.last = tag.round;
  series.stride = stride;
  if (steady && !series.failed && taken_ < rooms_) {
    ++taken_;
    series.told = tag.round + stride;
    posted.ahead = ExchangeTag{*series.told, tag.phase, tag.bucket};
  }
  return posted;
}

}  // namespace sotto
