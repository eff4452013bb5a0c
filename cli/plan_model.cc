#include "plan_model.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <numeric>
#include <utility>

#include <sotto/base/philox.h>
#include <sotto/sim/network/network.h>
#include <sotto/sim/time.h>

namespace sotto::cli {
namespace {

/// Frames that are looked at before a long job is extrapolated from its rounds so far.
constexpr std::size_t kMostFrames = 3'000'000;
constexpr Round kLeastRounds = 3;

std::size_t index(Rank rank) { return static_cast<std::size_t>(rank); }

/// A frame and its way.
struct RoutedFrame {
  PlannedFrame frame;
  std::vector<LinkId> links = {};
  double latency_s = 0;
  double jitter_s = 0;
  double bound = kUnlimited;  ///< bytes/s that TCP keeps
};
using RoutedExchange = std::vector<RoutedFrame>;

struct RoutedRound {
  std::vector<RoutedExchange> before;
  std::vector<RoutedExchange> after;
  bool hides = false;
};
using RoutedJob = RoundsOf<RoutedRound>;

RoutedFrame route(const PlannedFrame& frame, const Platform& platform) {
  RoutedFrame routed = {.frame = frame, .links = platform.route(frame.from, frame.to).links};
  double kept = 1;
  for (const LinkId link : routed.links) {
    const LinkSpec& spec = platform.links()[link];
    routed.latency_s += to_seconds(spec.latency);
    routed.jitter_s += to_seconds(spec.jitter);
    kept *= 1 - spec.loss;
  }
  if (kept < 1 && routed.latency_s > 0) {
    routed.bound =
        NetworkModel{}.segment_bytes / (2 * routed.latency_s) * std::sqrt(1.5 / (1 - kept));
  }
  return routed;
}

std::vector<RoutedExchange> route(const std::vector<PlannedExchange>& exchanges,
                                  const Platform& platform) {
  std::vector<RoutedExchange> routed(exchanges.size());
  for (std::size_t k = 0; k < exchanges.size(); ++k) {
    for (const PlannedFrame& frame : exchanges[k]) {
      routed[k].push_back(route(frame, platform));
    }
  }
  return routed;
}

std::vector<RoutedRound> route(const std::vector<PlannedRound>& rounds, const Platform& platform) {
  std::vector<RoutedRound> routed;
  routed.reserve(rounds.size());
  for (const PlannedRound& round : rounds) {
    routed.push_back({route(round.before, platform), route(round.after, platform), round.hides});
  }
  return routed;
}

double vector_bytes(const PlannedFrame& frame) {
  return sizeof(float) * static_cast<double>(frame.elements);
}

/// The nodes' clocks, round by round.
class Clocks {
 public:
  Clocks(const Platform& platform, const Pace& pace)
      : platform_(platform),
        pace_(pace),
        thread_(pace.nodes.size(), 0.0),
        exchanged_(pace.nodes.size(), 0.0),
        free_(platform.links().size(), 0.0),
        noise_({.seed = pace.seed, .purpose = Purpose::jitter}) {}

  void play(const RoutedRound& round, Round number) {
    encode(round.before, thread_);
    std::vector<double> heard = thread_;
    carry(round.before, heard);
    for (std::size_t i = 0; i < thread_.size(); ++i) {
      const double start = pace_.overlap ? thread_[i] : heard[i];
      const double gradient =
          to_seconds(draw(pace_.nodes[i].compute, pace_.seed, static_cast<Rank>(i), number));
      thread_[i] = std::max({start + gradient, heard[i], exchanged_[i]});
    }
    encode(round.after, thread_);
    exchanged_ = thread_;
    carry(round.after, exchanged_);
    if (!(round.hides && pace_.overlap)) {
      thread_ = exchanged_;
    }
  }

  double end() const {
    return std::max(*std::max_element(thread_.begin(), thread_.end()),
                    *std::max_element(exchanged_.begin(), exchanged_.end()));
  }

 private:
  /// The first exchange of several is encoded by the node's thread.
  void encode(const std::vector<RoutedExchange>& exchanges, std::vector<double>& clocks) const {
    if (!exchanges.empty()) {
      encode(exchanges.front(), clocks);
    }
  }

