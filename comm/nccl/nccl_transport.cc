#include "nccl_transport.h"

#include <algorithm>
#include <chrono>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <sotto/base/frame.h>
#include <sotto/base/start_threads.h>

#include "../internal/backends.h"
#include "../internal/neighbours.h"
#include "../internal/waits.h"

namespace sotto::internal {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

/// Pause between two looks at a group under way: about the time of a frame of a megabyte.
constexpr microseconds kShortestWatch{20};
constexpr microseconds kLongestWatch{1000};
/// Nothing is under way: posts and notices end the wait.
constexpr std::chrono::seconds kIdleWatch{1};
/// NCCL tells that it failed, a control link that a process ended, in any order.
constexpr milliseconds kBlamePatience{500};
/// A peer that left, or gave up, has done its part of this; NCCL may still be moving ours.
constexpr milliseconds kEndPatience{5000};

/// Time for the device to notice an abort, after which the memory is given back.
constexpr milliseconds kQuietPatience{2000};

/// Moves news of peers that gave up because of another peer to the end, so that the culprit is
/// named where both are heard of. The news of each peer keep their order.
std::vector<News> culprits_first(std::vector<News> all) {
  std::set<Rank> followers;
  for (const News& news : all) {
    if (news.notice && news.notice->kind == Notice::Kind::aborted &&
        news.notice->cause != news.peer) {
      followers.insert(news.peer);
    }
  }
  std::stable_partition(all.begin(), all.end(),
                        [&](const News& news) { return !followers.contains(news.peer); });
  return all;
}

}  // namespace

NcclTransport::NcclTransport(std::unique_ptr<TransportOptions> options, NcclLinks links)
    : options_(std::move(options)), links_(std::move(links)), ledger_(*options_) {
  for (const Rank peer : neighbours(*options_)) {
    peers_[peer];
  }
  if (links_.carrier != nullptr) {
    thread_ = start_thread("NCCL", [this] { run(); });
  }
}

