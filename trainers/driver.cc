#include <sotto/trainers/driver.h>

#include <algorithm>
#include <string>
#include <utility>

#include <sotto/base/elapsed.h>

#include "internal/driver/exchange_carrier.h"
#include "internal/reporting/phases.h"

namespace sotto {
namespace {

using Clock = std::chrono::steady_clock;

auto find_edge(std::vector<LinkTraffic>& traffic, Rank to) {
  const auto edge = std::lower_bound(traffic.begin(), traffic.end(), to,
                                     [](const LinkTraffic& e, Rank rank) { return e.to < rank; });
  return edge != traffic.end() && edge->to == to ? edge : traffic.end();
}

}  // namespace

/// Adds the life of the object to the time in the algorithm, and tells the observer.
class Driver::Timed {
 public:
  Timed(Driver& driver, RunPhase phase, Round round)
      : driver_(driver), phase_(phase), round_(round), start_(Clock::now()) {}
  ~Timed() {
    const auto now = Clock::now();
    driver_.times_.algorithm_s += seconds_of(now - start_);
    if (shown_) {
      driver_.tell(phase_, round_, start_, now);
    }
  }
  Timed(const Timed&) = delete;
  Timed& operator=(const Timed&) = delete;

  /// Nothing was done that an observer wants to see.
  void hide() { shown_ = false; }

