#include <sotto/study/plan/plan_model.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <deque>
#include <map>
#include <numeric>
#include <span>
#include <utility>

#include <sotto/base/frame.h>
#include <sotto/base/philox.h>
#include <sotto/base/receive_forecast.h>
#include <sotto/optim/algorithm.h>
#include <sotto/sim/network/congestion_window.h>
#include <sotto/sim/network/losses.h>
#include <sotto/sim/time.h>

namespace sotto::study {
namespace {

/// Frames that are looked at before a long job is extrapolated from its rounds so far.
constexpr std::size_t kMostFrames = 3'000'000;
constexpr Round kLeastRounds = 3;
/// Added to a round trip: after so long without sending, Linux halves a window.
constexpr double kTimeOutFloor_s = 0.2;
/// After which the next receives are foretold.
constexpr int kRoundsUnforetold = 3;

std::size_t slot(Rank rank) { return static_cast<std::size_t>(rank); }

/// A frame and its way.
struct RoutedFrame {
  PlannedFrame frame;
  std::vector<LinkId> links = {};
  double latency_s = 0;
  double jitter_s = 0;
  double bound = kUnlimited;  ///< bytes/s that the frame has where it is alone
};
using RoutedExchange = std::vector<RoutedFrame>;

struct RoutedRound {
  std::vector<RoutedExchange> before;
  std::vector<RoutedExchange> after;
  bool hides = false;
  bool waits = true;
};
using RoutedJob = RoundsOf<RoutedRound>;

/// What payload has of a bandwidth, while as much goes the other way.
double share_of(const NetworkModel& model) {
  return model.bandwidth_factor / (1 + model.crosstraffic + model.acknowledgements);
}

RoutedFrame route(const PlannedFrame& frame, const Platform& platform, const NetworkModel& model) {
  RoutedFrame routed = {.frame = frame, .links = platform.route(frame.from, frame.to).links};
  double kept = 1;
  for (const LinkId link : routed.links) {
    const LinkSpec& spec = platform.links()[link];
    routed.latency_s += model.latency_factor * to_seconds(spec.latency);
    routed.jitter_s += to_seconds(spec.jitter);
    routed.bound = std::min(routed.bound, share_of(model) * spec.bytes_per_s);
    kept *= 1 - spec.loss;
  }
  if (kept < 1 && routed.latency_s > 0) {
    routed.bound =
        std::min(routed.bound, mean_rate(1 - kept, 2 * routed.latency_s, model.segment_bytes));
  }
  return routed;
}

std::vector<RoutedExchange> route(const std::vector<PlannedExchange>& exchanges,
                                  const Platform& platform, const NetworkModel& model) {
  std::vector<RoutedExchange> routed(exchanges.size());
  for (std::size_t k = 0; k < exchanges.size(); ++k) {
    for (const PlannedFrame& frame : exchanges[k]) {
      routed[k].push_back(route(frame, platform, model));
    }
  }
  return routed;
}

std::vector<RoutedRound> route(const std::vector<PlannedRound>& rounds, const Platform& platform,
                               const NetworkModel& model) {
  std::vector<RoutedRound> routed;
  routed.reserve(rounds.size());
  for (const PlannedRound& round : rounds) {
    routed.push_back({route(round.before, platform, model), route(round.after, platform, model),
                      round.hides, round.waits});
  }
  return routed;
}

double vector_bytes(const PlannedFrame& frame) {
  return sizeof(float) * static_cast<double>(frame.elements);
}

/// When the buckets of a frame are through a stage that takes them one by one.
struct Span {
  double first = 0;  ///< when the first is through
  double last = 0;
};

/// When the first and the last bucket of an exchange are through a stage, by node.
struct Ends {
  std::vector<double> first;
  std::vector<double> last;
};

void raise(double& value, double to) { value = std::max(value, to); }

/// The nodes' clocks, round by round.
class Clocks {
 public:
  /// `ahead`: exchanges that a sender may be before its peer.
  Clocks(const Platform& platform, const Pace& pace, std::size_t ahead)
      : platform_(platform),
        pace_(pace),
        ahead_(ahead),
        thread_(pace.nodes.size(), 0.0),
        model_(thread_),
        codec_(thread_),
        heard_{thread_, thread_},
        exchanged_{thread_, thread_},
        free_(platform.links().size(), 0.0),
        noise_({.seed = pace.seed, .purpose = Purpose::jitter}) {}

