// Losses in Network: Reno as Linux has it, with selective acknowledgements (RFC 6675), time-based
// detection (RACK-TLP, RFC 8985) and time-outs, a round trip at a time.
//
// The window halves as congestion_window.h has it. What was sent behind a lost packet waits for it:
// messages are delivered in order. The sender hears of the loss a round trip after the packet left,
// a quarter later where fewer than three packets followed it, and by its time-out where none did:
// the last packet of a message is what costs most. What is lost again takes as long again. Packets
// that are sent again are bytes of the message once more. Acknowledgements are not lost: the next
// one says the same.
#include <sotto/sim/network/losses.h>

#include <algorithm>
#include <cmath>

#include <sotto/sim/network/network.h>

namespace sotto {
namespace {

/// Buckets of the jitter, whose receivers are below it.
constexpr std::uint32_t kLosses = 1U << 23U;
/// A packet is sent again so often at most (Linux tcp_retries2).
constexpr int kMostRetries = 15;

}  // namespace

double mean_rate(double loss, double round_trip_s, double segment_bytes) {
  const double timeout_s = round_trip_s + to_seconds(kTimeoutMargin);
  const double windows = round_trip_s * std::sqrt(2 * loss / 3);
  const double timeouts =
      timeout_s * std::min(1.0, 3 * std::sqrt(3 * loss / 8)) * loss * (1 + 32 * loss * loss);
  return segment_bytes / (windows + timeouts);
}

PacketLosses::PacketLosses(double chance, const RandomKey& key) : chance_(chance), random_(key) {
  draw();
}

void PacketLosses::draw() {
  // Geometric: the number of successes before the first failure.
  delivered_ = std::floor(std::log1p(-random_.uniform()) / std::log1p(-chance_));
}

void PacketLosses::begin(double bytes, double segment) {
  segment_ = segment;
  packets_ = std::max(1.0, std::ceil(bytes / segment));
  behind_ = bytes;  // behind nothing, so far
  place();
}

void PacketLosses::next() {
  draw();
  place();
}

void PacketLosses::place() {
  if (delivered_ >= packets_) {
    delivered_ -= packets_;
    behind_ = -1;
    return;
  }
  packets_ -= delivered_ + 1;
  behind_ = packets_ == 0 ? 0 : std::max(behind_ - (delivered_ + 1) * segment_, 0.0);
}

void Network::expect_losses(ConnectionId id) {
  Connection& connection = connections_[id];
  double kept = 1;
  for (const LinkId link : links(connection.path)) {
    kept *= 1 - links_[link].loss;
  }
  if (kept < 1 && slow_start()) {
    const auto receiver = static_cast<std::uint32_t>(connection.to);
    connection.lossy = static_cast<std::uint32_t>(losses_.size());
    losses_.emplace_back(1 - kept, RandomKey{.seed = seed_,
                                             .rank = connection.from,
                                             .round = id,
                                             .purpose = Purpose::jitter,
                                             .bucket = kLosses + receiver});
  }
}

SimTime Network::until_acknowledged(const Connection& connection) const {
  double rate = kUnlimited;
  for (const LinkId link : links(connection.path)) {
    rate = std::min(rate, links_[link].bytes_per_s);
  }
  // Along a link that is cut nothing is sent that would be acknowledged.
  return rate > 0 ? from_seconds(2 * model_.segment_bytes / rate) : 0;
}

// While a loss is repaired what may leave is counted in acknowledgements (RFC 6937), and none but
// that of the repair is to come when the message before has left.
bool Network::await_repair(ConnectionId id) {
  Connection& connection = connections_[id];
  if (connection.lossy == kNone) {
    return false;
  }
  const PacketLosses& losses = losses_[connection.lossy];
  if (losses.whole_at < 0 || losses.silent || queue_.now() < losses.whole_at) {
    return false;
  }
  const SimTime repaired = plus(losses.whole_at, round_trip(connection));
  if (queue_.now() >= repaired) {
    return false;
  }
  queue_.push(
      {.time = repaired, .subject = id, .version = ++connection.version, .kind = message_begins});
  return true;
}

void Network::choose_loss(ConnectionId id) {
  Connection& connection = connections_[id];
  if (connection.lossy == kNone) {
    return;
  }
  losses_[connection.lossy].begin(static_cast<double>(connection.bytes), model_.segment_bytes);
  if (!connection.flowing) {
    report_loss(id);
  }
}

void Network::notify_back(ConnectionId id) {
  const ConnectionId back = connections_[id].reverse;
  if (back != kNone && connections_[back].lossy != kNone && !connections_[back].flowing) {
    report_loss(back);
  }
}

SimTime Network::hears_after(ConnectionId id) const {
  const Connection& connection = connections_[id];
  double wait = 0;
  if (connection.reverse != kNone) {
    const Connection& reverse = connections_[connection.reverse];
    wait = reverse.flowing && reverse.rate > 0 ? queued(connection.reverse) / reverse.rate : 0;
  }
  return plus(round_trip(connection), from_seconds(wait));
}

void Network::lose(ConnectionId id) {
  Connection& connection = connections_[id];
  PacketLosses& losses = losses_[connection.lossy];
  CongestionWindow& window = windows_[id];
  window.lose();
  const SimTime trip = hears_after(id);
  const double segment = model_.segment_bytes;
  const double rest = losses.behind();
  losses.next();
  const bool last = rest == 0 && connection.waiting.empty();
  SimTime heard = trip;
  SimTime once_more = trip;
  if (last) {
    heard = once_more = plus(trip, kTimeoutMargin);
    losses.silent = true;
  } else if (window.allowance() < segment) {
    heard = plus(trip, std::max<SimTime>(window.round_end() - queue_.now(), 0));
  } else if (connection.waiting.empty() && rest <= 2 * segment) {
    heard = plus(trip, trip / 4);
  }
  for (int retry = 0; retry < kMostRetries && losses.again(); ++retry) {
    heard = plus(heard, once_more);
    once_more = last ? plus(once_more, once_more) : once_more;
  }
  const double rate = connection.rate;
  if (rest > window.window()) {
    connection.remaining += segment;
    losses.delay(segment);
    heard = std::max(heard, from_seconds(window.window() / rate));
  } else {
    heard = plus(std::max(heard, from_seconds(rest / rate)), from_seconds(segment / rate));
  }
  losses.whole_at = std::max(losses.whole_at, plus(queue_.now(), heard));
}

void Network::report_loss(ConnectionId id) {
  Connection& connection = connections_[id];
  PacketLosses& losses = losses_[connection.lossy];
  if (!losses.silent) {
    return;
  }
  losses.silent = false;
  const SimTime trip = hears_after(id);
  const SimTime sooner = losses.whole_at - plus(queue_.now(), plus(trip, trip / 4));
  if (sooner <= 0) {
    return;
  }
  for (Landing& landing : connection.landing.items()) {
    if (landing.at >= losses.whole_at) {
      landing.at -= sooner;
      queue_.push({.time = landing.at,
                   .subject = id,
                   .version = connection.epoch,
                   .kind = message_arrives});
    }
  }
  connection.last_landing -= sooner;
  losses.whole_at -= sooner;
}

}  // namespace sotto
