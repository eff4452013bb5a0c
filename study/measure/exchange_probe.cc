#include <sotto/study/measure/exchange_probe.h>

#include <algorithm>
#include <set>
#include <span>
#include <string>

#include <fmt/format.h>

#include <sotto/base/bytes.h>
#include <sotto/base/elapsed.h>
#include <sotto/base/exchange.h>
#include <sotto/base/frame.h>

namespace sotto::study {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kSmall = 64;  ///< payload, in bytes, of a message that measures latency
constexpr std::size_t kFirstBulk = std::size_t{1} << 16U;
constexpr int kLeastRoundTrips = 5;
constexpr int kMostRoundTrips = 1000;
/// Each bulk message is timed this often, and the quickest counts: a busy machine makes messages
/// slower, never quicker.
constexpr int kBulkRepeats = 3;

/// The request to a peer that answers: the first bytes of a payload.
struct Question {
  bool last = false;  ///< this question is the step's last
  std::uint64_t reply_bytes = kSmall;
};

/// The part of a message's time in which its bytes moved. Half at least: where a round trip is
/// nearly all of the time, it says little, and what is left is noise.
double moving_s(double seconds, double round_trip_s) {
  return std::max(seconds - round_trip_s, seconds / 2);
}

class Prober {
 public:
  Prober(const ProbeOptions& options, Transport& transport, StoreCollectives& collectives,
         Store& store)
      : options_(options),
        transport_(transport),
        collectives_(collectives),
        store_(store),
        out_(probe_frame_bytes(options)),
        in_(probe_frame_bytes(options)) {}

  Result<MeasuredNetwork> run();

 private:
  using Peers = std::vector<Rank>;

  /// A node asks, its peers answer; what it finds goes to all.
  template <typename Measure>
  Result<double> step(Rank asker, const Peers& peers, const Measure& measure);
  Result<double> ask(const Peers& peers, std::size_t bytes, Question question);
  Status answer(Rank asker);
  Status finish(const ExchangeTag& tag);
  Result<double> round_trip(Rank peer);
  Result<double> bandwidth(Rank peer, double round_trip_s, std::uint64_t* bytes);
  Status edge(MeasuredEdge& edge);
  void level_latencies();
  Status host(Rank node);
  Result<double> all_at_once(Rank node, const Peers& peers, bool up);
  std::span<const std::byte> message(std::size_t payload, Question question);
  Peers others(Rank node, bool up) const;
  double slowest_round_trip(Rank node, const Peers& peers, bool up) const;
  double edges_bandwidth(Rank node, bool up, bool sum) const;

