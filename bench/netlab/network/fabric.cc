#include "fabric.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <sotto/base/check.h>
#include <sotto/base/philox.h>

namespace sotto::netlab {
namespace {

/// What a turn of the round robin adds to a pair's credit: a whole packet.
constexpr std::int64_t kQuantum = 1500;
/// See packets_at_once; the largest piece of a stream is 64 kB.
constexpr SimTime kPieceTime = 500'000;
constexpr double kMostAtOnce = 64;

SimTime duration(std::uint32_t bytes, double bytes_per_s) {
  return bytes_per_s == kUnlimited ? 0 : from_seconds(bytes / bytes_per_s);
}

/// Finds the next of `count` whose turn it is: ready, and with credit for what it has in front. Its
/// turn lasts until its credit is used up. −1: none is ready.
template <typename Ready, typename Credit, typename Size>
int take_turn(int& turn, int count, const Ready& ready, const Credit& credit, const Size& size) {
  bool any = false;
  for (int i = 0; i < count; ++i) {
    any = any || ready(i);
  }
  if (!any) {
    return -1;
  }
  while (!ready(turn) || credit(turn) < size(turn)) {
    if (!ready(turn)) {
      credit(turn) = 0;
    }
    turn = turn + 1 == count ? 0 : turn + 1;
    credit(turn) += kQuantum;
  }
  credit(turn) -= size(turn);
  return turn;
}

}  // namespace

Fabric::Fabric(int hosts, std::uint64_t queue_bytes, std::uint64_t seed)
    : hosts_count_(hosts),
      queue_bytes_(queue_bytes),
      seed_(seed),
      hosts_(static_cast<std::size_t>(hosts)),
      pairs_(hosts_.size() * hosts_.size()),
      ports_(hosts_.size()) {
  for (Host to = 0; to < hosts; ++to) {
    port(to).lanes.resize(hosts_.size());
    for (Host from = 0; from < hosts; ++from) {
      at(from, to).way = {{.port = to, .lane = from}};
    }
  }
}

void Fabric::set_link(SimTime now, Host from, Host to, const LinkShape& shape) {
  Pair& pair = at(from, to);
  if (shape.loss != pair.shape.loss || shape.loss_burst != pair.shape.loss_burst) {
    // Apart from the buckets of the jitter, whose receivers are below 2^23.
    const RandomKey key = {.seed = seed_,
                           .rank = from,
                           .purpose = Purpose::jitter,
                           .bucket = (1U << 23U) + static_cast<std::uint32_t>(to)};
    pair.losses.emplace(std::vector<LinkLoss>{{shape.loss, shape.loss_burst}}, key);
  }
  pair.shape = shape;
  SimTime& shortest = host(from).shortest_latency;
  shortest = kNever;
  for (Host other = 0; other < hosts_count_; ++other) {
    const LinkShape& link = at(from, other).shape;
    shortest = other == from ? shortest : std::min(shortest, link.latency - link.jitter);
  }
  schedule(std::max({now, pair.free_at, host(from).out_free_at}), Kind::out, from);
}

SimTime Fabric::shortest_latency() const {
  return std::ranges::min(hosts_, {}, &HostState::shortest_latency).shortest_latency;
}

void Fabric::set_host(Host host, double up, double down) {
  check(up > 0 && down > 0, "a host's way out and in carry something");
  this->host(host).up = up;
  port(host).bytes_per_s = down;
}

int Fabric::add_trunk(double bytes_per_s) {
  check(bytes_per_s > 0, "a trunk carries something");
  ports_.emplace_back().bytes_per_s = bytes_per_s;
  return static_cast<int>(ports_.size()) - 1;
}

void Fabric::cross_trunk(Host from, Host to, int trunk) {
  check(trunk >= hosts_count_ && trunk < static_cast<int>(ports_.size()), "a trunk is added first");
  std::vector<Lane>& lanes = port(trunk).lanes;
  std::vector<Place>& way = at(from, to).way;
  way.insert(way.end() - 1, {.port = trunk, .lane = static_cast<int>(lanes.size())});
  lanes.emplace_back();
}

void Fabric::schedule(SimTime time, Kind kind, int subject) {
  agenda_.push({std::max(time, now_), sequence_++, kind, subject});
}

std::uint32_t Fabric::packets_at_once(Host from, Host to) const {
  const LinkShape& shape = at(from, to).shape;
  if (shape.loss > 0 || shape.jitter > 0) {
    return 1;
  }
  double rate = std::min(shape.bytes_per_s, host(from).up);
  for (const Place& place : at(from, to).way) {
    rate = std::min(rate, port(place.port).bytes_per_s);
  }
  return static_cast<std::uint32_t>(
      std::clamp(to_seconds(kPieceTime) * rate / kQuantum, 1.0, kMostAtOnce));
}

void Fabric::accept(SimTime now, Packet packet) {
  Pair& pair = at(packet.from, packet.to);
  if (pair.waiting_bytes + packet.wire_bytes > queue_bytes_) {
    pair.carried.dropped += packet.segments;
    return;
  }
  pair.waiting_bytes += packet.wire_bytes;
  const Host from = packet.from;
  pair.waiting.push_back({std::move(packet), now});
  schedule(std::max({now, pair.free_at, host(from).out_free_at}), Kind::out, from);
}

void Fabric::advance(SimTime now, const Deliver& deliver) {
  deliver_ = &deliver;
  while (!agenda_.empty() && agenda_.top().time <= now) {
    const Event event = agenda_.top();
    agenda_.pop();
    now_ = event.time;
    switch (event.kind) {
      case Kind::out:
        send(event.subject);
        break;
      case Kind::arrival:
        arrive(event.subject);
        break;
      case Kind::passed: {
        Moving passed = std::move(port(event.subject).current);
        ++passed.passed;
        go_on(std::move(passed));
        port(event.subject).busy = false;
        serve(event.subject);
        break;
      }
    }
  }
  deliver_ = nullptr;
}

/// Lets packets leave as long as the way out is free.
void Fabric::send(Host from) {
  HostState& state = host(from);
  const auto ready = [&](int to) {
    const Pair& pair = at(from, to);
    return !pair.waiting.empty() && pair.waiting.front().since <= now_ && pair.free_at <= now_ &&
           pair.shape.bytes_per_s > 0;
  };
  const auto credit = [&](int to) -> std::int64_t& { return at(from, to).credit_out; };
  const auto size = [&](int to) {
    return static_cast<std::int64_t>(at(from, to).waiting.front().packet.wire_bytes);
  };
  while (state.out_free_at <= now_) {
    const int to = take_turn(state.turn_out, hosts_count_, ready, credit, size);
    if (to < 0) {
      return;
    }
    start(from, at(from, to));
  }
}

void Fabric::start(Host from, Pair& pair) {
  Packet packet = std::move(pair.waiting.front().packet);
  pair.waiting.pop_front();
  pair.waiting_bytes -= packet.wire_bytes;
  HostState& state = host(from);
  const SimTime out = duration(packet.wire_bytes, state.up);
  const SimTime across = duration(packet.wire_bytes, pair.shape.bytes_per_s);
  state.out_free_at = now_ + out;
  pair.free_at = now_ + across;
  if (!pair.waiting.empty() || out > 0) {
    schedule(std::max(state.out_free_at, pair.free_at), Kind::out, from);
  }
  if (across > out && out > 0) {
    schedule(state.out_free_at, Kind::out, from);  // for other receivers
  }
  ++pair.number;
  if (pair.losses && pair.losses->lose()) {
    pair.carried.lost += packet.segments;
    return;
  }
  const SimTime latency = latency_of(pair, packet);
  SimTime last_bit = now_ + std::max(out, across) + latency;
  if (!pair.moving.empty()) {
    last_bit = std::max(last_bit, pair.moving.back().last_bit);
  }
  schedule(last_bit, Kind::arrival, index(from, packet.to));
  pair.moving.push_back({std::move(packet), now_ + latency, last_bit});
}

void Fabric::arrive(int number) {
  Pair& pair = pairs_[static_cast<std::size_t>(number)];
  Moving moving = std::move(pair.moving.front());
  pair.moving.pop_front();
  pair.carried.bytes += moving.packet.wire_bytes;
  pair.carried.packets += moving.packet.segments;
  go_on(std::move(moving));
}

void Fabric::go_on(Moving moving) {
  const std::vector<Place>& way = at(moving.packet.from, moving.packet.to).way;
  for (; moving.passed < way.size(); ++moving.passed) {
    const auto [number, lane] = way[moving.passed];
    if (port(number).bytes_per_s < kUnlimited) {
      port(number).lanes[static_cast<std::size_t>(lane)].waiting.push_back(std::move(moving));
      serve(number);
      return;
    }
  }
  (*deliver_)(moving.packet);
}

void Fabric::serve(int number) {
  Port& state = port(number);
  if (state.busy) {
    return;
  }
  const auto lane = [&](int turn) -> Lane& { return state.lanes[static_cast<std::size_t>(turn)]; };
  const auto ready = [&](int turn) { return !lane(turn).waiting.empty(); };
  const auto credit = [&](int turn) -> std::int64_t& { return lane(turn).credit; };
  const auto size = [&](int turn) {
    return static_cast<std::int64_t>(lane(turn).waiting.front().packet.wire_bytes);
  };
  const int turn = take_turn(state.turn, static_cast<int>(state.lanes.size()), ready, credit, size);
  if (turn < 0) {
    return;
  }
  state.current = std::move(lane(turn).waiting.front());
  lane(turn).waiting.pop_front();
  Moving& current = state.current;
  current.first_bit = std::max(state.free_at, current.first_bit);
  state.free_at =
      std::max(now_, current.first_bit + duration(current.packet.wire_bytes, state.bytes_per_s));
  state.busy = true;
  schedule(state.free_at, Kind::passed, number);
}

SimTime Fabric::latency_of(const Pair& pair, const Packet& packet) const {
  if (pair.shape.jitter == 0) {
    return pair.shape.latency;
  }
  RandomStream random({.seed = seed_,
                       .rank = packet.from,
                       .round = pair.number,
                       .purpose = Purpose::jitter,
                       .bucket = static_cast<std::uint32_t>(packet.to)});
  const double off = static_cast<double>(pair.shape.jitter) * (2 * random.uniform() - 1);
  return std::max<SimTime>(0, pair.shape.latency + std::llround(off));
}

}  // namespace sotto::netlab
