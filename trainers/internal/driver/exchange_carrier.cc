#include "exchange_carrier.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include <fmt/format.h>

#include <sotto/base/check.h>
#include <sotto/base/start_threads.h>

#include "../reporting/phases.h"

namespace sotto::internal {
namespace {

/// How long an exchange waits before somebody looks whether it can end at all; from then on the
/// pauses double.
constexpr std::chrono::milliseconds kFirstLook{25};
constexpr std::chrono::milliseconds kLongestLook{500};

std::uint64_t bytes_of(const Exchange& exchange) {
  std::uint64_t bytes = 0;
  for (const Send& send : exchange.sends) {
    bytes += send.frame.size();
  }
  return bytes;
}

/// Notes the frame that has come in its receive.
void note_frame(Exchange& exchange, const TransportEvent& event) {
  const auto receive = std::ranges::lower_bound(exchange.receives, event.peer, {}, &Receive::from);
  check(receive != exchange.receives.end() && receive->from == event.peer &&
            event.bytes <= receive->buffer.size(),
        "a transport reports only frames that were asked for");
  receive->bytes = event.bytes;
}

Status lost_status(Rank peer, const std::string& reason) {
  return {Fault::peer_lost, fmt::format("node {} is lost: {}", peer, reason)};
}

}  // namespace

Status named_status(const Status& status, const DriverOptions& options, Round round) {
  // A deadline names the round itself, of the oldest exchange that is not done.
  return naming_timeout(status, options.timeout)
      .with_context(status.fault() == Fault::deadline
                        ? fmt::format("node {}", options.rank)
                        : fmt::format("node {}, round {}", options.rank, round));
}

ExchangeCarrier::ExchangeCarrier(Transport& transport, const DriverOptions& options,
                                 CarrierHandlers handlers)
    : transport_(transport),
      options_(options),
      handlers_(std::move(handlers)),
      observer_(wanting_phases(options.observer)) {
  if (options.overlap) {
    thread_ = start_thread("communication", [this] { serve(); });
  }
}

void ExchangeCarrier::stop() {
  {
    const Lock lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  if (threaded()) {
    transport_.interrupt();
    thread_.join();
  }
}

Status ExchangeCarrier::hand_over(Exchange& exchange, bool yield) {
  bool polling = false;
  bool called = false;
  {
    const Lock lock(mutex_);
    // Where something waits already, the thread has been called.
    polling = !idle_ && outbox_.empty() && !on_own_thread();
    called = polling || idle_;
    if (spare_.empty()) {
      spare_.emplace_back();
    }
    std::swap(spare_.front().exchange, exchange);
    outbox_.splice(outbox_.end(), spare_, spare_.begin());
  }
  if (!threaded()) {
    return post();
  }
  if (polling) {
    transport_.interrupt();
  } else {
    wake_.notify_one();
  }
  if (called && yield) {
    std::this_thread::yield();
  }
  return {};
}

Status ExchangeCarrier::lost_neighbour(Rank awaited) {
  const Lock lock(mutex_);
  // One thread at a time polls.
  if (!idle_ || !outbox_.empty()) {
    return {};
  }
  for (auto event = transport_.poll(Deadline::after({})); event.ok();
       event = transport_.poll(Deadline::after({}))) {
    if (event->kind == TransportEvent::Kind::peer_lost) {
      lost_.emplace(event->peer, event->reason);
    }
  }
  const auto found = awaited == 0 && options_.rank != 0 ? lost_.begin() : lost_.find(awaited);
  return found == lost_.end() ? Status() : lost_status(found->first, found->second);
}

void ExchangeCarrier::serve() {
  for (;;) {
    {
      Lock lock(mutex_);
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

void ExchangeCarrier::carry() {
  Status status = carry_all();
  if (status.ok()) {
    return;
  }
  // First the owner knows; it then hands over nothing more.
  handlers_.failed(std::move(status));
  {
    const Lock lock(mutex_);
    outbox_.clear();
  }
  posted_.clear();
}

Status ExchangeCarrier::carry_all() {
  deadline_ = patience();
  for (;;) {
    if (Status status = post(); !status.ok()) {
      return status;
    }
    if (posted_.empty()) {
      return {};
    }
    if (Status status = handle_event(); !status.ok()) {
      return status;
    }
  }
}

Status ExchangeCarrier::post() {
  for (;;) {
    {
      const Lock lock(mutex_);
      if (outbox_.empty()) {
        return {};
      }
      posted_.splice(posted_.end(), outbox_, outbox_.begin());
    }
    Carried& next = posted_.back();
    if (observer_ != nullptr) {
      next.posted = PhaseSpan::Time::clock::now();
    }
    if (Status status = transport_.post(next.exchange); !status.ok()) {
      return named_status(status, options_, next.exchange.tag.round);
    }
    deadline_ = patience();
  }
}

Deadline ExchangeCarrier::patience() const {
  return Deadline::after(options_.timeout, options_.overlap ? nullptr : &options_.interrupted);
}

Status ExchangeCarrier::handle_event() {
  const Round round = posted_.front().exchange.tag.round;
  auto event = await_event(round);
  if (!event.ok()) {
    return event.status();
  }
  switch (event->kind) {
    case TransportEvent::Kind::interrupted: {
      const Lock lock(mutex_);
      return stopping_ ? Status(Fault::deadline, "the run was given up") : Status();
    }
    case TransportEvent::Kind::frame:
      note_frame(find(event->tag)->exchange, *event);
      break;
    case TransportEvent::Kind::exchange_done:
      if (Status status = complete(find(event->tag)); !status.ok()) {
        return status;
      }
      break;
    case TransportEvent::Kind::peer_lost:
      note_lost(*event);
      // A peer that has played its part may have ended its run.
      if (event->needed) {
        return named_status(lost_status(event->peer, event->reason), options_, round);
      }
      break;
  }
  deadline_ = patience();
  return {};
}

Result<TransportEvent> ExchangeCarrier::await_event(Round round) {
  const auto of_here = [&](Result<TransportEvent> event) {
    return event.ok() ? std::move(event)
                      : Result<TransportEvent>(named_status(event.status(), options_, round));
  };
  if (!options_.wait_fault && !options_.given_up) {
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
    const Status status = options_.wait_fault ? options_.wait_fault(missing()) : Status();
    if (!status.ok()) {
      return named_status(status, options_, round);
    }
  }
}

Status ExchangeCarrier::complete(Exchanges::iterator done) {
  tell_wire(*done);
  Exchanges given;
  given.splice(given.end(), posted_, done);
  Status status = handlers_.complete(given.front().exchange);
  const Lock lock(mutex_);
  spare_.splice(spare_.end(), given);
  return status;
}

std::vector<Rank> ExchangeCarrier::missing() const {
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

ExchangeCarrier::Exchanges::iterator ExchangeCarrier::find(const ExchangeTag& tag) {
  const auto found = std::find_if(posted_.begin(), posted_.end(), [&](const Carried& carried) {
    return carried.exchange.tag == tag;
  });
  check(found != posted_.end(), "a transport reports only exchanges that are under way");
  return found;
}

void ExchangeCarrier::note_lost(const TransportEvent& event) {
  const Lock lock(mutex_);
  lost_.emplace(event.peer, event.reason);
}

void ExchangeCarrier::tell_wire(const Carried& carried) const {
  if (observer_ != nullptr) {
    observer_->phase({.node = options_.rank,
                      .phase = RunPhase::wire,
                      .carrier = threaded(),
                      .round = carried.exchange.tag.round,
                      .from = carried.posted,
                      .until = PhaseSpan::Time::clock::now(),
                      .bytes = bytes_of(carried.exchange),
                      .bucket = carried.exchange.tag.bucket});
  }
}

}  // namespace sotto::internal