  const ProbeOptions& options_;
  Transport& transport_;
  StoreCollectives& collectives_;
  Store& store_;
  std::vector<std::byte> out_;
  std::vector<std::byte> in_;
  Round question_ = 0;  ///< number of the next question within the step
  Round step_ = 0;
  MeasuredNetwork found_;
};

std::span<const std::byte> Prober::message(std::size_t payload, Question question) {
  ByteBuffer words;
  words.write(static_cast<std::uint8_t>(question.last));
  words.write(question.reply_bytes);
  std::copy(words.bytes().begin(), words.bytes().end(),
            out_.begin() + static_cast<std::ptrdiff_t>(kFrameHeaderBytes));
  FrameHeader header;
  header.sender = options_.rank;
  header.round = question_;
  header.payload_bytes = payload;
  return seal_frame(header, out_);
}

/// Waits until the exchange is over.
Status Prober::finish(const ExchangeTag& tag) {
  while (true) {
    const auto event = transport_.poll(Deadline::after(options_.timeout, &options_.stop));
    if (!event.ok()) {
      return event.status();
    }
    if (event->kind == TransportEvent::Kind::peer_lost && event->needed) {
      return {Fault::peer_lost, fmt::format("node {} is gone: {}", event->peer, event->reason)};
    }
    if (event->kind == TransportEvent::Kind::exchange_done && event->tag == tag) {
      return {};
    }
  }
}

/// Seconds until all peers have answered.
Result<double> Prober::ask(const Peers& peers, std::size_t bytes, Question question) {
  const auto frame = message(bytes, question);
  const std::size_t room = kFrameHeaderBytes + question.reply_bytes;
  std::vector<std::vector<std::byte>> replies(peers.size(), std::vector<std::byte>(room));
  Exchange exchange = {.tag = {.round = (step_ << 20U) + question_++}, .sends = {}, .receives = {}};
  for (std::size_t k = 0; k < peers.size(); ++k) {
    exchange.sends.push_back({peers[k], frame});
    exchange.receives.push_back({peers[k], replies[k]});
  }
  const auto start = Clock::now();
  if (Status status = transport_.post(exchange); !status.ok()) {
    return status;
  }
  if (Status status = finish(exchange.tag); !status.ok()) {
    return status;
  }
  return seconds_since(start);
}

/// Answers until the last question of the step.
Status Prober::answer(Rank asker) {
  Question question;
  while (!question.last) {
    const ExchangeTag tag = {.round = (step_ << 20U) + question_++};
    const Exchange heard = {.tag = tag, .sends = {}, .receives = {{asker, in_}}};
    if (Status status = transport_.post(heard); !status.ok()) {
      return status;
    }
    if (Status status = finish(tag); !status.ok()) {
      return status;
    }
    ByteReader reader(std::span<const std::byte>(in_).subspan(kFrameHeaderBytes));
    question.last = reader.read<std::uint8_t>() != 0;
    question.reply_bytes = reader.read<std::uint64_t>();
    if (question.reply_bytes < kSmall || question.reply_bytes > options_.most_bytes) {
      return {Fault::malformed,
              fmt::format("node {} asks for {} bytes, where {} to {} may be", asker,
                          question.reply_bytes, kSmall, options_.most_bytes)};
    }
    const Exchange said = {
        .tag = tag, .sends = {{asker, message(question.reply_bytes, question)}}, .receives = {}};
    if (Status status = transport_.post(said); !status.ok()) {
      return status;
    }
    if (Status status = finish(tag); !status.ok()) {
      return status;
    }
  }
  return {};
}

/// The median of many.
Result<double> Prober::round_trip(Rank peer) {
  std::vector<double> seconds;
  const auto start = Clock::now();
  while (seconds.size() < kMostRoundTrips &&
         (seconds.size() < kLeastRoundTrips || seconds_since(start) < options_.seconds / 4)) {
    auto one = ask({peer}, kSmall, {});
    if (!one.ok()) {
      return one;
    }
    seconds.push_back(*one);
  }
  const auto middle = seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2);
  std::nth_element(seconds.begin(), middle, seconds.end());
  return *middle;
}

/// Measures with a message that is doubled until it takes long enough.
Result<double> Prober::bandwidth(Rank peer, double round_trip_s, std::uint64_t* bytes) {
  for (*bytes = std::min(kFirstBulk, options_.most_bytes);; *bytes *= 2) {
    auto seconds = ask({peer}, *bytes, {});
    if (!seconds.ok()) {
      return seconds;
    }
    // The next would take about twice as long.
    if (*seconds >= options_.seconds / 4 || 2 * *bytes > options_.most_bytes) {
      for (int again = 1; again < kBulkRepeats; ++again) {
        auto other = ask({peer}, *bytes, {});
        if (!other.ok()) {
          return other;
        }
        *seconds = std::min(*seconds, *other);
      }
      return static_cast<double>(*bytes) / moving_s(*seconds, round_trip_s);
    }
  }
}

template <typename Measure>
Result<double> Prober::step(Rank asker, const Peers& peers, const Measure& measure) {
  const std::string key = fmt::format("probe/{}", ++step_);
  question_ = 0;
  if (options_.rank == asker) {
    Result<double> found = measure();
    if (!found.ok()) {
      return found;
    }
    if (auto last = ask(peers, kSmall, {.last = true}); !last.ok()) {
      return last;
    }
    ByteBuffer value;
    value.write(*found);
    Status status = store_.set(key, value.bytes());
    return status.ok() ? found : Result<double>(status);
  }
  if (std::binary_search(peers.begin(), peers.end(), options_.rank)) {
    if (Status status = answer(asker); !status.ok()) {
      return status;
    }
  }
  const auto value = collectives_.await(key, asker);
  if (!value.ok()) {
    return value.status();
  }
  ByteReader reader(*value);
  const auto found = reader.read<double>();
  return reader.finished() ? Result<double>(found)
                           : Status(Fault::malformed, fmt::format("what node {} found cannot be "
                                                                  "read",
                                                                  asker));
}

Status Prober::edge(MeasuredEdge& edge) {
  const auto seconds = step(edge.from, {edge.to}, [&] { return round_trip(edge.to); });
  if (!seconds.ok()) {
    return seconds.status();
  }
  edge.latency_s = *seconds / 2;
  const auto rate =
      step(edge.from, {edge.to}, [&] { return bandwidth(edge.to, *seconds, &edge.bytes); });
  if (!rate.ok()) {
    return rate.status();
  }
  edge.bandwidth_bytes_per_s = *rate;
  const auto bytes =
      step(edge.from, {edge.to}, [&] { return Result<double>(static_cast<double>(edge.bytes)); });
  if (!bytes.ok()) {
    return bytes.status();
  }
  edge.bytes = static_cast<std::uint64_t>(*bytes);
  return {};
}

