#include "lab.h"

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

SimTime now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

/// Packets do not wait for the programs whose packets they are.
void hurry() {
  ::prctl(PR_SET_TIMERSLACK, 1UL);
  sched_param priority = {};
  priority.sched_priority = 10;
  // Where it is not allowed, calibration tells whether the switch comes too late.
  (void)::sched_setscheduler(0, SCHED_FIFO, &priority);
}

std::vector<NetworkNamespace> make_namespaces(const LabOptions& options) {
  std::vector<NetworkNamespace> made;
  made.reserve(static_cast<std::size_t>(options.hosts));
  for (Host host = 0; host < options.hosts; ++host) {
    made.emplace_back(host, options.large_pieces, options.free_net);
  }
  return made;
}

}  // namespace

Lab::Lab(const LabOptions& options)
    : namespaces_(make_namespaces(options)),
      room_(kLargestPacket),
      fabric_(options.hosts, kQueueBytes, options.seed),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      thread_([this] { serve(); }) {}

Lab::~Lab() {
  stopping_ = true;
  (void)::eventfd_write(wake_.get(), 1);
  thread_.join();
}

void Lab::set_link(Host from, Host to, const LinkShape& shape) {
  {
    const std::lock_guard lock(mutex_);
    fabric_.set_link(now(), from, to, shape);
  }
  (void)::eventfd_write(wake_.get(), 1);
}

void Lab::set_host(Host host, double up, double down) {
  const std::lock_guard lock(mutex_);
  fabric_.set_host(host, up, down);
}

Carried Lab::carried(Host from, Host to) const {
  const std::lock_guard lock(mutex_);
  return fabric_.carried(from, to);
}

bool Lab::idle() const {
  const std::lock_guard lock(mutex_);
  return fabric_.next() == kNever;
}

std::uint64_t Lab::carried() const {
  const std::lock_guard lock(mutex_);
  std::uint64_t sum = 0;
  for (Host from = 0; from < hosts(); ++from) {
    for (Host to = 0; to < hosts(); ++to) {
      sum += fabric_.carried(from, to).bytes;
    }
  }
  return sum;
}

std::uint64_t Lab::dropped() const {
  const std::lock_guard lock(mutex_);
  std::uint64_t sum = refused_;
  for (Host from = 0; from < hosts(); ++from) {
    for (Host to = 0; to < hosts(); ++to) {
      sum += fabric_.carried(from, to).dropped;
    }
  }
  return sum;
}

void Lab::serve() {
  hurry();
  std::vector<pollfd> watched;
  for (const NetworkNamespace& host : namespaces_) {
    watched.push_back({.fd = host.device(), .events = POLLIN, .revents = 0});
  }
  watched.push_back({.fd = wake_.get(), .events = POLLIN, .revents = 0});
  const Fabric::Deliver deliver = [this](const Packet& packet) { pass(packet); };
  SimTime due = 0;
  while (!stopping_) {
    const SimTime nap =
        std::clamp<SimTime>(due == kNever ? kLongestNap : due - now(), 0, kLongestNap);
    const timespec timeout = {.tv_sec = 0, .tv_nsec = nap};
    (void)::ppoll(watched.data(), watched.size(), &timeout, nullptr);
    if (watched.back().revents != 0) {
      eventfd_t count = 0;
      (void)::eventfd_read(wake_.get(), &count);
    }
    const std::lock_guard lock(mutex_);
    for (Host host = 0; host < hosts(); ++host) {
      if (watched[static_cast<std::size_t>(host)].revents != 0) {
        take_from(host);
      }
    }
    fabric_.advance(now(), deliver);
    due = fabric_.next();
  }
}

void Lab::take_from(Host host) {
  for (int count = 0; count < kBatch; ++count) {
    const ssize_t size = ::read(at(host).device(), room_.data(), room_.size());
    if (size <= 0) {
      return;
    }
    const auto bytes = std::span(room_).first(static_cast<std::size_t>(size));
    std::optional<Packet> packet = read_packet(bytes, host, hosts());
    if (!packet) {
      continue;  // not for any host, as a kernel's multicast
    }
    packet->bytes.assign(bytes.begin(), bytes.end());
    if (packet->shaped) {
      fabric_.accept(now(), std::move(*packet));
    } else {
      pass(*packet);
    }
  }
}

void Lab::pass(const Packet& packet) {
  if (::write(at(packet.to).device(), packet.bytes.data(), packet.bytes.size()) < 0) {
    ++refused_;
  }
}

}  // namespace sotto::netlab