  void play(const RoutedRound& round, Round number) {
    for (std::size_t i = 0; i < thread_.size(); ++i) {
      raise(thread_[i], model_[i]);
    }
    if (!round.before.empty()) {
      heard_ = exchange(round.before);
    }
    for (std::size_t i = 0; i < thread_.size(); ++i) {
      raise(thread_[i], pace_.overlap ? 0 : heard_.last[i]);
      thread_[i] +=
          to_seconds(draw(pace_.nodes[i].compute, pace_.seed, static_cast<Rank>(i), number));
      if (round.waits) {
        // Each bucket steps once its own exchange is over; the next gradient is of all of them.
        raise(thread_[i], std::max(heard_.first[i], exchanged_.first[i]));
        model_[i] = std::max(heard_.last[i], exchanged_.last[i]);
      }
    }
    if (round.after.empty()) {
      return;
    }
    exchanged_ = exchange(round.after);
    if (!(round.hides && pace_.overlap)) {
      thread_ = exchanged_.last;
    }
  }

  double end() const {
    double last = 0;
    for (const auto* clocks : {&thread_, &heard_.last, &exchanged_.last}) {
      last = std::max(last, *std::max_element(clocks->begin(), clocks->end()));
    }
    return last;
  }

 private:
  /// Posts from the nodes' threads, which encode the first of several exchanges.
  Ends exchange(const std::vector<RoutedExchange>& exchanges) {
    Ends encoded = {thread_, {}};
    for (std::size_t i = 0; i < thread_.size(); ++i) {
      raise(codec_[i], thread_[i]);
    }
    encode(exchanges.front(), encoded.first, /*whole=*/false);
    encode(exchanges.front(), codec_);
    encode(exchanges.front(), thread_);
    encoded.last = thread_;
    return carry(exchanges, std::move(encoded));
  }

  /// Adds how long it takes: all buckets, or the first.
  void encode(const RoutedExchange& exchange, std::vector<double>& clocks,
              bool whole = true) const {
    Rank last = -1;
    for (const RoutedFrame& one : exchange) {
      const PlannedFrame& frame = one.frame;
      const CodecCost& codec = pace_.nodes[slot(frame.from)].codec;
      const double parts = whole ? 1 : frame.buckets;
      clocks[slot(frame.from)] +=
          (frame.from == last ? 0 : codec.seconds_per_exchange * frame.buckets / parts) +
          (frame.encoded ? vector_bytes(frame) * codec.encode_s_per_byte / parts : 0);
      last = frame.from;
    }
  }

  /// From when the first exchange is encoded to when the last is over.
  Ends carry(const std::vector<RoutedExchange>& exchanges, Ends ends) {
    for (const RoutedExchange& exchange : exchanges) {
      const bool further = &exchange != &exchanges.front();
      if (further) {
        // Buckets go on one by one, each when it has been decoded. Without neighbours nothing does.
        if (exchange.empty() || exchange.front().frame.buckets == 1) {
          ends.first = ends.last;
        }
        encode(exchange, ends.first, /*whole=*/false);
        encode(exchange, ends.last, /*whole=*/false);
        encode(exchange, codec_);
      }
      const auto place = static_cast<std::size_t>(&exchange - exchanges.data());
      const std::vector<Span> arrivals = serve(exchange, place, ends);
      if (!further) {
        ends.first = ends.last;  // all are encoded before any is decoded
      }
      hand_over(exchange, arrivals, ends);
    }
    return ends;
  }

