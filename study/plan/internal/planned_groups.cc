#include <sotto/study/plan/internal/planned_groups.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <sotto/sim/time.h>

namespace sotto::study {
namespace {

constexpr int kMostNodes = 64;
/// Links between groups take this many times as long as those within, at least.
constexpr double kMuchSlower = 4;
constexpr std::size_t kMostLevels = 2;

std::size_t slot_of(Rank rank) { return static_cast<std::size_t>(rank); }

/// Two nodes, and how long a model takes from one to the other, the slower way.
struct Reach {
  double seconds = 0;
  Rank a = 0;
  Rank b = 0;
};

double seconds_of(const Scenario& scenario, Rank from, Rank to, double bytes) {
  const LinkSpec way = scenario.way_between(from, to);
  const double rate = std::min({way.bytes_per_s, scenario.hosts[slot_of(from)].up_bytes_per_s,
                                scenario.hosts[slot_of(to)].down_bytes_per_s});
  return to_seconds(way.latency) + bytes / rate;
}

std::vector<Reach> reaches_of(const Scenario& scenario, double bytes) {
  std::vector<Reach> all;
  for (Rank a = 0; a < scenario.nodes; ++a) {
    for (Rank b = a + 1; b < scenario.nodes; ++b) {
      all.push_back(
          {std::max(seconds_of(scenario, a, b, bytes), seconds_of(scenario, b, a, bytes)), a, b});
    }
  }
  std::ranges::stable_sort(all, {}, &Reach::seconds);
  return all;
}

/// Parts of the network: the number of each node's, which is that of its first node.
class Parts {
 public:
  explicit Parts(int nodes) : of_(slot_of(nodes)) { std::iota(of_.begin(), of_.end(), Rank{0}); }

  void join(Rank a, Rank b) {
    const auto [low, high] = std::minmax(of_[slot_of(a)], of_[slot_of(b)]);
    std::ranges::replace(of_, Rank{high}, Rank{low});
  }
  bool together(Rank a, Rank b) const { return of_[slot_of(a)] == of_[slot_of(b)]; }
  /// Whether there are several, all of one size above 1.
  bool even() const {
    const auto size = std::ranges::count(of_, of_.front());
    return size > 1 && slot_of(static_cast<Rank>(size)) < of_.size() &&
           std::ranges::all_of(of_, [&](Rank one) { return std::ranges::count(of_, one) == size; });
  }
  std::string text() const {
    std::vector<std::string> parts;
    for (const Rank first : std::set<Rank>(of_.begin(), of_.end())) {
      parts.push_back(ranges_of(first));
    }
    return fmt::format("{}", fmt::join(parts, ";"));
  }

 private:
  /// "0-3,6"
  std::string ranges_of(Rank part) const {
    std::vector<std::string> ranges;
    for (std::size_t begin = 0; begin < of_.size(); ++begin) {
      std::size_t end = begin;
      while (end < of_.size() && of_[end] == part) {
        ++end;
      }
      if (end > begin) {
        ranges.push_back(end - begin == 1 ? fmt::format("{}", begin)
                                          : fmt::format("{}-{}", begin, end - 1));
        begin = end;
      }
    }
    return fmt::format("{}", fmt::join(ranges, ","));
  }

  std::vector<Rank> of_;
};

}  // namespace

std::vector<std::string> planned_groups(const Scenario& scenario, double model_bytes) {
  if (scenario.nodes > kMostNodes || scenario.sampling.clients != nullptr) {
    return {};
  }
  const std::vector<Reach> reaches = reaches_of(scenario, model_bytes);
  std::vector<std::string> found;
  Parts parts(scenario.nodes);
  for (std::size_t k = 0; k < reaches.size() && found.size() < kMostLevels; ++k) {
    // The slowest link within parts so far, and the quickest that still lies between them.
    const double within = k == 0 ? std::numeric_limits<double>::infinity() : reaches[k - 1].seconds;
    const bool between = !parts.together(reaches[k].a, reaches[k].b);
    if (between && reaches[k].seconds >= kMuchSlower * within && parts.even()) {
      found.push_back(parts.text());
    }
    parts.join(reaches[k].a, reaches[k].b);
  }
  return found;
}

}  // namespace sotto::study