NcclTransport::~NcclTransport() {
  if (!thread_.joinable()) {
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  links_.control->wake();
  thread_.join();
}

Status NcclTransport::post(const Exchange& exchange) {
  {
    const std::lock_guard lock(mutex_);
    if (auto opened = ledger_.open(exchange); !opened) {
      return opened;
    }
    if (exchange.sends.empty() && exchange.receives.empty()) {
      return {};
    }
    posted_.push_back(exchange);
  }
  links_.control->wake();
  return {};
}

Result<TransportEvent> NcclTransport::poll(Deadline deadline) {
  std::unique_lock lock(mutex_);
  if (!wait_until(changed_, lock, deadline, [&] { return ledger_.has_event() || interrupted_; })) {
    return ledger_.overdue(deadline);
  }
  if (ledger_.has_event()) {
    return ledger_.take_event();
  }
  interrupted_ = false;
  return interruption();
}

void NcclTransport::interrupt() {
  {
    const std::lock_guard lock(mutex_);
    interrupted_ = true;
  }
  changed_.notify_all();
}

void NcclTransport::run() {
  if (auto status = links_.device->use(); !status.ok()) {
    broken_ = Broken{status.message(), Deadline::after({})};
  }
  for (const News& news : std::exchange(links_.early, {})) {
    hear(news);
  }
  bool moved = true;
  for (;;) {
    for (const News& news : culprits_first(links_.control->wait(pause(moved)))) {
      hear(news);
      look_for_missing();  // now, so that the first to be heard of is the one that is blamed
    }
    take_posted();
    look_for_missing();
    moved = carry();
    acknowledge();
    if (leaving_ && may_go()) {
      break;
    }
  }
  links_.carrier->stop(Deadline::after(kQuietPatience));
}

NcclTransport::Duration NcclTransport::pause(bool moved) {
  const bool busy = leaving_ || broken_ || links_.carrier->under_way();
  if (moved || !busy) {
    pause_ = kShortestWatch;
    return moved ? Duration{} : Duration(kIdleWatch);
  }
  return std::exchange(pause_, std::min<Duration>(2 * pause_, kLongestWatch));
}

void NcclTransport::take_posted() {
  std::deque<Exchange> posted;
  bool closing = false;
  {
    const std::lock_guard lock(mutex_);
    posted.swap(posted_);
    closing = closing_;
  }
  for (Exchange& exchange : posted) {
    if (given_up_) {
      continue;
    }
    for (const Send& send : exchange.sends) {
      if (!peers_.at(send.to).lost) {
        links_.control->tell(send.to, {.kind = Notice::Kind::frame, .bytes = send.frame.size()});
      }
    }
    links_.carrier->add(std::move(exchange));
  }
  for (const auto& [rank, peer] : peers_) {
    if (peer.lost) {
      links_.carrier->drop(rank);
    }
  }
  if (closing && !leaving_) {
    begin_to_leave();
  }
}

void NcclTransport::begin_to_leave() {
  leaving_ = closing_deadline(*options_);
  for (const auto& [rank, peer] : peers_) {
    links_.control->tell(
        rank, {.kind = Notice::Kind::leaving, .counts = links_.carrier->committed(rank)});
  }
}

bool NcclTransport::may_go() {
  if (given_up_ || leaving_->expired()) {
    return true;
  }
  const bool taken = std::ranges::all_of(peers_, [&](const auto& entry) {
    const Peer& peer = entry.second;
    return peer.lost || peer.patience || peer.taken >= links_.carrier->done(entry.first).sent;
  });
  if (!links_.carrier->idle() || !taken) {
    return false;
  }
  const auto flushed = links_.carrier->flush();
  return !flushed.ok() || *flushed;
}

void NcclTransport::hear(const News& news) {
  Peer& peer = peers_.at(news.peer);
  const auto begin_patience = [&] {
    if (!peer.patience) {
      peer.patience = Deadline::after(kEndPatience);
    }
  };
  if (!news.notice) {
    if (peer.left) {
      begin_patience();
    } else if (!peer.gave_up) {
      lose(news.peer, news.reason);
    }
    return;
  }
  const Notice& notice = *news.notice;
  switch (notice.kind) {
    case Notice::Kind::leaving:
      peer.left = notice.counts;
      links_.carrier->limit(news.peer, notice.counts);
      break;
    case Notice::Kind::taken:
      peer.taken = notice.counts.received;
      break;
    case Notice::Kind::aborted:
      // The peer's last groups may have been done when ours look as if they were not.
      peer.gave_up = notice.cause == news.peer
                         ? std::string("it gave up: its device or its NCCL failed")
                     : notice.cause == options_->rank
                         ? std::string("it takes nothing more from this node")
                         : fmt::format("it gave up when node {} was lost", notice.cause);
      links_.carrier->limit(news.peer, notice.counts);
      begin_patience();
      break;
    case Notice::Kind::frame:
      if (const std::size_t most = links_.control->message_bytes(news.peer);
          notice.bytes < kFrameHeaderBytes || notice.bytes > most) {
        turn_away(news.peer, news.peer);
        lose(news.peer, fmt::format("it announced a frame of {} bytes where {} to {} are due",
                                    notice.bytes, kFrameHeaderBytes, most));
      } else {
        links_.carrier->announce(news.peer, notice.bytes);
      }
      break;
  }
}

std::string NcclTransport::reason_of(Rank peer, const char* of_leaving) const {
  return peers_.at(peer).gave_up.value_or(of_leaving);
}

void NcclTransport::look_for_missing() {
  if (given_up_) {
    return;
  }
  if (const auto peer = links_.carrier->missed_now()) {
    give_up(*peer, reason_of(*peer, "closed"));
    return;
  }
  while (const auto peer = links_.carrier->missed_next()) {
    report_loss(*peer, reason_of(*peer, "closed"));
    links_.carrier->drop(*peer);
  }
  for (const auto& [rank, peer] : peers_) {
    if (peer.patience && peer.patience->expired() && links_.carrier->holds(rank)) {
      give_up(rank, reason_of(rank, "closed before its part was done"));
      return;
    }
  }
  for (const auto& [rank, peer] : peers_) {
    if (peer.gave_up) {
      lose_unless_held(rank, *peer.gave_up);
    }
  }
  if (broken_ && broken_->patience.expired()) {
    give_up(options_->rank, broken_->reason);
  }
}

bool NcclTransport::carry() {
  if (given_up_ || broken_) {
    return false;
  }
  const auto moved = links_.carrier->advance();
  while (const auto carried = links_.carrier->take()) {
    deliver(*carried);
  }
  if (!moved) {
    broken_ = Broken{moved.status().message(), Deadline::after(kBlamePatience)};
    return false;
  }
  return *moved;
}

void NcclTransport::deliver(const Carried& carried) {
  for (const Carried::Frame& frame : carried.frames) {
    if (!frame.bytes.ok()) {
      turn_away(frame.from, frame.from);
      report_loss(frame.from, frame.bytes.status().message());
      links_.carrier->drop(frame.from);
    }
  }
  {
    const std::lock_guard lock(mutex_);
    for (const Carried::Frame& frame : carried.frames) {
      if (frame.bytes.ok()) {
        ledger_.received(frame.from, carried.exchange.tag, *frame.bytes);
      }
    }
    for (const Send& send : carried.exchange.sends) {
      ledger_.sent(send.to, carried.exchange.tag);
    }
  }
  changed_.notify_all();
}

void NcclTransport::acknowledge() {
  for (auto& [rank, peer] : peers_) {
    const FrameCounts done = links_.carrier->done(rank);
    if (peer.left && !peer.thanked && done.received >= peer.left->sent) {
      peer.thanked = true;
      links_.control->tell(rank, {.kind = Notice::Kind::taken, .counts = done});
    }
  }
}

void NcclTransport::lose(Rank peer, const std::string& reason) {
  if (!given_up_ && links_.carrier->holds(peer)) {
    give_up(peer, reason);
    return;
  }
  lose_unless_held(peer, reason);
}

void NcclTransport::lose_unless_held(Rank peer, const std::string& reason) {
  if (given_up_ || peers_.at(peer).lost || links_.carrier->holds(peer)) {
    return;
  }
  report_loss(peer, reason);
  links_.carrier->drop(peer);
}

void NcclTransport::turn_away(Rank peer, Rank cause) {
  links_.control->tell(
      peer, {.kind = Notice::Kind::aborted, .counts = links_.carrier->done(peer), .cause = cause});
}

void NcclTransport::give_up(Rank cause, const std::string& reason) {
  given_up_ = true;
  for (const auto& [rank, peer] : peers_) {
    turn_away(rank, cause);
  }
  {
    // All at once, the culprit first: a node that hears of one finds the others beside it.
    const std::lock_guard lock(mutex_);
    if (cause != options_->rank) {
      ledger_.lose(cause, reason);
    }
    for (const auto& [rank, peer] : peers_) {
      if (rank != cause) {
        ledger_.lose(rank, cause == options_->rank
                               ? reason
                               : fmt::format("the communicator was aborted: node {} is lost ({})",
                                             cause, reason));
      }
    }
  }
  for (auto& [rank, peer] : peers_) {
    peer.lost = true;
  }
  changed_.notify_all();
  // Last: an abort may wait for those of the other ranks.
  links_.carrier->stop(Deadline::after(kQuietPatience));
}

void NcclTransport::report_loss(Rank peer, const std::string& reason) {
  peers_.at(peer).lost = true;
  {
    const std::lock_guard lock(mutex_);
    ledger_.lose(peer, reason);
  }
  changed_.notify_all();
}

}  // namespace sotto::internal
