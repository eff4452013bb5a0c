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

double bytes_per_round(const PlannedJob& job, int nodes, Round rounds) {
  const auto bytes_of = [](const PlannedRound& round) {
    double bytes = 0;
    for (const auto* exchanges : {&round.before, &round.after}) {
      for (const PlannedExchange& exchange : *exchanges) {
        for (const PlannedFrame& frame : exchange) {
          bytes += static_cast<double>(frame.bytes);
        }
      }
    }
    return bytes;
  };
  double bytes = 0;
  for (Round round = 0; round < rounds; ++round) {
    bytes += bytes_of(job.round(round));
  }
  return bytes / nodes / static_cast<double>(rounds);
}

Round affordable_rounds(const PlannedJob& job, Round rounds) {
  std::size_t frames = 1;
  for (const PlannedRound& round : job.steady) {
    frames = std::max(frames, frames_of(round));
  }
  return std::min(rounds, std::max<Round>(kLeastRounds, kMostFrames / frames));
}

}  // namespace sotto::study
