#include <sotto/study/plan/planned_job.h>

#include <algorithm>
#include <cstddef>
#include <span>

#include <sotto/base/frame.h>

namespace sotto::study {
namespace {

/// Frames that are looked at before a long job is extrapolated from its rounds so far.
constexpr std::size_t kMostFrames = 3'000'000;
constexpr Round kLeastRounds = 3;

std::size_t frames_of(const PlannedRound& round) {
  std::size_t frames = 1;
  for (const auto* exchanges : {&round.before, &round.after}) {
    for (const PlannedExchange& exchange : *exchanges) {
      frames += exchange.size();
    }
  }
  return frames;
}

/// The part of an exchange that is one of so many fragments'.
PlannedExchange fragment_of(const PlannedExchange& exchange, std::uint32_t fragments) {
  PlannedExchange part = exchange;
  for (PlannedFrame& frame : part) {
    const std::uint64_t headers = frame.buckets * std::uint64_t{kFrameHeaderBytes};
    frame.bytes = kFrameHeaderBytes + (frame.bytes - std::min(frame.bytes, headers)) / fragments;
    frame.elements /= fragments;
    frame.buckets = 1;
  }
  return part;
}

/// The rounds of one interval, in which the fragments of what `round` exchanges are sent.
void stream(const PlannedRound& round, const Streaming& streaming,
            std::span<PlannedRound> interval) {
  for (PlannedRound& one : interval) {
    one.waits = false;
  }
  for (std::uint32_t p = 0; p < streaming.fragments; ++p) {
    const auto sent = static_cast<std::size_t>(streaming.sent_after(interval.size(), p)) - 1;
    for (const PlannedExchange& exchange : round.after) {
      interval[sent].after.push_back(fragment_of(exchange, streaming.fragments));
    }
    interval[sent].hides = streaming.delay > 0;
    interval[(sent + streaming.delay) % interval.size()].waits |= streaming.delay > 0;
  }
}

/// Bytes of the frames that `counts` lets count, in the mean over rounds.
template <typename Counts>
double bytes_of(const PlannedJob& job, Round rounds, const Counts& counts) {
  double bytes = 0;
  for (Round number = 0; number < rounds; ++number) {
    const PlannedRound& round = job.round(number);
    for (const auto* exchanges : {&round.before, &round.after}) {
      for (const PlannedExchange& exchange : *exchanges) {
        for (const PlannedFrame& frame : exchange) {
          bytes += counts(frame) ? static_cast<double>(frame.bytes) : 0;
        }
      }
    }
  }
  return bytes / static_cast<double>(rounds);
}

}  // namespace

PlannedJob with_local_steps(const PlannedJob& job, Round interval, const Streaming& streaming) {
  const auto spread = [&](const std::vector<PlannedRound>& rounds) {
    std::vector<PlannedRound> all;
    for (const PlannedRound& round : rounds) {
      const auto first = all.size();
      all.resize(first + interval);
      if (streaming.on()) {
        stream(round, streaming, std::span(all).subspan(first));
        continue;
      }
      for (std::size_t k = first; k + 1 < all.size(); ++k) {
        all[k].waits = false;
      }
      all[first].before = round.before;
      all.back().after = round.after;
      all.back().hides = round.hides;
    }
    return all;
  };
  return {.beginning_rounds = job.beginning_rounds * interval,
          .beginning = spread(job.beginning),
          .steady = spread(job.steady)};
}

PlannedJob with_local_steps_of_groups(const PlannedJob& job, Round interval) {
  const auto spread = [&](const std::vector<PlannedRound>& rounds) {
    std::vector<PlannedRound> all;
    for (const PlannedRound& round : rounds) {
      for (Round k = 1; k < interval; ++k) {
        PlannedRound& local = all.emplace_back();
        if (round.after.size() > 1) {
          local.after = {round.after.front(), round.after.back()};
        }
      }
      all.push_back(round);
    }
    return all;
  };
  return {.beginning_rounds = job.beginning_rounds * interval,
          .beginning = spread(job.beginning),
          .steady = spread(job.steady)};
}

double bytes_per_round(const PlannedJob& job, int nodes, Round rounds) {
  return bytes_of(job, rounds, [](const PlannedFrame&) { return true; }) / nodes;
}

double bytes_per_round_within(const PlannedJob& job, const NodeGroups& groups, Round rounds) {
  const auto within = [&](const PlannedFrame& frame) {
    return groups.group_of(frame.from) == groups.group_of(frame.to);
  };
  return bytes_of(job, rounds, within) / groups.nodes();
}

Round affordable_rounds(const PlannedJob& job, Round rounds) {
  std::size_t frames = 1;
  for (const PlannedRound& round : job.steady) {
    frames = std::max(frames, frames_of(round));
  }
  return std::min(rounds, std::max<Round>(kLeastRounds, kMostFrames / frames));
}

}  // namespace sotto::study
