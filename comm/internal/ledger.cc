#include "ledger.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include <sotto/base/check.h>
#include <sotto/base/frame.h>

#include "fault_text.h"

namespace sotto::internal {

Ledger::Ledger(const TransportOptions& options)
    : to_(options.to), from_(options.from), max_frame_bytes_(options.max_frame_bytes) {}

bool Ledger::Open::sends_to(Rank peer) const {
  return std::find(unsent.begin(), unsent.end(), peer) != unsent.end();
}

bool Ledger::Open::hears(Rank peer) const {
  return std::any_of(unreceived.begin(), unreceived.end(),
                     [&](const Receive& receive) { return receive.from == peer; });
}

void Ledger::check_fits(const Exchange& exchange) {
  Rank before = -1;
  for (const Send& send : exchange.sends) {
    check(send.to > before, "an exchange's sends are sorted, one a peer");
    check(std::binary_search(to_.begin(), to_.end(), send.to), "a send goes to a declared peer");
    check(send.frame.size() >= kFrameHeaderBytes && send.frame.size() <= max_frame_bytes_,
          "a frame is at most as long as declared");
    check(find_send(send.to, exchange.tag) == open_.end(), "a frame is sent once");
    before = send.to;
  }
  before = -1;
  for (const Receive& receive : exchange.receives) {
    check(receive.from > before, "an exchange's receives are sorted, one a peer");
    check(std::binary_search(from_.begin(), from_.end(), receive.from),
          "a receive is from a declared peer");
    check(receive.buffer.size() >= kFrameHeaderBytes, "a receive has room for a frame");
    check(find_receive(receive.from, exchange.tag) == open_.end(), "a frame is received once");
    before = receive.from;
  }
}

Status Ledger::open(const Exchange& exchange) {
  check_fits(exchange);
  Open opened{.tag = exchange.tag, .unsent = {}, .unreceived = exchange.receives};
  for (const Send& send : exchange.sends) {
    opened.unsent.push_back(send.to);
  }
  for (const auto& [peer, reason] : lost_) {
    if (opened.sends_to(peer) || opened.hears(peer)) {
      return {Fault::peer_lost, fmt::format("node {} is lost: {}", peer, reason)};
    }
  }
  for (const Receive& receive : exchange.receives) {
    Round& last = last_round_[receive.from];
    last = std::max(last, exchange.tag.round);
  }
  open_.push_back(std::move(opened));
  finish_if_done(open_.end() - 1);
  return {};
}

Ledger::OpenExchange Ledger::find_receive(Rank from, const ExchangeTag& tag) {
  return std::find_if(open_.begin(), open_.end(), [&](const Open& exchange) {
    return exchange.tag == tag && exchange.hears(from);
  });
}

Ledger::OpenExchange Ledger::find_send(Rank to, const ExchangeTag& tag) {
  return std::find_if(open_.begin(), open_.end(), [&](const Open& exchange) {
    return exchange.tag == tag && exchange.sends_to(to);
  });
}

std::optional<std::span<std::byte>> Ledger::room(Rank from, const ExchangeTag& tag) const {
  for (const Open& exchange : open_) {
    if (exchange.tag != tag) {
      continue;
    }
    for (const Receive& receive : exchange.unreceived) {
      if (receive.from == from) {
        return receive.buffer;
      }
    }
  }
  return std::nullopt;
}

bool Ledger::stale(Rank from, const ExchangeTag& tag) const {
  const auto last = last_round_.find(from);
  return last != last_round_.end() && tag.round < last->second;
}

void Ledger::received(Rank from, const ExchangeTag& tag, std::size_t bytes) {
  const auto exchange = find_receive(from, tag);
  check(exchange != open_.end(), "a received frame was awaited");
  std::erase_if(exchange->unreceived, [&](const Receive& receive) { return receive.from == from; });
  events_.push_back({.kind = TransportEvent::Kind::frame,
                     .tag = tag,
                     .peer = from,
                     .bytes = bytes,
                     .reason = {}});
  finish_if_done(exchange);
}

void Ledger::sent(Rank to, const ExchangeTag& tag) {
  const auto exchange = find_send(to, tag);
  check(exchange != open_.end(), "a sent frame was due");
  std::erase(exchange->unsent, to);
  finish_if_done(exchange);
}

void Ledger::finish_if_done(OpenExchange exchange) {
  if (!exchange->done()) {
    return;
  }
  events_.push_back({.kind = TransportEvent::Kind::exchange_done,
                     .tag = exchange->tag,
                     .peer = -1,
                     .bytes = 0,
                     .reason = {}});
  open_.erase(exchange);
}

void Ledger::lose(Rank peer, const std::string& reason) {
  const auto [at, first] = lost_.try_emplace(peer, reason);
  if (first) {
    events_.push_back({.kind = TransportEvent::Kind::peer_lost,
                       .tag = {},
                       .peer = peer,
                       .bytes = 0,
                       .reason = at->second,
                       .needed = needs(peer)});
  }
}

bool Ledger::awaits(Rank from) const {
  return std::any_of(open_.begin(), open_.end(),
                     [&](const Open& exchange) { return exchange.hears(from); });
}

bool Ledger::owes(Rank to) const {
  return std::any_of(open_.begin(), open_.end(),
                     [&](const Open& exchange) { return exchange.sends_to(to); });
}

TransportEvent Ledger::take_event() {
  check(has_event(), "an event is taken only when there is one");
  TransportEvent event = std::move(events_.front());
  events_.pop_front();
  return event;
}

Status Ledger::overdue(const Deadline& deadline) const {
  const Fault fault = deadline.fault();
  if (open_.empty()) {
    return {fault, "nothing happened: no exchange is under way"};
  }
  const Open& oldest = open_.front();
  std::string message = fault == Fault::stopped ? "stopped while waiting in " : "";
  message += describe(oldest.tag) + ":";
  if (!oldest.unreceived.empty()) {
    std::vector<Rank> silent;
    for (const Receive& receive : oldest.unreceived) {
      silent.push_back(receive.from);
    }
    message += fmt::format(" no frame yet from {}", list_ranks(silent));
  }
  if (!oldest.unsent.empty()) {
    message += fmt::format("{} frames not yet taken by {}", oldest.unreceived.empty() ? "" : ";",
                           list_ranks(oldest.unsent));
  }
  return {fault, message};
}

}  // namespace sotto::internal
