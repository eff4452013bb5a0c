// Nodes as threads of one process.
#include <algorithm>
#include <cstring>
#include <set>
#include <utility>

#include <fmt/format.h>

#include <sotto/base/error.h>

#include "../internal/backends.h"
#include "../internal/fault_text.h"
#include "../internal/neighbours.h"
#include "../store/memory_store.h"
#include "inproc_hub.h"

namespace sotto::internal {
namespace {

using Endpoint = InprocEndpoint;
using Peers = std::map<Rank, std::shared_ptr<Endpoint>>;

/// A frame of ours that a receiver has fetched, to be told to its sender once no lock is held.
struct Fetched {
  Rank sender;
  ExchangeTag tag;
};

/// Fills the posted receive for this frame, if there is one. Requires the endpoint's mutex.
bool deliver(Endpoint& receiver, Rank sender, const ExchangeTag& tag,
             std::span<const std::byte> frame) {
  const auto room = receiver.ledger.room(sender, tag);
  if (!room) {
    return false;
  }
  if (frame.size() > room->size()) {
    receiver.ledger.lose(sender, fmt::format("sent {} bytes where {} were due at most ({})",
                                             frame.size(), room->size(), describe(tag)));
  } else {
    std::memcpy(room->data(), frame.data(), frame.size());
    receiver.ledger.received(sender, tag, frame.size());
  }
  return true;
}

class InprocTransport final : public Transport {
 public:
  InprocTransport(Rank rank, std::shared_ptr<InprocHub> hub, std::shared_ptr<Endpoint> self,
                  Peers peers)
      : rank_(rank), hub_(std::move(hub)), self_(std::move(self)), peers_(std::move(peers)) {}
  ~InprocTransport() override;
  InprocTransport(const InprocTransport&) = delete;
  InprocTransport& operator=(const InprocTransport&) = delete;

  std::string_view name() const override { return "inproc"; }
  Status post(const Exchange& exchange) override;
  Result<TransportEvent> poll(Deadline deadline) override;
  void interrupt() override;

 private:
  void fetch(Rank sender, InprocInbox& inbox, std::vector<Fetched>& fetched);
  void send(const Send& send, const ExchangeTag& tag);
  void leave(Endpoint& peer, bool stranded);
  void lose_if_needed(Rank peer);

