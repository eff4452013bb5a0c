#include <sotto/trainers/driver.h>

#include <algorithm>
#include <string>
#include <utility>

#include <fmt/format.h>

#include <sotto/base/start_threads.h>

namespace sotto {
namespace {

using Clock = std::chrono::steady_clock;

/// How long an exchange waits before somebody looks whether it can end at all; from then on the
/// pauses double.
constexpr std::chrono::milliseconds kFirstLook{25};
constexpr std::chrono::milliseconds kLongestLook{500};

double seconds(Clock::duration length) { return std::chrono::duration<double>(length).count(); }

std::uint64_t bytes_of(const Exchange& exchange) {
  std::uint64_t bytes = 0;
  for (const Send& send : exchange.sends) {
    bytes += send.frame.size();
  }
  return bytes;
}

auto find_edge(std::vector<LinkTraffic>& traffic, Rank to) {
  const auto edge = std::lower_bound(traffic.begin(), traffic.end(), to,
                                     [](const LinkTraffic& e, Rank rank) { return e.to < rank; });
  return edge != traffic.end() && edge->to == to ? edge : traffic.end();
}

/// Notes the frame that has come in its receive.
void note_frame(Exchange& exchange, const TransportEvent& event) {
  const auto receive = std::ranges::lower_bound(exchange.receives, event.peer, {}, &Receive::from);
  check(receive != exchange.receives.end() && receive->from == event.peer &&
            event.bytes <= receive->buffer.size(),
        "a transport reports only frames that were asked for");
  receive->bytes = event.bytes;
}

}  // namespace

/// Adds the life of the object to the time in the algorithm, and tells the observer.
class Driver::Timed {
 public:
  Timed(Driver& driver, RunPhase phase, Round round)
      : driver_(driver), phase_(phase), round_(round), start_(Clock::now()) {}
  ~Timed() {
    const auto now = Clock::now();
    driver_.times_.algorithm_s += seconds(now - start_);
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
      return status_ = named(fault, algorithm_.round());
    }
  }
  return otherwise;
}

Driver::Driver(Algorithm& algorithm, Transport& transport, const DriverOptions& options)
    : algorithm_(algorithm),
      transport_(transport),
      options_(options),
      observer_(options.observer != nullptr && options.observer->wants_phases() ? options.observer
                                                                                : nullptr) {
  const Peers peers = algorithm.peers();
  for (const Rank peer : peers.to) {
    traffic_.push_back({options.rank, peer, 0, 0});
  }
  if (options.overlap) {
    carrier_ = start_thread("communication", [this] { serve(); });
  }
}

