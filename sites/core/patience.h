// How long a round waits for neighbours that are up and behind: no longer than they lately took.
//
// The time of each is counted from the site's own offer on: 0 if its parcel had arrived before. A
// round then waits for the median of the latest times plus a multiple of their spread, so that a
// few neighbours that are always just in time for the longest patience do not set the pace. Time is
// the caller's, in seconds.
//
// Plain state. One thread at a time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <deque>
#include <span>
#include <vector>

namespace sotto::sites {

class Patience {
 public:
  static constexpr std::size_t kRemembered = 64;  ///< arrivals
  static constexpr std::size_t kEnough = 16;      ///< before so many, the longest patience holds
  static constexpr double kSpreads = 8;           ///< median deviations beyond the median
  static constexpr double kLeastPart = 1.0 / 16;  ///< of the longest patience, at least

  /// A round waits for `longest` at most.
  explicit Patience(double longest) : longest_(longest) {}

  /// A round's wait begins, for these of `heard` neighbours.
  void begin(double now, std::span<const std::size_t> awaited, std::size_t heard) {
    began_ = now;
    awaited_.assign(awaited.begin(), awaited.end());
    for (std::size_t there = awaited.size(); there < heard; ++there) {
      record(0);
    }
  }
  /// It goes on, for these.
  void look(double now, std::span<const std::size_t> awaited) {
    std::erase_if(awaited_, [&](std::size_t peer) {
      const bool came = std::ranges::find(awaited, peer) == awaited.end();
      if (came) {
        record(now - began_);
      }
      return came;
    });
  }
  /// The wait is over: a neighbour that is still missing took at least so long.
  void end(double now) { look(now, {}); }

  /// How long a round waits.
  double lasts() const {
    if (arrivals_.size() < kEnough) {
      return longest_;
    }
    std::vector<double> sorted(arrivals_.begin(), arrivals_.end());
    const double usual = median(sorted);
    for (double& arrival : sorted) {
      arrival = arrival < usual ? usual - arrival : arrival - usual;
    }
    return std::clamp(usual + kSpreads * median(sorted), kLeastPart * longest_, longest_);
  }

 private:
  static double median(std::vector<double>& values) {
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
  }
  void record(double arrival) {
    arrivals_.push_back(arrival);
    if (arrivals_.size() > kRemembered) {
      arrivals_.pop_front();
    }
  }

  double longest_;
  double began_ = 0;
  std::vector<std::size_t> awaited_;
  std::deque<double> arrivals_;
};

}  // namespace sotto::sites
