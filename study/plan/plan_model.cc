#include <sotto/study/plan/plan_model.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include <sotto/optim/algorithm.h>
#include <sotto/study/plan/internal/plan_clocks.h>

namespace sotto::study {
namespace {

/// How many exchanges a sender may be before its peer: as many as Peers::frames_ahead says of the
/// job's frames.
std::size_t exchanges_ahead(const PlannedJob& job) {
  Peers peers;
  std::uint32_t buckets = 1;
  for (const auto* rounds : {&job.beginning, &job.steady}) {
    for (const PlannedRound& round : *rounds) {
      std::size_t in_round = 0;
      for (const auto* exchanges : {&round.before, &round.after}) {
        for (const PlannedExchange& exchange : *exchanges) {
          in_round += exchange.empty() ? 1 : exchange.front().buckets;
          for (const PlannedFrame& frame : exchange) {
            buckets = std::max(buckets, frame.buckets);
            peers.max_frame_bytes =
                std::max<std::size_t>(peers.max_frame_bytes, frame.bytes / frame.buckets);
          }
        }
      }
      peers.frames_a_round = std::max(peers.frames_a_round, in_round);
    }
  }
  return std::max<std::size_t>(2, peers.frames_ahead() / buckets);
}

}  // namespace

double predict_seconds_per_round(const PlannedJob& job, const Platform& platform,
                                 const JobTiming& timing, Round rounds) {
  const RoutedJob routed = route(job, platform, timing.network);
  const Round played = affordable_rounds(job, rounds);
  PlanClocks clocks(platform, timing, exchanges_ahead(job));
  for (Round number = 0; number < played; ++number) {
    clocks.play(routed.round(number), number);
  }
  return clocks.end() / static_cast<double>(played);
}

}  // namespace sotto::study
