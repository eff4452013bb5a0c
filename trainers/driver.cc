#include <sotto/trainers/driver.h>

#include <algorithm>
#include <string>

#include <fmt/format.h>

namespace sotto {
namespace {

using Clock = std::chrono::steady_clock;

/// The carrier looks this often whether it should stop.
constexpr std::chrono::milliseconds kSlice{100};

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// Adds the life of the object to `total`.
class Timed {
 public:
  explicit Timed(double& total) : total_(total), start_(Clock::now()) {}
  ~Timed() { total_ += seconds_since(start_); }
  Timed(const Timed&) = delete;
  Timed& operator=(const Timed&) = delete;

 private:
  double& total_;
  Clock::time_point start_;
};

auto find_edge(std::vector<LinkTraffic>& traffic, Rank to) {
  const auto edge = std::lower_bound(traffic.begin(), traffic.end(), to,
                                     [](const LinkTraffic& e, Rank rank) { return e.to < rank; });
  return edge != traffic.end() && edge->to == to ? edge : traffic.end();
}

}  // namespace

Driver::Driver(Algorithm& algorithm, Transport& transport, const DriverOptions& options)
    : algorithm_(algorithm), transport_(transport), options_(options) {
  const Peers peers = algorithm.peers();
  for (const Rank peer : peers.to) {
    traffic_.push_back({options.rank, peer, 0, 0});
  }
  arrived_.reserve(peers.from.size());
  if (options.overlap) {
    carrier_ = std::thread([this] { serve(); });
  }
}

Driver::~Driver() {
  {
    const Lock lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  if (carrier_.joinable()) {
    carrier_.join();
  }
}

Status Driver::begin_round() {
  Lock lock(mutex_);
  if (Status status = wait_until(lock, [this] { return algorithm_.parameters_ready(); });
      !status.ok()) {
    return status;
  }
  bool post = false;
  {
    const Timed timed(times_.encode_s);
    post = algorithm_.begin_round(next_);
  }
  if (post) {
    start_exchange(lock);
  }
  return status_;
}

Status Driver::gradient_ready(std::span<const float> gradient) {
  Lock lock(mutex_);
  if (Status status = wait_until(lock, [this] { return algorithm_.accepts_gradient(); });
      !status.ok()) {
    return status;
  }
  bool post = false;
  {
    const Timed timed(times_.encode_s);
    if (Status status = algorithm_.gradient_ready(gradient, next_, &post); !status.ok()) {
      return status;
    }
  }
  if (post) {
    start_exchange(lock);
  }
  return wait_until(lock, [this] { return algorithm_.parameters_ready(); });
}

Status Driver::drain() {
  Lock lock(mutex_);
  return wait_until(lock, [this] { return !under_way_; });
}

Status Driver::wait_until(Lock& lock, const std::function<bool()>& ready) {
  if (!status_.ok() || ready()) {
    return status_;
  }
  const auto start = Clock::now();
  const double encoded = times_.encode_s;
  progress_.wait(lock, [&] { return !status_.ok() || ready() || !under_way_; });
  check(!status_.ok() || ready(), "an algorithm that waits has an exchange under way");
  times_.wait_s += std::max(0.0, seconds_since(start) - (times_.encode_s - encoded));
  return status_;
}

void Driver::start_exchange(Lock& lock) {
  check(!under_way_, "one exchange at a time");
  std::swap(current_, next_);
  under_way_ = true;
  count_sends();
  if (carrier_.joinable()) {
    wake_.notify_one();
    return;
  }
  const auto start = Clock::now();
  const double encoded = times_.encode_s;
  carry(lock);
  times_.wait_s += std::max(0.0, seconds_since(start) - (times_.encode_s - encoded));
}

void Driver::serve() {
  Lock lock(mutex_);
  while (true) {
    wake_.wait(lock, [this] { return stopping_ || under_way_; });
    if (stopping_) {
      return;
    }
    carry(lock);
  }
}

void Driver::carry(Lock& lock) {
  while (under_way_) {
    lock.unlock();
    Status status = exchange();
    lock.lock();
    under_way_ = false;
    if (status.ok()) {
      status = deliver();
    }
    if (!status.ok()) {
      status_ = std::move(status);
      under_way_ = false;
    }
    progress_.notify_all();
  }
}

Status Driver::exchange() {
  const Status status = post_and_wait();
  // A deadline names the round itself, of the oldest exchange that is not done.
  return status.with_context(
      status.fault() == Fault::deadline
          ? fmt::format("node {}", options_.rank)
          : fmt::format("node {}, round {}", options_.rank, current_.tag.round));
}

Status Driver::post_and_wait() {
  arrived_.clear();
  if (Status status = transport_.post(current_); !status.ok()) {
    return status;
  }
  auto deadline = Deadline::after(options_.timeout);
  while (true) {
    auto event = transport_.poll(deadline.left() < kSlice ? deadline : Deadline::after(kSlice));
    if (!event.ok()) {
      const bool patient = event.status().fault() == Fault::deadline && !deadline.expired();
      if (patient && !stopping_) {
        continue;
      }
      return event.status();
    }
    switch (event->kind) {
      case TransportEvent::Kind::frame:
        arrived_.push_back({event->peer, event->bytes});
        break;
      case TransportEvent::Kind::exchange_done:
        return {};
      case TransportEvent::Kind::peer_lost:
        // A peer that has played its part may have ended its run.
        if (event->needed) {
          return {Fault::peer_lost, fmt::format("node {} is lost: {}", event->peer, event->reason)};
        }
        break;
    }
    deadline = Deadline::after(options_.timeout);
  }
}

Status Driver::deliver() {
  const Timed timed(times_.encode_s);
  for (const Arrival& arrival : arrived_) {
    const auto room = std::find_if(current_.receives.begin(), current_.receives.end(),
                                   [&](const Receive& r) { return r.from == arrival.from; });
    check(room != current_.receives.end() && arrival.bytes <= room->buffer.size(),
          "a transport reports only frames that were asked for");
    Status status = algorithm_.frame_arrived(arrival.from, room->buffer.first(arrival.bytes));
    if (!status.ok()) {
      return status;
    }
  }
  auto more = algorithm_.exchange_done(next_);
  if (!more.ok()) {
    return more.status();
  }
  if (*more) {
    std::swap(current_, next_);
    under_way_ = true;
    count_sends();
  }
  return {};
}

void Driver::count_sends() {
  for (const Send& send : current_.sends) {
    const auto edge = find_edge(traffic_, send.to);
    check(edge != traffic_.end(), "an algorithm sends only to its peers");
    edge->bytes += send.frame.size();
    ++edge->frames;
  }
}

std::vector<LinkTraffic> Driver::traffic() const {
  const Lock lock(mutex_);
  return traffic_;
}

DriverTimes Driver::times() const {
  const Lock lock(mutex_);
  return times_;
}

AlgorithmCounters Driver::counters() const {
  const Lock lock(mutex_);
  return algorithm_.counters();
}

}  // namespace sotto