Driver::~Driver() {
  {
    const std::lock_guard lock(outbox_mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  if (carrier_.joinable()) {
    transport_.interrupt();
    carrier_.join();
  }
}

Status Driver::begin_round() {
  Lock lock(mutex_);
  if (Status status = wait_until(lock, [this] { return algorithm_.parameters_ready(); });
      !status.ok()) {
    return status;
  }
  {
    const AcceleratorScope scope(options_.accelerator);
    Result<bool> first = false;
    {
      Timed timed(*this, RunPhase::encode, algorithm_.round());
      algorithm_.begin_round();
      first = algorithm_.next_exchange(next_);
      if (first.ok() && !*first) {
        timed.hide();
      }
    }
    if (note_accelerator_fault().ok()) {
      status_ = start_exchanges(std::move(first));
      carry_here(lock);
    }
  }
  return note_accelerator_fault(status_);
}

Status Driver::gradient_ready(std::span<const float> gradient) {
  Lock lock(mutex_);
  if (Status status = wait_until(lock, [this] { return algorithm_.accepts_gradient(); });
      !status.ok()) {
    return status;
  }
  Status status;
  {
    const AcceleratorScope scope(options_.accelerator);
    status = take_gradient(lock, gradient);
  }
  return note_accelerator_fault(std::move(status));
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
  Status status;
  {
    const AcceleratorScope scope(options_.accelerator);
    {
      const Timed timed(*this, RunPhase::encode, algorithm_.round());
      status = note_accelerator_fault(algorithm_.gradient_part(first, part));
    }
    if (status.ok()) {
      parts_ = true;
      status = status_ = carrier_.joinable() ? start_exchanges(pull()) : status_;
    }
  }
  return note_accelerator_fault(std::move(status));
}

Status Driver::end_parts() {
  Lock lock(mutex_);
  parts_ = false;
  Status status;
  {
    const AcceleratorScope scope(options_.accelerator);
    if (status_.ok() && !carrier_.joinable()) {
      status_ = start_exchanges(pull());
      carry_here(lock);
    }
    status = wait_until(lock, [this] { return algorithm_.parameters_ready(); });
  }
  return note_accelerator_fault(std::move(status));
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
  const std::lock_guard outbox_lock(outbox_mutex_);
  // One thread at a time polls.
  if (under_way_ > 0 || !idle_ || !outbox_.empty()) {
    return {};
  }
  for (auto event = transport_.poll(Deadline::after({})); event.ok();
       event = transport_.poll(Deadline::after({}))) {
    if (event->kind == TransportEvent::Kind::peer_lost) {
      lost_.emplace(event->peer, event->reason);
    }
  }
  const auto found = awaited == 0 && options_.rank != 0 ? lost_.begin() : lost_.find(awaited);
  return found == lost_.end() ? Status()
                              : named({Fault::peer_lost, fmt::format("node {} is lost: {}",
                                                                     found->first, found->second)},
                                      algorithm_.round());
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
    status_ = named({Fault::stopped, "stopped while waiting for its neighbours"}, round);
  }
  awaited_ = nullptr;
  check(!status_.ok() || ready(), "an algorithm that waits has an exchange under way");
  count_wait(start, encoded, round);
  return status_;
}

Result<bool> Driver::pull() {
  Timed timed(*this, RunPhase::encode, algorithm_.round());
  auto more = algorithm_.next_exchange(next_);
  if (more.ok() && !*more) {
    timed.hide();
  }
  return more;
}

Status Driver::start_exchanges(Result<bool> first) {
  for (auto more = std::move(first);; more = pull()) {
    if (!more.ok() || !*more) {
      return more.status();
    }
    hand_over();
    if (!carrier_.joinable()) {
      if (Status status = post(); !status.ok()) {
        return status;
      }
    }
  }
}

void Driver::hand_over() {
  ++under_way_;
  count_sends(next_);
  bool polling = false;
  bool called = false;
  {
    const std::lock_guard lock(outbox_mutex_);
    // Where something waits already, the carrier has been called.
    polling = !idle_ && outbox_.empty() && std::this_thread::get_id() != carrier_.get_id();
    called = polling || idle_;
    if (spare_.empty()) {
      spare_.emplace_back();
    }
    std::swap(spare_.front().exchange, next_);
    outbox_.splice(outbox_.end(), spare_, spare_.begin());
  }
  if (!carrier_.joinable()) {
    return;
  }
  if (polling) {
    transport_.interrupt();
  } else {
    wake_.notify_one();
  }
  if (called && !parts_) {
    // Where processors are few, the frame goes before the next is made. Beside a gradient that is
    // still computed it waits for its turn.
    std::this_thread::yield();
  }
}

void Driver::carry_here(Lock& lock) {
  if (carrier_.joinable() || under_way_ == 0 || !status_.ok()) {
    return;
  }
  const auto start = Clock::now();
  const double encoded = times_.algorithm_s;
  const Round round = algorithm_.round();
  lock.unlock();
  carry();
  lock.lock();
  count_wait(start, encoded, round);
}

void Driver::count_wait(Time start, double encoded, Round round) {
  const auto now = Clock::now();
  times_.wait_s += std::max(0.0, seconds(now - start) - (times_.algorithm_s - encoded));
  tell(RunPhase::wait, round, start, now);
}

void Driver::tell(RunPhase phase, Round round, Time from, Time until) const {
  if (observer_ != nullptr) {
    observer_->phase({.node = options_.rank,
                      .phase = phase,
                      .carrier = std::this_thread::get_id() == carrier_.get_id(),
                      .round = round,
                      .from = from,
                      .until = until});
  }
}

void Driver::tell_wire(const Carried& carried) const {
  if (observer_ != nullptr) {
    observer_->phase({.node = options_.rank,
                      .phase = RunPhase::wire,
                      .carrier = carrier_.joinable(),
                      .round = carried.exchange.tag.round,
                      .from = carried.posted,
                      .until = Clock::now(),
                      .bytes = bytes_of(carried.exchange),
                      .bucket = carried.exchange.tag.bucket});
  }
}

void Driver::serve() {
  for (;;) {
    {
      Lock lock(outbox_mutex_);
      idle_ = true;
      wake_.wait(lock, [this] { return stopping_ || !outbox_.empty(); });
      if (stopping_) {
        return;
      }
      idle_ = false;
    }
    carry();
  }
}

void Driver::carry() {
  Status status = carry_all();
  if (status.ok()) {
    return;
  }
  {
    const Lock lock(mutex_);
    if (status_.ok()) {
      status_ = note_accelerator_fault(std::move(status));
    }
    under_way_ = 0;
  }
  {
    const std::lock_guard lock(outbox_mutex_);
    outbox_.clear();
  }
  posted_.clear();
  progress_.notify_all();
}

Status Driver::carry_all() {
  deadline_ = patience();
  for (;;) {
    if (Status status = post(); !status.ok()) {
      return status;
    }
    if (posted_.empty()) {
      return {};
    }
    if (Status status = take_event(); !status.ok()) {
      return status;
    }
  }
}

Status Driver::post() {
  for (;;) {
    {
      const std::lock_guard lock(outbox_mutex_);
      if (outbox_.empty()) {
        return {};
      }
      posted_.splice(posted_.end(), outbox_, outbox_.begin());
    }
    Carried& next = posted_.back();
    if (observer_ != nullptr) {
      next.posted = Clock::now();
    }
    if (Status status = transport_.post(next.exchange); !status.ok()) {
      return named(status, next.exchange.tag.round);
    }
    deadline_ = patience();
  }
}

Deadline Driver::patience() const {
  return Deadline::after(options_.timeout, options_.overlap ? nullptr : &options_.interrupted);
}

Status Driver::take_event() {
  const Round round = posted_.front().exchange.tag.round;
  auto event = await_event(round);
  if (!event.ok()) {
    return event.status();
  }
  switch (event->kind) {
    case TransportEvent::Kind::interrupted: {
      const std::lock_guard lock(outbox_mutex_);
      return stopping_ ? Status(Fault::deadline, "the run was given up") : Status();
    }
    case TransportEvent::Kind::frame:
      note_frame(find(event->tag)->exchange, *event);
      break;
    case TransportEvent::Kind::exchange_done:
      if (Status status = deliver(find(event->tag)); !status.ok()) {
        return status;
      }
      break;
    case TransportEvent::Kind::peer_lost: {
      const std::lock_guard lock(outbox_mutex_);
      lost_.emplace(event->peer, event->reason);
    }
      // A peer that has played its part may have ended its run.
      if (event->needed) {
        return named(
            {Fault::peer_lost, fmt::format("node {} is lost: {}", event->peer, event->reason)},
            round);
      }
      break;
  }
  deadline_ = patience();
  return {};
}

Result<TransportEvent> Driver::await_event(Round round) {
  const auto of_here = [&](Result<TransportEvent> event) {
    return event.ok() ? std::move(event) : Result<TransportEvent>(named(event.status(), round));
  };
  if (!options_.wait_fault) {
    return of_here(transport_.poll(deadline_));
  }
  for (auto pause = kFirstLook;; pause = std::min(2 * pause, kLongestLook)) {
    const bool last = deadline_.left() <= pause;
    auto event = transport_.poll(deadline_.or_after(pause));
    if (last || event.ok() || event.status().fault() != Fault::deadline) {
      return of_here(std::move(event));
    }
    if (Status cause = options_.given_up ? options_.given_up() : Status(); !cause.ok()) {
      return cause;
    }
    if (Status status = options_.wait_fault(missing()); !status.ok()) {
      return named(status, round);
    }
  }
}

std::vector<Rank> Driver::missing() const {
  std::vector<Rank> missing;
  for (const Carried& carried : posted_) {
    for (const Receive& due : carried.exchange.receives) {
      if (due.bytes == 0) {
        missing.push_back(due.from);
      }
    }
  }
  std::ranges::sort(missing);
  missing.erase(std::unique(missing.begin(), missing.end()), missing.end());
  return missing;
}

Driver::Load::iterator Driver::find(const ExchangeTag& tag) {
  const auto found = std::find_if(posted_.begin(), posted_.end(), [&](const Carried& carried) {
    return carried.exchange.tag == tag;
  });
  check(found != posted_.end(), "a transport reports only exchanges that are under way");
  return found;
}

Status Driver::named(const Status& status, Round round) const {
  // A deadline names the round itself, of the oldest exchange that is not done.
  return naming_timeout(status, options_.timeout)
      .with_context(status.fault() == Fault::deadline
                        ? fmt::format("node {}", options_.rank)
                        : fmt::format("node {}, round {}", options_.rank, round));
}

Status Driver::deliver(Load::iterator done) {
  tell_wire(*done);
  const Lock lock(mutex_);
  if (!status_.ok()) {
    return status_;  // the caller may have taken back its gradient
  }
  {
    const Timed timed(*this, RunPhase::decode, done->exchange.tag.round);
    if (Status status = algorithm_.complete(done->exchange); !status.ok()) {
      return status;
    }
  }
  --under_way_;
  {
    const std::lock_guard outbox_lock(outbox_mutex_);
    spare_.splice(spare_.end(), posted_, done);
  }
  Status status = start_exchanges(pull());
  if (!status.ok()) {
    // At once: nothing may be under way any more, and the caller would take that for an end.
    status_ = note_accelerator_fault(status);
  }
  if (awaited_ && awaited_()) {
    progress_.notify_all();
  }
  return status;
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