/// The two directions of a pair share their round trip: the shorter of the two measurements is the
/// less disturbed.
void Prober::level_latencies() {
  for (MeasuredEdge& edge : found_.edges) {
    const auto back = std::find_if(
        found_.edges.begin(), found_.edges.end(),
        [&](const MeasuredEdge& other) { return other.from == edge.to && other.to == edge.from; });
    if (back != found_.edges.end()) {
      edge.latency_s = back->latency_s = std::min(edge.latency_s, back->latency_s);
    }
  }
}

Prober::Peers Prober::others(Rank node, bool up) const {
  Peers peers;
  for (const auto& [from, to] : options_.edges) {
    if ((up ? from : to) == node) {
      peers.push_back(up ? to : from);
    }
  }
  std::sort(peers.begin(), peers.end());
  return peers;
}

double Prober::slowest_round_trip(Rank node, const Peers& peers, bool up) const {
  double slowest = 0;
  for (const MeasuredEdge& edge : found_.edges) {
    const Rank peer = up ? edge.to : edge.from;
    if ((up ? edge.from : edge.to) == node &&
        std::binary_search(peers.begin(), peers.end(), peer)) {
      slowest = std::max(slowest, 2 * edge.latency_s);
    }
  }
  return slowest;
}

double Prober::edges_bandwidth(Rank node, bool up, bool sum) const {
  double found = 0;
  for (const MeasuredEdge& edge : found_.edges) {
    if ((up ? edge.from : edge.to) == node) {
      found =
          sum ? found + edge.bandwidth_bytes_per_s : std::max(found, edge.bandwidth_bytes_per_s);
    }
  }
  return found;
}

/// Bytes a second of all its edges together, in one message each.
Result<double> Prober::all_at_once(Rank node, const Peers& peers, bool up) {
  // As much as one edge carries in the time, shared by all.
  const double fair = edges_bandwidth(node, up, false) * options_.seconds / 4;
  const auto bytes = static_cast<std::size_t>(
      std::clamp(fair, static_cast<double>(kSmall), static_cast<double>(options_.most_bytes)));
  auto seconds =
      up ? ask(peers, bytes, {}) : ask(peers, kSmall, {.last = false, .reply_bytes = bytes});
  if (!seconds.ok()) {
    return seconds;
  }
  return static_cast<double>(bytes * peers.size()) /
         moving_s(*seconds, slowest_round_trip(node, peers, up));
}

Status Prober::host(Rank node) {
  for (const bool up : {true, false}) {
    const Peers peers = others(node, up);
    if (peers.empty()) {
      continue;
    }
    const auto rate = step(node, peers, [&] { return all_at_once(node, peers, up); });
    if (!rate.ok()) {
      return rate.status();
    }
    MeasuredHost& host = found_.hosts[static_cast<std::size_t>(node)];
    // It carries what one edge was seen to carry.
    (up ? host.up_bytes_per_s : host.down_bytes_per_s) =
        std::max(*rate, edges_bandwidth(node, up, false));
  }
  return {};
}

Result<MeasuredNetwork> Prober::run() {
  for (const auto& [from, to] : options_.edges) {
    found_.edges.push_back({from, to});
    if (Status status = edge(found_.edges.back()); !status.ok()) {
      return status;
    }
  }
  level_latencies();
  found_.hosts.resize(static_cast<std::size_t>(options_.nodes));
  for (Rank node = 0; node < options_.nodes; ++node) {
    if (Status status = host(node); !status.ok()) {
      return status;
    }
  }
  return found_;
}

}  // namespace

std::vector<Rank> probe_peers(const ProbeOptions& options) {
  std::set<Rank> peers;
  for (const auto& [from, to] : options.edges) {
    if (from == options.rank) {
      peers.insert(to);
    } else if (to == options.rank) {
      peers.insert(from);
    }
  }
  return {peers.begin(), peers.end()};
}

std::size_t probe_frame_bytes(const ProbeOptions& options) {
  return kFrameHeaderBytes + options.most_bytes;
}

Result<MeasuredNetwork> probe(const ProbeOptions& options, Transport& transport,
                              StoreCollectives& collectives, Store& store) {
  return Prober(options, transport, collectives, store).run();
}

}  // namespace sotto::study
