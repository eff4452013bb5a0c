#include <sotto/study/plan/internal/plan_clocks.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include <sotto/base/receive_forecast.h>
#include <sotto/sim/network/tcp/congestion_window.h>
#include <sotto/sim/network/tcp/mean_rate.h>
#include <sotto/sim/time.h>

namespace sotto::study {
namespace {

/// Added to a round trip: after so long without sending, Linux halves a window.
constexpr double kTimeOutFloor_s = 0.2;
/// After which the next receives are foretold.
constexpr int kRoundsUnforetold = 3;

std::size_t slot(Rank rank) { return static_cast<std::size_t>(rank); }

void raise(double& value, double to) { value = std::max(value, to); }

double vector_bytes(const PlannedFrame& frame) {
  return sizeof(float) * static_cast<double>(frame.elements);
}

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

}  // namespace

RoutedJob route(const PlannedJob& job, const Platform& platform, const NetworkModel& model) {
  return {.beginning_rounds = job.beginning_rounds,
          .beginning = route(job.beginning, platform, model),
          .steady = route(job.steady, platform, model)};
}

PlanClocks::PlanClocks(const Platform& platform, const JobTiming& timing, std::size_t ahead)
    : platform_(platform),
      timing_(timing),
      ahead_(ahead),
      thread_(timing.nodes.size(), 0.0),
      model_(thread_),
      codec_(thread_),
      heard_{thread_, thread_},
      exchanged_{thread_, thread_},
      free_(platform.links().size(), 0.0),
      noise_({.seed = timing.seed, .purpose = Purpose::jitter}) {}

void PlanClocks::play(const RoutedRound& round, Round number) {
  for (std::size_t i = 0; i < thread_.size(); ++i) {
    raise(thread_[i], model_[i]);
  }
  if (!round.before.empty()) {
    heard_ = exchange(round.before);
  }
  for (std::size_t i = 0; i < thread_.size(); ++i) {
    raise(thread_[i], timing_.overlap ? 0 : heard_.last[i]);
    thread_[i] +=
        to_seconds(draw(timing_.nodes[i].compute, timing_.seed, static_cast<Rank>(i), number));
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
  if (!(round.hides && timing_.overlap)) {
    thread_ = exchanged_.last;
  }
}

double PlanClocks::end() const {
  double last = 0;
  for (const auto* clocks : {&thread_, &heard_.last, &exchanged_.last}) {
    last = std::max(last, *std::max_element(clocks->begin(), clocks->end()));
  }
  return last;
}

PlanClocks::Ends PlanClocks::exchange(const std::vector<RoutedExchange>& exchanges) {
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

void PlanClocks::encode(const RoutedExchange& exchange, std::vector<double>& clocks,
                        bool whole) const {
  Rank last = -1;
  for (const RoutedFrame& one : exchange) {
    const PlannedFrame& frame = one.frame;
    const CodecCost& codec = timing_.nodes[slot(frame.from)].codec;
    const double parts = whole ? 1 : frame.buckets;
    clocks[slot(frame.from)] +=
        (frame.from == last ? 0 : codec.seconds_per_exchange * frame.buckets / parts) +
        (frame.encoded ? vector_bytes(frame) * codec.encode_s_per_byte / parts : 0);
    last = frame.from;
  }
}

PlanClocks::Ends PlanClocks::carry(const std::vector<RoutedExchange>& exchanges, Ends ends) {
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

void PlanClocks::hand_over(const RoutedExchange& exchange, const std::vector<Span>& arrivals,
                           Ends& ends) {
  const std::uint64_t buffer = timing_.transport.send_buffer_bytes;
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
    const CodecCost& codec = timing_.nodes[to].codec;
    const double whole =
        vector_bytes(one.frame) * codec.decodings(one.frame.tag) * codec.decode_s_per_byte;
    ends.first[to] += whole / one.frame.buckets;
    ends.last[to] += whole / one.frame.buckets;
    codec_[to] += whole;
  }
  for (std::size_t i = 0; i < codec_.size(); ++i) {
    raise(ends.last[i], codec_[i]);
  }
}

std::vector<double> PlanClocks::departures(const RoutedExchange& exchange, std::size_t place,
                                           const std::vector<double>& posted) {
  std::vector<double> leave;
  leave.reserve(exchange.size());
  std::vector<std::size_t> senders(timing_.nodes.size());
  for (const RoutedFrame& one : exchange) {
    ++senders[slot(one.frame.to)];
  }
  for (const RoutedFrame& one : exchange) {
    const Rank from = one.frame.from;
    const Rank to = one.frame.to;
    double post = posted[slot(from)];
    if (timing_.transport.on_demand) {
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

std::vector<PlanClocks::Span> PlanClocks::serve(const RoutedExchange& exchange, std::size_t place,
                                                const Ends& encoded) {
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
        const double bandwidth = share_of(timing_.network) * platform_.links()[link].bytes_per_s;
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

double PlanClocks::flow_s(const RoutedFrame& one, double post) {
  const auto bytes = static_cast<double>(one.frame.bytes);
  double flow = bytes / one.bound;
  const double initial = timing_.network.initial_window_bytes;
  const double round_trip = 2 * one.latency_s;
  if (initial == kUnlimited || one.bound == kUnlimited) {
    return flow;
  }
  Connection& connection = connections_[{one.frame.from, one.frame.to}];
  double& window = connection.window;
  if (window == 0) {
    window = initial;
  } else if (timing_.network.window_decays) {
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

}  // namespace sotto::study