  /// What has arrived is decoded, after what the node encodes, and senders know that it has.
  void hand_over(const RoutedExchange& exchange, const std::vector<Span>& arrivals, Ends& ends) {
    const std::uint64_t buffer = pace_.transport.send_buffer_bytes;
    for (std::size_t k = 0; k < exchange.size(); ++k) {
      raise(ends.first[slot(exchange[k].frame.to)], arrivals[k].first);
    }
    for (std::size_t i = 0; i < codec_.size(); ++i) {
      raise(codec_[i], ends.first[i]);
    }
    for (std::size_t k = 0; k < exchange.size(); ++k) {
      const PlannedFrame& frame = exchange[k].frame;
      raise(ends.last[slot(frame.to)], arrivals[k].last);
      // Handed over once the peer has room for it, of which word comes back.
      std::deque<double>& arrived = connections_[{frame.from, frame.to}].arrivals;
      const bool large = frame.bytes > buffer;
      const double word = arrived.size() < ahead_ ? 0 : arrived.front() + exchange[k].latency_s;
      raise(ends.first[slot(frame.from)], large ? arrivals[k].first : word);
      raise(ends.last[slot(frame.from)], large ? arrivals[k].last : word);
      arrived.push_back(arrivals[k].last);
      if (arrived.size() > ahead_) {
        arrived.pop_front();
      }
    }
    for (const RoutedFrame& one : exchange) {
      const std::size_t to = slot(one.frame.to);
      const double whole = vector_bytes(one.frame) * pace_.nodes[to].codec.decode_s_per_byte;
      ends.first[to] += whole / one.frame.buckets;
      ends.last[to] += whole / one.frame.buckets;
      codec_[to] += whole;
    }
    for (std::size_t i = 0; i < codec_.size(); ++i) {
      raise(ends.last[i], codec_[i]);
    }
  }

  /// When the frames may leave that are posted at these times, in the round's exchange number
  /// `place`: where words of receives are waited for, and not told of early (ReceiveForecast), a
  /// latency after their receives are posted.
  std::vector<double> departures(const RoutedExchange& exchange, std::size_t place,
                                 const std::vector<double>& posted) {
    std::vector<double> leave;
    leave.reserve(exchange.size());
    std::vector<std::size_t> senders(pace_.nodes.size());
    for (const RoutedFrame& one : exchange) {
      ++senders[slot(one.frame.to)];
    }
    for (const RoutedFrame& one : exchange) {
      const Rank from = one.frame.from;
      const Rank to = one.frame.to;
      double post = posted[slot(from)];
      if (pace_.transport.on_demand) {
        auto& before = connections_[{from, to}].exchanges;
        before.resize(std::max(before.size(), place + 1));
        const std::uint32_t buckets = one.frame.buckets;
        // A room that becomes free is for the next of the round's receives.
        const std::size_t rooms =
            ReceiveForecast::rooms_for(one.frame.bytes / buckets, senders[slot(to)]);
        const bool early =
            before[place]++ >= kRoundsUnforetold && (rooms > buckets || place * buckets < rooms);
        post = early ? post : std::max(post, posted[slot(to)] + one.latency_s);
      }
      leave.push_back(post);
    }
    return leave;
  }

