// Nodes as processes that reach each other over TCP through ZeroMQ.
//
// Each node listens on one port. For every neighbour there are two connections, one opened by each
// side, or so many more as `streams` of that side says; a node speaks only on those that it opened
// and listens on the others. That a peer died shows as the end of a connection that it opened.
//
// With keys, every connection is encrypted and both ends have proved who they are: the listener's
// authenticator admits listed keys only, and the connecting side expects the key that its list
// gives for the peer. The sender of a message is the key that its connection proved, never what it
// says.
#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <zmq.hpp>

#include <sotto/base/error.h>

#include "../../internal/address/address.h"
#include "../../internal/backends.h"
#include "../../internal/fault_text.h"
#include "../../internal/ledger.h"
#include "../../internal/meeting/rendezvous.h"
#include "../../internal/neighbours.h"
#include "../../internal/trust.h"
#include "../../internal/waits.h"
#include "../../internal/wakeup.h"
#include "../socket/admission_probe.h"
#include "../socket/authenticator.h"
#include "../socket/listener.h"
#include "../socket/socket.h"
#include "frame_receiver.h"
#include "frame_sender.h"
#include "wire.h"

namespace sotto::internal {
namespace {

using Clock = Deadline::Clock;

/// Pause after which a waiting node notices that the list of peers has changed.
constexpr auto kListLook = std::chrono::milliseconds(200);
/// Connections of strangers, and of peers that try again, beside those of the neighbours.
constexpr std::size_t kSpareChannels = 64;

std::vector<zmq::message_t> hellos(const TransportOptions& options, Rank to) {
  std::vector<zmq::message_t> all;
  all.reserve(static_cast<std::size_t>(options.streams));
  for (int stream = 0; stream < options.streams; ++stream) {
    all.push_back(zmq_wire::make_hello({.run_id = options.run_id,
                                        .from = options.rank,
                                        .to = to,
                                        .stream = static_cast<std::uint8_t>(stream),
                                        .streams = static_cast<std::uint8_t>(options.streams)}));
  }
  return all;
}

struct Peer {
  Peer(zmq::context_t& context, Rank rank, const std::string& endpoint,
       const TransportOptions& options, const std::optional<CurveClient>& curve)
      : key(curve ? curve->server.text() : std::string()),
        out(context, rank, endpoint, hellos(options, rank), options.frames_ahead, curve),
        in(rank, options.max_frame_bytes, options.frames_ahead) {}

  const std::string key;  ///< the only key that may send for this peer; "" in plain text
  FrameSender out;
  FrameReceiver in;
  std::vector<bool> greeted = {};  ///< the streams whose hello has come; empty before the first
  std::size_t byes = 0;            ///< streams whose bye has come

  bool met() const {
    return !greeted.empty() && std::ranges::find(greeted, false) == greeted.end();
  }
  bool left() const { return !greeted.empty() && byes == greeted.size(); }
};

/// A connection on which a peer speaks.
struct Voice {
  Rank rank = -1;
  int connection = -1;
  bool left = false;   ///< its bye has come
  bool ended = false;  ///< it has, and all that came on it can be received
};

/// A context with room for a listener, and sockets with their monitors for each neighbour.
zmq::context_t make_context(const TransportOptions& options) {
  const std::size_t streams =
      neighbours(options).size() * static_cast<std::size_t>(options.streams);
  zmq::context_t context = new_context(kDescriptorsOfSocket * (1 + streams));
  const auto sockets = static_cast<int>(3 * streams + kSpareChannels);
  context.set(zmq::ctxopt::max_sockets, std::max(sockets, context.get(zmq::ctxopt::max_sockets)));
  return context;
}

class ZmqTransport final : public Transport {
 public:
  ZmqTransport(const TransportOptions& options, const Address& address)
      : options_(options),
        ledger_(options),
        context_(make_context(options)),
        authenticator_(options.security ? std::make_unique<Authenticator>(
                                              context_, admit_listed(*options.security))
                                        : nullptr),
        listener_(context_, address.endpoint(options.security ? own_port(options) : "*"),
                  {zmq_wire::kMostMessageBytes,
                   kSpareChannels + 2 * std::size_t{kMostStreams} * neighbours(options).size()},
                  options.security ? &options.security->own : nullptr) {}
  ~ZmqTransport() override;
  ZmqTransport(const ZmqTransport&) = delete;
  ZmqTransport& operator=(const ZmqTransport&) = delete;

  /// Meets all neighbours, at the addresses that the list of peers or the store gives.
  Status connect();