 private:
  Driver& driver_;
  RunPhase phase_;
  Round round_;
  Time start_;
  bool shown_ = true;
};

Status Driver::note_accelerator_fault(Status otherwise) {
  if (options_.accelerator != nullptr) {
    if (Status fault = options_.accelerator->status(); !fault.ok()) {
      return status_ = named(fault);
    }
  }
  return otherwise;
}

template <typename Work>
Status Driver::on_accelerator(const Work& work) {
  Status status;
  {
    const AcceleratorScope scope(options_.accelerator);
    status = work();
  }
  return note_accelerator_fault(std::move(status));
}

Driver::Driver(Algorithm& algorithm, Transport& transport, const DriverOptions& options)
    : algorithm_(algorithm),
      options_(options),
      observer_(internal::wanting_phases(options.observer)) {
  const Peers peers = algorithm.peers();
  for (const Rank peer : peers.to) {
    traffic_.push_back({options.rank, peer, 0, 0});
  }
  carrier_ = std::make_unique<internal::ExchangeCarrier>(
      transport, options_,
      internal::CarrierHandlers{
          .complete = [this](const Exchange& exchange) { return complete(exchange); },
          .failed = [this](Status status) { fail(std::move(status)); }});
}

Driver::~Driver() { carrier_->stop(); }

Status Driver::named(const Status& status) const {
  return internal::named_status(status, options_, algorithm_.round());
}

Status Driver::begin_round() {
  Lock lock(mutex_);
  if (Status status = wait_until(lock, [this] { return algorithm_.parameters_ready(); });
      !status.ok()) {
    return status;
  }
  return on_accelerator([&] {
    Result<bool> first = false;
    {
      Timed timed(*this, RunPhase::encode, algorithm_.round());
      algorithm_.begin_round();
      first = next_exchange(timed);
    }
    if (note_accelerator_fault().ok()) {
      status_ = start_exchanges(std::move(first));
      carry_here(lock);
    }
    return status_;
  });
}

Status Driver::gradient_ready(std::span<const float> gradient) {
  Lock lock(mutex_);
  if (Status status = wait_until(lock, [this] { return algorithm_.accepts_gradient(); });
      !status.ok()) {
    return status;
  }
  return on_accelerator([&] { return take_gradient(lock, gradient); });
}

void Driver::apply_settings() {
  if (options_.terms != nullptr) {
    options_.terms->stamp = next_settings_;
  }
}

std::vector<SettingsDifference> Driver::take_differences() {
  const Lock lock(mutex_);
  return options_.terms == nullptr ? std::vector<SettingsDifference>()
                                   : std::exchange(options_.terms->news, {});
}

std::vector<std::string> Driver::take_warnings() {
  const Lock lock(mutex_);
  return algorithm_.take_warnings();
}

Status Driver::take_gradient(Lock& lock, std::span<const float> gradient) {
  apply_settings();
  Result<bool> first = false;
  {
    const Timed timed(*this, RunPhase::encode, algorithm_.round());
    Status status = note_accelerator_fault(algorithm_.take_gradient(gradient));
    if (!status.ok()) {
      return status;
    }
    first = algorithm_.next_exchange(next_);
  }
  status_ = start_exchanges(std::move(first));
  carry_here(lock);
  return wait_until(lock, [this] { return algorithm_.parameters_ready(); });
}

Status Driver::gradient_part(std::size_t first, std::span<const float> part) {
  Lock lock(mutex_);
  const auto acceptable = [this] { return parts_ || algorithm_.accepts_gradient(); };
  if (Status status = wait_until(lock, acceptable); !status.ok()) {
    return status;
  }
  if (!parts_) {
    apply_settings();
  }
  return on_accelerator([&] {
    Status status;
    {
      const Timed timed(*this, RunPhase::encode, algorithm_.round());
      status = note_accelerator_fault(algorithm_.gradient_part(first, part));
    }
    if (status.ok()) {
      parts_ = true;
      status = status_ = carrier_->threaded() ? start_exchanges(next_exchange()) : status_;
    }
    return status;
  });
}

Status Driver::end_parts() {
  Lock lock(mutex_);
  parts_ = false;
  return on_accelerator([&] {
    if (status_.ok() && !carrier_->threaded()) {
      status_ = start_exchanges(next_exchange());
      carry_here(lock);
    }
    return wait_until(lock, [this] { return algorithm_.parameters_ready(); });
  });
}

Status Driver::drain() {
  Lock lock(mutex_);
  Status status = wait_until(lock, [this] { return under_way_ == 0; });
  if (options_.accelerator != nullptr) {
    const AcceleratorScope scope(options_.accelerator);
    static_cast<void>(options_.accelerator->finish());  // noted below
  }
  return note_accelerator_fault(status);
}

Status Driver::lost_neighbour(Rank awaited) {
  const Lock lock(mutex_);
  if (under_way_ > 0) {
    return {};
  }
  const Status lost = carrier_->lost_neighbour(awaited);
  return lost.ok() ? Status() : named(lost);
}

Status Driver::wait_until(Lock& lock, const std::function<bool()>& ready) {
  if (!status_.ok() || ready()) {
    return status_;
  }
  const auto start = Clock::now();
  const double encoded = times_.algorithm_s;
  const Round round = algorithm_.round();
  const auto done = [&] { return !status_.ok() || ready() || under_way_ == 0; };
  awaited_ = done;
  const Deadline never(Deadline::Clock::time_point::max(), &options_.interrupted);
  if (!sotto::wait_until(progress_, lock, never, done)) {
    status_ = internal::named_status({Fault::stopped, "stopped while waiting for its neighbours"},
                                     options_, round);
  }
  awaited_ = nullptr;
  check(!status_.ok() || ready(), "an algorithm that waits has an exchange under way");
  count_wait(start, encoded, round);
  return status_;
}

Result<bool> Driver::next_exchange() {
  Timed timed(*this, RunPhase::encode, algorithm_.round());
  return next_exchange(timed);
}

Result<bool> Driver::next_exchange(Timed& timed) {
  auto more = algorithm_.next_exchange(next_);
  if (more.ok() && !*more) {
    timed.hide();
  }
  return more;
}

Status Driver::start_exchanges(Result<bool> first) {
  for (auto more = std::move(first);; more = next_exchange()) {
    if (!more.ok() || !*more) {
      return more.status();
    }
    ++under_way_;
    count_sends(next_);
    // Where processors are few, the frame goes before the next is made. Beside a gradient that is
    // still computed it waits for its turn.
    if (Status status = carrier_->hand_over(next_, !parts_); !status.ok()) {
      return status;
    }
  }
}

void Driver::carry_here(Lock& lock) {
  if (carrier_->threaded() || under_way_ == 0 || !status_.ok()) {
    return;
  }
  const auto start = Clock::now();
  const double encoded = times_.algorithm_s;
  const Round round = algorithm_.round();
  lock.unlock();
  carrier_->carry();
  lock.lock();
  count_wait(start, encoded, round);
}

void Driver::count_wait(Time start, double encoded, Round round) {
  const auto now = Clock::now();
  times_.wait_s += std::max(0.0, seconds_of(now - start) - (times_.algorithm_s - encoded));
  tell(RunPhase::wait, round, start, now);
}

void Driver::tell(RunPhase phase, Round round, Time from, Time until) const {
  if (observer_ != nullptr) {
    observer_->phase({.node = options_.rank,
                      .phase = phase,
                      .carrier = carrier_->on_own_thread(),
                      .round = round,
                      .from = from,
                      .until = until});
  }
}

Status Driver::complete(const Exchange& exchange) {
  const Lock lock(mutex_);
  if (!status_.ok()) {
    return status_;  // the caller may have taken back its gradient
  }
  {
    const Timed timed(*this, RunPhase::decode, exchange.tag.round);
    if (Status status = algorithm_.complete(exchange); !status.ok()) {
      return status;
    }
  }
  --under_way_;
  Status status = start_exchanges(next_exchange());
  if (!status.ok()) {
    // At once: nothing may be under way any more, and the caller would take that for an end.
    status_ = note_accelerator_fault(status);
  }
  if (awaited_ && awaited_()) {
    progress_.notify_all();
  }
  return status;
}

void Driver::fail(Status status) {
  {
    const Lock lock(mutex_);
    if (status_.ok()) {
      status_ = note_accelerator_fault(std::move(status));
    }
    under_way_ = 0;
  }
  progress_.notify_all();
}

void Driver::count_sends(const Exchange& exchange) {
  for (const Send& send : exchange.sends) {
    const auto edge = find_edge(traffic_, send.to);
    check(edge != traffic_.end(), "an algorithm sends only to its peers");
    edge->bytes += send.frame.size();
    ++edge->frames;
  }
}

Status Driver::status() const {
  const Lock lock(mutex_);
  return status_;
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
  AlgorithmCounters counters = algorithm_.counters();
  if (options_.terms != nullptr) {
    counters.other_settings = options_.terms->differing_frames;
  }
  return counters;
}

}  // namespace sotto