  /// When the frames arrive that their senders post at these times. Each link works through them in
  /// the order of posting; what a node posts at once ends at once.
  std::vector<Span> serve(const RoutedExchange& exchange, std::size_t place, const Ends& encoded) {
    std::vector<std::size_t> order(exchange.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    const std::vector<double> leave = departures(exchange, place, encoded.first);
    const auto post_of = [&](std::size_t k) { return leave[k]; };
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return post_of(a) < post_of(b); });
    std::vector<Span> arrivals(exchange.size());
    std::map<LinkId, double> begun;  // by those of one posting
    for (auto first = order.begin(); first != order.end();) {
      const double post = post_of(*first);
      const auto last =
          std::find_if(first, order.end(), [&](std::size_t k) { return post_of(k) > post; });
      begun.clear();
      for (auto k = first; k != last; ++k) {
        for (const LinkId link : exchange[*k].links) {
          const double bandwidth = share_of(pace_.network) * platform_.links()[link].bytes_per_s;
          raise(free_[link], post);
          begun.emplace(link, free_[link]);
          free_[link] += static_cast<double>(exchange[*k].frame.bytes) / bandwidth;
        }
      }
      for (; first != last; ++first) {
        const RoutedFrame& one = exchange[*first];
        const double parts = one.frame.buckets;
        const double flow = flow_s(one, post);
        Span end = {post + flow / parts, post + flow};
        for (const LinkId link : one.links) {
          raise(end.first, begun.at(link) + (free_[link] - begun.at(link)) / parts);
          raise(end.last, free_[link]);
        }
        const double jitter = one.jitter_s > 0 ? one.jitter_s * (2 * noise_.uniform() - 1) : 0;
        const double way = one.latency_s + jitter;
        // The last bucket leaves when it is encoded.
        raise(end.last, encoded.last[slot(one.frame.from)] + flow / parts);
        arrivals[*first] = {end.first + way, end.last + way};
      }
    }
    return arrivals;
  }

  /// How long a frame flows where it is alone. Opens its connection's window by what was sent, and
  /// lets it shrink by how long nothing was.
  double flow_s(const RoutedFrame& one, double post) {
    const auto bytes = static_cast<double>(one.frame.bytes);
    double flow = bytes / one.bound;
    const double initial = pace_.network.initial_window_bytes;
    const double round_trip = 2 * one.latency_s;
    if (initial == kUnlimited || one.bound == kUnlimited) {
      return flow;
    }
    Connection& connection = connections_[{one.frame.from, one.frame.to}];
    double& window = connection.window;
    if (window == 0) {
      window = initial;
    } else if (pace_.network.window_decays) {
      const double last = connection.arrivals.empty() ? 0 : connection.arrivals.back();
      const double idle = std::max(post - last, 0.0) / (round_trip + kTimeOutFloor_s);
      window = std::max(window * std::exp2(-std::floor(idle)), initial);
    }
    if (window < one.bound * round_trip) {
      flow += slow_start_s(bytes, one.bound, round_trip, window);
      window += 2 * bytes >= window ? bytes : 0;
    }
    return flow;
  }

  /// What goes from one node to another.
  struct Connection {
    std::deque<double> arrivals = {};  ///< of the last frames, as many as the peer has room for
    double window = 0;                 ///< bytes; 0: nothing was sent yet
    std::vector<int> exchanges;        ///< so far, by their places in a round
  };

  const Platform& platform_;
  const Pace& pace_;
  const std::size_t ahead_;
  std::vector<double> thread_;  ///< when a node's thread is at the start of the round
  std::vector<double> model_;   ///< when the model is there of which it takes a gradient
  std::vector<double> codec_;   ///< when all is encoded and decoded that it was asked for
  Ends heard_;                  ///< when what it posted before a gradient is over
  Ends exchanged_;              ///< and what it posted after one
  std::vector<double> free_;    ///< when a link has done all that was posted
  std::map<std::pair<Rank, Rank>, Connection> connections_;
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

double predict_seconds_per_round(const PlannedJob& job, const Platform& platform, const Pace& pace,
                                 Round rounds) {
  const RoutedJob routed = {.beginning_rounds = job.beginning_rounds,
                            .beginning = route(job.beginning, platform, pace.network),
                            .steady = route(job.steady, platform, pace.network)};
  const Round played = affordable_rounds(job, rounds);
  Clocks clocks(platform, pace, exchanges_ahead(job));
  for (Round number = 0; number < played; ++number) {
    clocks.play(routed.round(number), number);
  }
  return clocks.end() / static_cast<double>(played);
}

}  // namespace sotto::study