  std::string_view name() const override { return "zmq"; }
  Status post(const Exchange& exchange) override;
  Result<TransportEvent> poll(Deadline deadline) override;
  void interrupt() override { wakeup_.signal(); }

 private:
  Result<std::map<Rank, std::string>> find_neighbours(const TransportOptions& options,
                                                      Deadline deadline) const;
  Status greet_everyone(Deadline deadline);
  Status missing() const;

  void progress();
  void heed_list();
  bool take_message();
  void take_hello(const Incoming& incoming, const zmq_wire::Hello& hello);
  void take(Rank rank, Peer& peer, const zmq_wire::Chunk& chunk);
  void notice_ends();
  void end_voice(int connection);
  void lose_ended();
  void lose(Rank rank, Peer& peer, const std::string& reason);
  void credit_or_lose(Rank rank, Peer& peer, const Result<std::size_t>& consumed);
  void lose_leavers();
  void wait(Deadline deadline);

  const TransportOptions options_;
  Ledger ledger_;
  zmq::context_t context_;
  const std::unique_ptr<Authenticator> authenticator_;
  Listener listener_;
  std::map<Rank, Peer> peers_;
  std::map<std::string, Voice> voices_;  ///< by the route of their messages
  std::vector<zmq::pollitem_t> poll_items_;
  Wakeup wakeup_;
  /// The version of the list of peers that was heeded last.
  std::uint64_t list_version_ = ~std::uint64_t{0};
  bool closing_ = false;
};

Status ZmqTransport::connect() {
  const Deadline deadline = Deadline::after(options_.connect_timeout, &options_.stop);
  if (options_.security) {
    if (auto holds = probe_admission(listener_.endpoint(), options_.security->own); !holds) {
      return holds;
    }
  }
  // The list may have changed since it was checked, and may go on changing; see heed_list().
  const auto now = options_.security ? with_present_list(options_) : options_;
  for (const Rank rank : neighbours(now)) {
    if (now.security && !trusted_key(now, rank)) {
      return {Fault::peer_lost, fmt::format("connecting to node {}: {}", rank, kRevoked)};
    }
  }
  const auto found = find_neighbours(now, deadline);
  if (!found) {
    return found.status();
  }
  for (const auto& [rank, endpoint] : *found) {
    std::optional<CurveClient> curve;
    if (now.security) {
      curve = CurveClient{now.security->own, now.security->peers->find(rank)->key};
    }
    peers_.try_emplace(rank, context_, rank, endpoint, options_, curve);
  }
  return greet_everyone(deadline);
}

Result<std::map<Rank, std::string>> ZmqTransport::find_neighbours(const TransportOptions& options,
                                                                  Deadline deadline) const {
  std::map<Rank, std::string> endpoints;
  if (options.security) {
    endpoints = static_endpoints(options);
    if (!endpoints.empty()) {
      return endpoints;
    }
  }
  if (options.store == nullptr && !neighbours(options).empty()) {
    refuse("store", "none",
           "the list of peers does not say where they listen, so that they meet through a store");
  }
  const auto& endpoint = listener_.endpoint();
  const auto bytes = std::as_bytes(std::span(endpoint));
  Addresses mine;
  for (const Rank rank : neighbours(options)) {
    mine[rank].assign(bytes.begin(), bytes.end());
  }
  const auto theirs = meet(options, "zmq", mine, deadline);
  if (!theirs) {
    return theirs.status();
  }
  for (const auto& [rank, address] : *theirs) {
    endpoints[rank].assign(reinterpret_cast<const char*>(address.data()), address.size());
  }
  return endpoints;
}

Status ZmqTransport::greet_everyone(Deadline deadline) {
  for (;;) {
    progress();
    if (ledger_.has_event()) {
      const auto event = ledger_.take_event();
      return {Fault::peer_lost, fmt::format("connecting to node {}: {}", event.peer, event.reason)};
    }
    Status open = missing();
    if (open.ok()) {
      return open;
    }
    if (deadline.expired()) {
      return deadline.stopped() ? Status(Fault::stopped, "stopped; " + open.message()) : open;
    }
    wait(deadline);
  }
}

Status ZmqTransport::missing() const {
  std::vector<Rank> silent;
  std::string trouble;
  for (const auto& [rank, peer] : peers_) {
    if (!peer.met() || !peer.out.greeted()) {
      silent.push_back(rank);
      if (!peer.out.trouble().empty()) {
        trouble += fmt::format("; node {}: {}", rank, peer.out.trouble());
      }
    }
  }
  return silent.empty()
             ? Status()
             : Status(Fault::deadline, fmt::format("no greetings exchanged with node {}{}",
                                                   list_ranks(silent), trouble));
}

ZmqTransport::~ZmqTransport() {
  closing_ = true;  // buffers of open exchanges may be gone already
  const Deadline deadline = closing_deadline(options_);
  for (auto& [rank, peer] : peers_) {
    peer.out.leave();
  }
  const auto busy = [&] {
    return std::any_of(peers_.begin(), peers_.end(),
                       [](const auto& entry) { return entry.second.out.pending(); });
  };
  for (progress(); busy() && !deadline.expired(); progress()) {
    wait(deadline);
  }
  for (auto& [rank, peer] : peers_) {
    peer.out.close(deadline.expired() ? 0 : deadline.left_ms());
  }
}

Status ZmqTransport::post(const Exchange& exchange) {
  notice_ends();
  heed_list();
  if (auto opened = ledger_.open(exchange); !opened) {
    return opened;
  }
  for (const Receive& receive : exchange.receives) {
    Peer& peer = peers_.at(receive.from);
    credit_or_lose(receive.from, peer, peer.in.match(ledger_));
  }
  for (const Send& send : exchange.sends) {
    peers_.at(send.to).out.add(exchange.tag, send.frame);
  }
  lose_leavers();
  for (auto& [rank, peer] : peers_) {
    peer.out.pump(ledger_);
  }
  return {};
}

Result<TransportEvent> ZmqTransport::poll(Deadline deadline) {
  for (;;) {
    if (!ledger_.has_event()) {
      progress();
    }
    if (ledger_.has_event()) {
      return ledger_.take_event();
    }
    if (wakeup_.clear()) {
      return interruption();
    }
    if (deadline.expired()) {
      return ledger_.overdue(deadline);
    }
    wait(deadline);
  }
}

/// Everything that can be done without waiting.
void ZmqTransport::progress() {
  constexpr int kBatch = 16;  // then the senders get their turn again
  notice_ends();              // what is received from here on has all that came before those ends
  bool drained = false;
  for (int i = 0; i < kBatch && !drained; ++i) {
    drained = !take_message();
  }
  if (drained) {
    lose_ended();
  }
  for (auto& [rank, peer] : peers_) {
    if (!ledger_.lost(rank)) {
      peer.out.look();
    }
    peer.out.pump(ledger_);
  }
}

/// Gives up the peers that the list of peers trusts no longer, as soon as it has changed.
void ZmqTransport::heed_list() {
  if (!options_.security || options_.security->peers->version() == list_version_) {
    return;
  }
  list_version_ = options_.security->peers->version();
  for (auto& [rank, peer] : peers_) {
    if (!ledger_.lost(rank) && trusted_key(options_, rank) != peer.key) {
      lose(rank, peer, kRevoked);
    }
  }
}

bool ZmqTransport::take_message() {
  const auto incoming = listener_.receive();
  heed_list();  // between a message's arrival and its use
  if (!incoming) {
    return false;
  }
  const auto message = zmq_wire::parse(view_of(incoming->body));
  const auto voice = voices_.find(incoming->route);
  if (voice == voices_.end()) {
    // Strangers are heard only if they introduce themselves.
    if (message.ok() && std::holds_alternative<zmq_wire::Hello>(*message)) {
      take_hello(*incoming, std::get<zmq_wire::Hello>(*message));
    }
    return true;
  }
  const Rank rank = voice->second.rank;
  Peer& peer = peers_.at(rank);
  if (ledger_.lost(rank) || voice->second.left || incoming->key != peer.key) {
    return true;
  }
  if (!message) {
    lose(rank, peer, message.status().message());
  } else if (const auto* chunk = std::get_if<zmq_wire::Chunk>(&*message)) {
    take(rank, peer, *chunk);
  } else if (const auto* credit = std::get_if<zmq_wire::Credit>(&*message)) {
    if (!peer.out.credit(credit->count)) {
      lose(rank, peer, "gave more credit than it had");
    }
  } else if (std::holds_alternative<zmq_wire::Bye>(*message)) {
    voice->second.left = true;
    ++peer.byes;
    if (peer.left()) {
      peer.out.close(0);
      lose_leavers();
    }
  } else {
    lose(rank, peer, "introduced itself twice");
  }
  return true;
}

void ZmqTransport::take_hello(const Incoming& incoming, const zmq_wire::Hello& hello) {
  const auto peer = peers_.find(hello.from);
  if (hello.run_id != options_.run_id || hello.to != options_.rank || peer == peers_.end() ||
      incoming.key != peer->second.key) {
    return;
  }
  std::vector<bool>& greeted = peer->second.greeted;
  if (greeted.empty()) {
    greeted.resize(hello.streams);
    peer->second.in.expect_streams(hello.streams);
  }
  if (hello.streams != greeted.size() || greeted[hello.stream]) {
    return;
  }
  // Connection numbers are reused: what is known of older ones must be settled first.
  notice_ends();
  end_voice(incoming.connection);
  greeted[hello.stream] = true;
  voices_[incoming.route] = {.rank = hello.from,
                             .connection = incoming.connection,
                             .ended = !listener_.alive(incoming.connection)};
}

void ZmqTransport::take(Rank rank, Peer& peer, const zmq_wire::Chunk& chunk) {
  if (closing_) {
    return;
  }
  if (!std::binary_search(options_.from.begin(), options_.from.end(), rank)) {
    lose(rank, peer, "sent a frame although nobody listens to it");
    return;
  }
  credit_or_lose(rank, peer, peer.in.take(chunk, ledger_));
}

void ZmqTransport::credit_or_lose(Rank rank, Peer& peer, const Result<std::size_t>& consumed) {
  if (consumed.ok()) {
    peer.out.owe(*consumed);
  } else {
    lose(rank, peer, consumed.status().message());
  }
}

void ZmqTransport::notice_ends() {
  for (const int connection : listener_.ended()) {
    end_voice(connection);
  }
}

void ZmqTransport::end_voice(int connection) {
  for (auto& [route, voice] : voices_) {
    voice.ended = voice.ended || voice.connection == connection;
  }
}

/// Gives up peers of which a connection ended without a bye. Called when nothing is left to
/// receive.
void ZmqTransport::lose_ended() {
  for (const auto& [route, voice] : voices_) {
    if (voice.ended && !voice.left && !ledger_.lost(voice.rank)) {
      lose(voice.rank, peers_.at(voice.rank), "its connection ended without a goodbye");
    }
  }
}

/// Gives up a peer, and hangs up on it: what it goes on sending is not even read.
void ZmqTransport::lose(Rank rank, Peer& peer, const std::string& reason) {
  ledger_.lose(rank, reason);
  peer.out.close(0);
  for (const auto& [route, voice] : voices_) {
    if (voice.rank == rank && !voice.ended) {
      listener_.cut(voice.connection);
    }
  }
}

/// A peer that said goodbye is missed only by the nodes that still need it.
void ZmqTransport::lose_leavers() {
  for (auto& [rank, peer] : peers_) {
    if (peer.left() && ledger_.needs(rank)) {
      ledger_.lose(rank, "closed");
    }
  }
}

void ZmqTransport::wait(Deadline deadline) {
  poll_items_.clear();
  poll_items_.push_back({listener_.socket().handle(), 0, ZMQ_POLLIN, 0});
  poll_items_.push_back({listener_.monitor().handle(), 0, ZMQ_POLLIN, 0});
  poll_items_.push_back({nullptr, wakeup_.descriptor(), ZMQ_POLLIN, 0});
  auto until = deadline.next_look();
  if (options_.security) {
    until = std::min(until, Clock::now() + kListLook);
  }
  for (auto& [rank, peer] : peers_) {
    peer.out.await([this](zmq::socket_t& socket, short events) {
      poll_items_.push_back({socket.handle(), 0, events, 0});
    });
    if (const auto next = peer.out.next_attempt()) {
      until = std::min(until, *next);
    }
  }
  if (listener_.ending()) {
    until = std::min(until, Clock::now() + kEndLook);
  }
  // An interrupted wait is as good as one that ended: callers look again.
  (void)zmq_poll(poll_items_.data(), static_cast<int>(poll_items_.size()),
                 Deadline(until).left_ms());
}

}  // namespace

Result<std::unique_ptr<Transport>> make_zmq_transport(const TransportOptions& options) {
  Reach reach{.beyond_loopback = options.insecure || options.security, .everywhere = false};
  if (options.security) {
    reach.everywhere = own_port(options) != "*";  // peers know the address from their lists
  }
  const auto address = resolve_bind_address("bind", options.bind, reach);
  try {
    auto transport = std::make_unique<ZmqTransport>(options, address);
    if (auto connected = transport->connect(); !connected) {
      return connected;
    }
    return Result<std::unique_ptr<Transport>>(std::move(transport));
  } catch (const zmq::error_t& error) {
    return Status(Fault::io, fmt::format("zmq on {}: {}", address.numeric, error.what()));
  }
}

}  // namespace sotto::internal