  const Rank rank_;
  const std::shared_ptr<InprocHub> hub_;
  const std::shared_ptr<Endpoint> self_;
  const Peers peers_;
};

InprocTransport::~InprocTransport() {
  std::set<Rank> stranded;
  {
    const std::lock_guard lock(self_->mutex);
    self_->closed = true;
    for (auto& [sender, inbox] : self_->inboxes) {
      if (!inbox.notes.empty()) {
        stranded.insert(sender);
        inbox.notes.clear();
      }
    }
  }
  for (const auto& [peer, endpoint] : peers_) {
    leave(*endpoint, stranded.contains(peer));
  }
}

/// Takes back what a peer has not fetched, and tells it that we are gone if it still needs us.
/// Frames that it holds stay there. A send of its own that is under way finds us closed by
/// itself.
void InprocTransport::leave(Endpoint& peer, bool stranded) {
  {
    const std::lock_guard lock(peer.mutex);
    if (const auto inbox = peer.inboxes.find(rank_); inbox != peer.inboxes.end()) {
      inbox->second.notes.clear();
    }
    if (stranded || peer.ledger.awaits(rank_)) {
      peer.ledger.lose(rank_, "closed");
    }
  }
  peer.changed.notify_all();
}

void InprocTransport::lose_if_needed(Rank peer) {
  const std::lock_guard lock(self_->mutex);
  if (self_->ledger.needs(peer)) {
    self_->ledger.lose(peer, "closed");
  }
}

Status InprocTransport::post(const Exchange& exchange) {
  std::vector<Fetched> fetched;
  {
    const std::lock_guard lock(self_->mutex);
    if (auto opened = self_->ledger.open(exchange); !opened) {
      return opened;
    }
    for (const Receive& receive : exchange.receives) {
      fetch(receive.from, self_->inboxes[receive.from], fetched);
    }
  }
  for (const Fetched& frame : fetched) {
    Endpoint& sender = *peers_.at(frame.sender);
    {
      const std::lock_guard lock(sender.mutex);
      sender.ledger.sent(rank_, frame.tag);
    }
    sender.changed.notify_all();
  }
  for (const Send& one : exchange.sends) {
    send(one, exchange.tag);
  }
  for (const auto& [peer, endpoint] : peers_) {
    if (endpoint->left()) {
      lose_if_needed(peer);
    }
  }
  return {};
}

/// Moves what a sender has for us into posted receives, and notes into early places that are
/// free. Requires our mutex.
void InprocTransport::fetch(Rank sender, InprocInbox& inbox, std::vector<Fetched>& fetched) {
  std::erase_if(inbox.early, [&](const InprocInbox::Early& early) {
    return deliver(*self_, sender, early.tag, early.frame);
  });
  std::erase_if(inbox.notes, [&](const InprocInbox::Note& note) {
    if (!deliver(*self_, sender, note.tag, note.frame)) {
      if (inbox.early.size() >= self_->frames_ahead) {
        return false;
      }
      inbox.early.push_back({note.tag, {note.frame.begin(), note.frame.end()}});
    }
    fetched.push_back({sender, note.tag});
    return true;
  });
}

void InprocTransport::send(const Send& send, const ExchangeTag& tag) {
  Endpoint& receiver = *peers_.at(send.to);
  {
    const std::lock_guard lock(receiver.mutex);
    if (receiver.closed) {
      return;  // post() goes on to report it
    }
    InprocInbox& inbox = receiver.inboxes.at(rank_);
    if (!deliver(receiver, rank_, tag, send.frame)) {
      if (inbox.early.size() >= receiver.frames_ahead) {
        inbox.notes.push_back({tag, send.frame});
        return;
      }
      inbox.early.push_back({tag, {send.frame.begin(), send.frame.end()}});
    }
  }
  receiver.changed.notify_all();
  const std::lock_guard lock(self_->mutex);
  self_->ledger.sent(send.to, tag);
}

Result<TransportEvent> InprocTransport::poll(Deadline deadline) {
  std::unique_lock lock(self_->mutex);
  const bool something = wait_until(self_->changed, lock, deadline, [&] {
    return self_->ledger.has_event() || self_->interrupted;
  });
  if (!something) {
    return self_->ledger.overdue(deadline);
  }
  if (self_->ledger.has_event()) {
    return self_->ledger.take_event();
  }
  self_->interrupted = false;
  return interruption();
}

void InprocTransport::interrupt() {
  {
    const std::lock_guard lock(self_->mutex);
    self_->interrupted = true;
  }
  self_->changed.notify_all();
}

/// Fault::unexpected unless both ends of an edge know of it.
Status check_agreement(const TransportOptions& options, Rank peer, Endpoint& endpoint) {
  const bool sends_there = std::binary_search(options.to.begin(), options.to.end(), peer);
  if (sends_there && !endpoint.inboxes.contains(options.rank)) {
    return {Fault::unexpected, fmt::format("node {} does not listen to node {}, which sends to it",
                                           peer, options.rank)};
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<Transport>> make_inproc_transport(const TransportOptions& options) {
  auto* meeting = dynamic_cast<MemoryStore*>(options.store.get());
  if (meeting == nullptr) {
    refuse("store", "other than memory:",
           "the nodes of an inproc job are threads; give all of them one make_memory_store()");
  }
  const Deadline deadline = Deadline::after(options.connect_timeout, &options.stop);
  auto hub = meeting->hub(options.run_id);
  auto self = std::make_shared<Endpoint>(options);
  hub->enter(options.rank, self);
  // From here on the transport's destructor tells the others when we fail.
  Peers peers;
  Status failed;
  for (const Rank peer : neighbours(options)) {
    auto met = hub->meet(peer, deadline);
    if (!met.ok()) {
      failed = met.status();
      break;
    }
    if (failed = check_agreement(options, peer, **met); !failed.ok()) {
      break;
    }
    peers.emplace(peer, *met);
  }
  auto transport = std::make_unique<InprocTransport>(options.rank, std::move(hub), std::move(self),
                                                     std::move(peers));
  if (!failed.ok()) {
    return failed;
  }
  return Result<std::unique_ptr<Transport>>(std::move(transport));
}

}  // namespace sotto::internal