  void encode(const RoutedExchange& exchange, std::vector<double>& clocks) const {
    Rank last = -1;
    for (const RoutedFrame& one : exchange) {
      const PlannedFrame& frame = one.frame;
      const CodecCost& codec = pace_.nodes[index(frame.from)].codec;
      clocks[index(frame.from)] +=
          (frame.from == last ? 0 : codec.seconds_per_exchange) +
          (frame.encoded ? vector_bytes(frame) * codec.encode_s_per_byte : 0);
      last = frame.from;
    }
  }

  /// From when the first exchange is posted, by node, to when the last is over.
  void carry(const std::vector<RoutedExchange>& exchanges, std::vector<double>& clocks) {
    const std::uint64_t buffer = TransportModel{}.send_buffer_bytes;
    for (const RoutedExchange& exchange : exchanges) {
      if (&exchange != &exchanges.front()) {
        encode(exchange, clocks);
      }
      const std::vector<double> arrivals = serve(exchange, clocks);
      for (std::size_t k = 0; k < exchange.size(); ++k) {
        const PlannedFrame& frame = exchange[k].frame;
        double& receiver = clocks[index(frame.to)];
        receiver = std::max(receiver, arrivals[k]);
        // Handed over once fewer than two are under way to that peer.
        auto& [before_last, last] = arrived_[{frame.from, frame.to}];
        double& sender = clocks[index(frame.from)];
        sender = std::max(sender, frame.bytes > buffer ? arrivals[k] : before_last);
        before_last = std::exchange(last, arrivals[k]);
      }
      for (const RoutedFrame& one : exchange) {
        clocks[index(one.frame.to)] +=
            vector_bytes(one.frame) * pace_.nodes[index(one.frame.to)].codec.decode_s_per_byte;
      }
    }
  }

  /// When the frames arrive that their senders post at these times. Each link works through them in
  /// the order of posting; what a node posts at once ends at once.
  std::vector<double> serve(const RoutedExchange& exchange, const std::vector<double>& posted) {
    std::vector<std::size_t> order(exchange.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    const auto post_of = [&](std::size_t k) { return posted[index(exchange[k].frame.from)]; };
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return post_of(a) < post_of(b); });
    std::vector<double> arrivals(exchange.size());
    for (auto first = order.begin(); first != order.end();) {
      const double post = post_of(*first);
      const auto last =
          std::find_if(first, order.end(), [&](std::size_t k) { return post_of(k) > post; });
      for (auto k = first; k != last; ++k) {
        for (const LinkId link : exchange[*k].links) {
          const double bandwidth = platform_.links()[link].bytes_per_s;
          free_[link] = std::max(free_[link], post) +
                        static_cast<double>(exchange[*k].frame.bytes) / bandwidth;
        }
      }
      for (; first != last; ++first) {
        const RoutedFrame& one = exchange[*first];
        double end = post + static_cast<double>(one.frame.bytes) / one.bound;
        for (const LinkId link : one.links) {
          end = std::max(end, free_[link]);
        }
        const double jitter = one.jitter_s > 0 ? one.jitter_s * (2 * noise_.uniform() - 1) : 0;
        arrivals[*first] = end + one.latency_s + jitter;
      }
    }
    return arrivals;
  }

  const Platform& platform_;
  const Pace& pace_;
  std::vector<double> thread_;     ///< when a node's thread is at the start of the round
  std::vector<double> exchanged_;  ///< when its last exchange is over
  std::vector<double> free_;       ///< when a link has done all that was posted
  /// When the last two frames from one node to another arrived.
  std::map<std::pair<Rank, Rank>, std::pair<double, double>> arrived_;
  RandomStream noise_;  ///< of the jitter
};

std::size_t frames_of(const PlannedRound& round) {
  std::size_t frames = 1;
  for (const auto* exchanges : {&round.before, &round.after}) {
    for (const PlannedExchange& exchange : *exchanges) {
      frames += exchange.size();
    }
  }
  return frames;
}

}  // namespace

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

double seconds_per_round(const PlannedJob& job, const Platform& platform, const Pace& pace,
                         Round rounds) {
  const RoutedJob routed = {.beginning_rounds = job.beginning_rounds,
                            .beginning = route(job.beginning, platform),
                            .steady = route(job.steady, platform)};
  const Round played = affordable_rounds(job, rounds);
  Clocks clocks(platform, pace);
  for (Round number = 0; number < played; ++number) {
    clocks.play(routed.round(number), number);
  }
  return clocks.end() / static_cast<double>(played);
}

}  // namespace sotto::cli
