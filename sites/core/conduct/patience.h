// How long a round waits for neighbours that are up and behind: no longer than they lately took.
//
// The time of each is counted from the site's own offer on: 0 if its parcel had arrived before. A
// round then waits for what three eighths of the latest times were below, plus a multiple of their
// spread, so that neighbours that are always just in time for the longest patience do not set the
// pace while they are no more than half. (The median would do for less than half; where every
// second one is late, as on a ring, chance decides on which side it falls.) Time is the caller's,
// in seconds.
//
// A building block of Site, not for users. Plain state. One thread at a time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <deque>
#include <span>
#include <vector>

namespace sotto::sites {

class Patience {
 public:
  static constexpr std::size_t kRemembered = 64;  ///< arrivals that are remembered
  /// Fewest arrivals by which the patience can be another than the longest.
  static constexpr std::size_t kEnough = 6;
  /// Usual deviations that a round waits beyond the usual time.
  static constexpr double kSpreads = 8;
  static constexpr double kLeastPart = 1.0 / 16;  ///< shortest patience, as a part of the longest

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
  /// The wait goes on, for these.
  void look(double now, std::span<const std::size_t> awaited) {
    std::erase_if(awaited_, [&](std::size_t peer) {
      const bool came = std::ranges::find(awaited, peer) == awaited.end();
      if (came) {
        record(now - began_);
      }
      return came;
    });
  }
  /// The wait is over: the neighbours that are still missing took at least until `now`.
  void end(double now) { look(now, {}); }

  /// How long a round waits.
  double lasts() const {
    if (arrivals_.size() < kEnough) {
      return longest_;
    }
    std::vector<double> sorted(arrivals_.begin(), arrivals_.end());
    const double usual = usual_of(sorted);
    for (double& arrival : sorted) {
      arrival = arrival < usual ? usual - arrival : arrival - usual;
    }
    return std::clamp(usual + kSpreads * usual_of(sorted), kLeastPart * longest_, longest_);
  }

 private:
  /// The value that three eighths of the values are below.
  static double usual_of(std::vector<double>& values) {
    const auto at = values.begin() + static_cast<std::ptrdiff_t>(3 * (values.size() - 1) / 8);
    std::nth_element(values.begin(), at, values.end());
    return *at;
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
