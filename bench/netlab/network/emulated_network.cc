#include "emulated_network.h"

#include <poll.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <span>

namespace sotto::netlab {
namespace {

/// More than the windows of all of a pair's connections: Linux lets a sender have 4 MB under way.
constexpr std::uint64_t kQueueBytes = 64'000'000;
constexpr std::size_t kLargestPacket = 1U << 17U;
/// Packets read from one host before others are looked at.
constexpr int kBatch = 64;
constexpr SimTime kLongestNap = 100'000'000;
/// While packets are under way the switch looks at them, and for more, once in a hundredth of the
/// shortest latency, at most ten thousand times a second: cards wait as long before they interrupt.
/// Woken by each packet it took half a core from the nodes.
constexpr SimTime kLatencyPerInterval = 100;
constexpr SimTime kLongestInterval = 100'000;
/// Below, it is woken by each packet after all.
constexpr SimTime kShortestInterval = 20'000;

SimTime interval_for(SimTime shortest_latency) {
  const SimTime interval = std::min(shortest_latency / kLatencyPerInterval, kLongestInterval);
  return interval < kShortestInterval ? 0 : interval;
}

SimTime now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

/// The switch: packets do not wait for the programs whose packets they are.
void hurry() {
  ::prctl(PR_SET_TIMERSLACK, 1UL);
  sched_param priority = {};
  priority.sched_priority = 10;
  // Where it is not allowed, calibration tells whether the switch comes too late.
  (void)::sched_setscheduler(0, SCHED_FIFO, &priority);
}

std::vector<NetworkNamespace> make_namespaces(const EmulatedNetworkOptions& options) {
  std::vector<NetworkNamespace> made;
  made.reserve(static_cast<std::size_t>(options.hosts));
  for (Host host = 0; host < options.hosts; ++host) {
    made.emplace_back(host, options.free_net, options.congestion);
  }
  return made;
}

}  // namespace

HostPriority::HostPriority() : policy_(::sched_getscheduler(0)) {
  sched_param priority = {};
  (void)::sched_getparam(0, &priority);
  priority_ = priority.sched_priority;
  priority.sched_priority = 5;
  // Where it is not allowed programs wait, and a busy machine makes runs longer.
  (void)::sched_setscheduler(0, SCHED_RR, &priority);
}

HostPriority::~HostPriority() {
  sched_param priority = {};
  priority.sched_priority = priority_;
  (void)::sched_setscheduler(0, policy_, &priority);
}

EmulatedNetwork::EmulatedNetwork(const EmulatedNetworkOptions& options)
    : namespaces_(make_namespaces(options)),
      room_(kLargestPacket),
      fabric_(options.hosts, kQueueBytes, options.seed),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      thread_([this] { serve(); }) {}

EmulatedNetwork::~EmulatedNetwork() {
  stopping_ = true;
  (void)::eventfd_write(wake_.get(), 1);
  thread_.join();
}

void EmulatedNetwork::set_link(Host from, Host to, const LinkShape& shape) {
  {
    const std::lock_guard lock(mutex_);
    fabric_.set_link(now(), from, to, shape);
    interval_ = interval_for(fabric_.shortest_latency());
  }
  (void)::eventfd_write(wake_.get(), 1);
}

void EmulatedNetwork::set_host(Host host, double up, double down) {
  const std::lock_guard lock(mutex_);
  fabric_.set_host(host, up, down);
}

void EmulatedNetwork::add_trunk(std::span<const Host> from, std::span<const Host> to,
                                double bytes_per_s) {
  const std::lock_guard lock(mutex_);
  const int trunk = fabric_.add_trunk(bytes_per_s);
  for (const Host sender : from) {
    for (const Host receiver : to) {
      fabric_.cross_trunk(sender, receiver, trunk);
    }
  }
}

Carried EmulatedNetwork::carried(Host from, Host to) const {
  const std::lock_guard lock(mutex_);
  return fabric_.carried(from, to);
}

bool EmulatedNetwork::idle() const {
  const std::lock_guard lock(mutex_);
  return fabric_.next() == kNever;
}

std::uint64_t EmulatedNetwork::carried() const {
  const std::lock_guard lock(mutex_);
  std::uint64_t sum = 0;
  for (Host from = 0; from < hosts(); ++from) {
    for (Host to = 0; to < hosts(); ++to) {
      sum += fabric_.carried(from, to).bytes;
    }
  }
  return sum;
}

std::uint64_t EmulatedNetwork::dropped() const {
  const std::lock_guard lock(mutex_);
  std::uint64_t sum = refused_;
  for (Host from = 0; from < hosts(); ++from) {
    for (Host to = 0; to < hosts(); ++to) {
      sum += fabric_.carried(from, to).dropped;
    }
  }
  return sum;
}

void EmulatedNetwork::serve() {
  hurry();
  std::vector<pollfd> watched;
  for (const NetworkNamespace& host : namespaces_) {
    watched.push_back({.fd = host.device(), .events = POLLIN, .revents = 0});
  }
  watched.push_back({.fd = wake_.get(), .events = POLLIN, .revents = 0});
  const Fabric::Deliver deliver = [this](const Packet& p) { pass(p.to, p.bytes); };
  SimTime due = kNever;
  SimTime looked = 0;
  SimTime interval = 0;
  while (!stopping_) {
    const bool by_interval = due < looked + interval;
    const SimTime until = by_interval ? looked + interval : due;
    const SimTime nap =
        until == kNever ? kLongestNap : std::clamp<SimTime>(until - now(), 0, kLongestNap);
    const timespec timeout = {.tv_sec = 0, .tv_nsec = nap};
    const int heard = ::ppoll(watched.data(), by_interval ? 0 : watched.size(), &timeout, nullptr);
    if (heard > 0 && watched.back().revents != 0) {
      eventfd_t count = 0;
      (void)::eventfd_read(wake_.get(), &count);
    }
    const std::lock_guard lock(mutex_);
    looked = now();
    for (Host host = 0; host < hosts(); ++host) {
      if (by_interval || watched[static_cast<std::size_t>(host)].revents != 0) {
        take_from(host);
      }
    }
    fabric_.advance(now(), deliver);
    due = fabric_.next();
    interval = interval_;
  }
}

void EmulatedNetwork::take_from(Host host) {
  for (int count = 0; count < kBatch; ++count) {
    const ssize_t size = ::read(at(host).device(), room_.data(), room_.size());
    if (size <= 0) {
      return;
    }
    const auto bytes = std::span(room_).first(static_cast<std::size_t>(size));
    const std::optional<Packet> packet = read_packet(bytes, host, hosts());
    if (!packet) {
      continue;  // not for any host, as a kernel's multicast
    }
    if (!packet->shaped) {
      pass(packet->to, bytes);
      continue;
    }
    for (Packet& part : cut(*packet, bytes, fabric_.packets_at_once(host, packet->to))) {
      fabric_.accept(now(), std::move(part));
    }
  }
}

void EmulatedNetwork::pass(Host to, std::span<const std::byte> bytes) {
  if (::write(at(to).device(), bytes.data(), bytes.size()) < 0) {
    ++refused_;
  }
}

}  // namespace sotto::netlab
