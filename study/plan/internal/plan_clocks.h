// The clocks of a job's nodes, which advance round by round by the planner's model of time
// (plan_model.h). Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <utility>
#include <vector>

#include <sotto/base/ids.h>
#include <sotto/base/philox.h>
#include <sotto/sim/network/platform.h>
#include <sotto/study/plan/plan_model.h>
#include <sotto/study/plan/planned_job.h>

namespace sotto::study {

/// A frame and its way.
struct RoutedFrame {
  PlannedFrame frame;
  std::vector<LinkId> links = {};
  double latency_s = 0;       ///< sum over the links
  double jitter_s = 0;        ///< largest deviation from it, summed over the links
  double bound = kUnlimited;  ///< bytes/s that the frame has where it is alone
};
/// The frames of one exchange, with their ways.
using RoutedExchange = std::vector<RoutedFrame>;

/// The exchanges of all nodes in a round, with their ways.
struct RoutedRound {
  std::vector<RoutedExchange> before;
  std::vector<RoutedExchange> after;
  bool hides = false;
  bool waits = true;
};
/// All rounds of a job, with the ways of their frames.
using RoutedJob = RoundsOf<RoutedRound>;

/// The job's frames with their ways through `platform`. Throws Error for a frame between nodes that
/// it does not connect.
RoutedJob route(const PlannedJob& job, const Platform& platform, const NetworkModel& model);

class PlanClocks {
 public:
  /// `ahead`: exchanges that a sender may be before its peer. Platform and timing must outlive it.
  PlanClocks(const Platform& platform, const JobTiming& timing, std::size_t ahead);

  /// Plays a round, which has this number.
  void play(const RoutedRound& round, Round number);
  /// Seconds until all is over that was played.
  double end() const;

 private:
  /// When the buckets of a frame are through a stage that takes them one by one.
  struct Span {
    double first = 0;  ///< time when the first is through
    double last = 0;
  };

  /// When the first and the last bucket of an exchange are through a stage, by node.
  struct Ends {
    std::vector<double> first;
    std::vector<double> last;
  };
  /// What goes from one node to another.
  struct Connection {
    std::deque<double> arrivals =
        {};                      ///< arrivals of the last frames, as many as the peer has room for
    double window = 0;           ///< bytes; 0: nothing was sent yet
    std::vector<int> exchanges;  ///< exchanges so far, by their places in a round
  };

  /// Posts from the nodes' threads, which encode the first of several exchanges.
  Ends exchange(const std::vector<RoutedExchange>& exchanges);
  /// Adds how long it takes: all buckets, or the first.
  void encode(const RoutedExchange& exchange, std::vector<double>& clocks, bool whole = true) const;
  /// From when the first exchange is encoded to when the last is over.
  Ends carry(const std::vector<RoutedExchange>& exchanges, Ends ends);
  /// What has arrived is decoded, after what the node encodes, and senders know that it has.
  void hand_over(const RoutedExchange& exchange, const std::vector<Span>& arrivals, Ends& ends);
  /// When the frames may leave that are posted at these times, in the round's exchange number
  /// `place`: where words of receives are waited for, and not told of early (ReceiveForecast), a
  /// latency after their receives are posted.
  std::vector<double> departures(const RoutedExchange& exchange, std::size_t place,
                                 const std::vector<double>& posted);
  /// When the frames arrive that their senders post at these times. Each link works through them in
  /// the order of posting; what a node posts at once ends at once.
  std::vector<Span> serve(const RoutedExchange& exchange, std::size_t place, const Ends& encoded);
  /// How long a frame flows where it is alone. Opens its connection's window by what was sent, and
  /// lets it shrink by how long nothing was.
  double flow_s(const RoutedFrame& one, double post);

  const Platform& platform_;
  const JobTiming& timing_;
  const std::size_t ahead_;
  std::vector<double> thread_;  ///< time when a node's thread is at the start of the round
  std::vector<double> model_;   ///< time when the model of its gradient is there
  std::vector<double> codec_;   ///< time when all its encoding and decoding is done
  Ends heard_;                  ///< time when what it posted before a gradient is over
  Ends exchanged_;              ///< and what it posted after one
  std::vector<double> free_;    ///< time when a link has done all that was posted
  std::map<std::pair<Rank, Rank>, Connection> connections_;
  RandomStream noise_;  ///< draws of the jitter
};

}  // namespace sotto::study
