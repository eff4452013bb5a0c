// Nodes as processes that reach each other over TCP through Gloo.
//
// Only neighbours are connected, one connection a pair. A frame leaves its sender when that has
// heard of the receive, and what is on the wire is the frame itself: the receive has room for the
// largest, and the frame's header says how long it is. So that a frame need not wait until its
// sender has heard, receives of the next round are started in this one (early_receives.h); the
// notice of them then is also ahead of all that this node sends in the round, on the connection and
// in the queues of the network.
//
// Gloo tells nobody when a connection ends in the middle of a frame. So a receive is posted for
// each peer that the peer answers when it leaves in good order, with how many frames it sent and
// received: a node that has that many knows that no more will come. That the receive fails shows
// that the peer is gone, whatever else is under way.
//
// A node that leaves must not close a connection on which the peer has not read all: what the peer
// says to a closed end makes its kernel drop what is left. So each node offers its peers an answer
// from the start; a node that leaves asks for it last, and gets it, from the I/O thread of the
// peer, once that has read everything in front.
//
// Gloo is made for the nodes of one trusted cluster: its I/O thread ends the process when a peer
// breaks its protocol, and may when the system gives up a connection for another reason than that
// the peer closed it (a host that has vanished for a quarter of an hour); and it takes any process
// that connects to a port for the peer that it expects there.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gloo/transport/tcp/device.h>

#include <sotto/base/check.h>
#include <sotto/base/frame.h>
#include <sotto/base/receive_forecast.h>
#include <sotto/base/start_threads.h>

#include "../internal/address/address.h"
#include "../internal/backends.h"
#include "../internal/fault_text.h"
#include "../internal/ledger.h"
#include "../internal/meeting/rendezvous.h"
#include "../internal/neighbours.h"
#include "../internal/waits.h"
#include "early_receives.h"
#include "sigpipe_guard.h"
#include "starter.h"
#include "waiter.h"

namespace sotto::internal {
namespace {

/// Differs from those of all exchanges (slot_of).
constexpr std::uint64_t kPresenceSlot = std::uint64_t{1} << 63;
constexpr std::uint64_t kAnswerSlot = kPresenceSlot + 1;

/// A thread that its block waits for.
class JoinedThread {
 public:
  explicit JoinedThread(std::thread thread) : thread_(std::move(thread)) {}
  ~JoinedThread() { thread_.join(); }
  JoinedThread(const JoinedThread&) = delete;
  JoinedThread& operator=(const JoinedThread&) = delete;

 private:
  std::thread thread_;
};

/// A node's message to a peer when it leaves, in the machine's byte order as all of Gloo's.
struct Farewell {
  std::uint64_t sent = 0;      ///< frames to the peer
  std::uint64_t received = 0;  ///< frames from the peer
};

/// The state kept for one neighbour.
struct Link {
  Link(Rank peer, Reports& reports, std::size_t frame_bytes, std::size_t most_early,
       EarlyReceives::Start start)
      : operations(peer, reports),
        presence(peer, reports),
        early(peer, reports, frame_bytes, most_early, std::move(start)) {}

  Farewell mine;
  Farewell theirs;    ///< the peer's farewell; valid once it has left
  bool left = false;  ///< the peer left in good order
  Waiter operations;
  char offered = 0;                                         ///< our answer to the peer's farewell
  char answered = 0;                                        ///< the peer's answer to our farewell
  std::shared_ptr<gloo::transport::UnboundBuffer> offer;    ///< sends `offered`
  std::shared_ptr<gloo::transport::UnboundBuffer> parting;  ///< sends our farewell
  Waiter presence;                                          ///< waits for the peer's farewell
  std::optional<Waiter> farewell;                           ///< waits for the peer's answer
  EarlyReceives early;
};

class GlooTransport final : public Transport {
 public:
  /// Throws std::exception when Gloo cannot listen at the address.
  GlooTransport(const TransportOptions& options, const Address& address);
  ~GlooTransport() override;
  GlooTransport(const GlooTransport&) = delete;
  GlooTransport& operator=(const GlooTransport&) = delete;

  /// Meets all neighbours through the store. Throws std::exception when Gloo fails to connect.
  Status connect(Deadline deadline);

  std::string_view name() const override { return "gloo"; }
  Status post(const Exchange& exchange) override;
  Result<TransportEvent> poll(Deadline deadline) override;
  void interrupt() override { reports_.interrupt(); }

 private:
  Status connect_pairs(const Addresses& theirs, Deadline deadline);
  /// Has an operation started with a frame.
  void start(Use use, Rank peer, const ExchangeTag& tag, std::span<std::byte> memory,
             Waiter& waiter);
  /// Starts a receive, unless it was started early, and those that it lets foretell.
  void await(const Receive& receive, const ExchangeTag& tag);
  /// Hands over a frame that came early, once it is posted.
  void hand_over(Rank peer, Link& link, EarlyReceiveBuffer& buffer);
  void watch(Rank peer);
  /// Sends the farewell; true when it has to be waited for.
  bool take_leave(Rank peer, Link& link);
  void take(const Report& report);
  void lose_leavers();

  const TransportOptions options_;
  const std::vector<Rank> neighbours_;
  Ledger ledger_;
  std::shared_ptr<gloo::transport::Context> context_;
  Reports reports_;
  std::map<Rank, Link> links_;
  Starter starter_;
};

GlooTransport::GlooTransport(const TransportOptions& options, const Address& address)
    : options_(options), neighbours_(neighbours(options)), ledger_(options), starter_(reports_) {
  const SigpipeGuard guard;  // inherited by Gloo's I/O thread
  const auto device =
      gloo::transport::tcp::CreateDevice(gloo::transport::tcp::attr(address.numeric.c_str()));
  context_ = device->createContext(options.rank, options.nodes);
  auto tcp = std::dynamic_pointer_cast<gloo::transport::tcp::Device>(device);
  check(tcp != nullptr, "Gloo's TCP devices are such");
  starter_.attach(std::move(tcp));
}

GlooTransport::~GlooTransport() {
  starter_.flush();
  for (auto& [peer, link] : links_) {
    link.operations.stop();
    link.early.stop();
  }
  (void)reports_.take_interruption();
  // What ended without having been polled counts too: the peers know of it.
  while (const auto report = reports_.pop(Deadline::after({}))) {
    take(*report);
  }
  std::set<Rank> unaware;
  for (auto& [peer, link] : links_) {
    if (take_leave(peer, link)) {
      unaware.insert(peer);
    }
  }
  // A long last frame may fill the connection for a while. Without the farewell behind it the peer
  // would take the end of the connection for a crash, even before it has seen the frame.
  const auto end = closing_deadline(options_);
  while (!unaware.empty()) {
    const auto report = reports_.pop(end);
    if (!report) {
      break;
    }
    unaware.erase(report->peer);  // it is told, or has left or died itself
  }
  starter_.detach();
  for (auto& [peer, link] : links_) {
    link.presence.stop();
    if (link.farewell) {
      link.farewell->stop();
    }
  }
  // Destroying a pair lets the kernel deliver what was written (its close() would not). After that
  // no I/O touches the buffers of operations that never ended, and the waiters may drop them.
  for (const Rank peer : neighbours_) {
    context_->getPair(peer).reset();
  }
}

Status GlooTransport::connect(Deadline deadline) {
  const SigpipeGuard guard;
  // Gloo waits five times this long for a connection.
  context_->setTimeout(std::chrono::ceil<std::chrono::milliseconds>(deadline.left()) / 5 +
                       std::chrono::milliseconds(1));
  Addresses mine;
  for (const Rank peer : neighbours_) {
    const auto address = context_->createPair(peer)->address().bytes();
    const auto bytes = std::as_bytes(std::span(address));
    mine[peer].assign(bytes.begin(), bytes.end());
  }
  const auto theirs = meet(options_, "gloo", mine, deadline);
  if (!theirs) {
    return theirs.status();
  }
  if (auto connected = connect_pairs(*theirs, deadline); !connected) {
    return connected;
  }
  for (const Rank peer : neighbours_) {
    watch(peer);
  }
  return {};
}

/// Gloo's wait for a connection ends early only when that is closed, which is for another thread
/// than the one that waits.
Status GlooTransport::connect_pairs(const Addresses& theirs, Deadline deadline) {
  std::atomic<bool> stopping{false};
  std::packaged_task<Status()> task([&]() -> Status {
    // In the order of ranks everywhere: then waiting for each other cannot go round in a circle.
    for (auto at = theirs.begin(); at != theirs.end() && !stopping; ++at) {
      const auto& [peer, address] = *at;
      const auto* bytes = reinterpret_cast<const char*>(address.data());
      try {
        context_->getPair(peer)->connect({bytes, bytes + address.size()});
      } catch (const std::exception& failure) {
        return {Fault::deadline,
                fmt::format("node {} did not connect: {}", peer, plain_message(failure))};
      }
    }
    return {};
  });
  auto connecting = task.get_future();
  const JoinedThread thread(start_thread("connecting", [&task] { task(); }));
  constexpr std::chrono::milliseconds kLook{50};
  while (connecting.wait_for(kLook) != std::future_status::ready) {
    stopping = deadline.stopped();
    for (const Rank peer : stopping ? neighbours_ : std::vector<Rank>()) {
      context_->getPair(peer)->close();
    }
  }
  return stopping ? not_come(neighbours_, deadline) : connecting.get();
}

void GlooTransport::watch(Rank peer) {
  const std::size_t most =
      ReceiveForecast::rooms_for(options_.max_frame_bytes, options_.from.size());
  const auto start_early = [this, peer](const ExchangeTag& tag, std::span<std::byte> memory,
                                        Waiter& waiter) {
    start(Use::receive, peer, tag, memory, waiter);
  };
  Link& link = links_.try_emplace(peer, peer, reports_, options_.max_frame_bytes, most, start_early)
                   .first->second;
  link.offer = context_->createUnboundBuffer(&link.offered, sizeof link.offered);
  starter_.add({peer, kAnswerSlot, {Use::notice, {}, link.offer}});
  auto presence = context_->createUnboundBuffer(&link.theirs, sizeof link.theirs);
  starter_.add({peer, kPresenceSlot, {Use::presence, {}, std::move(presence)}, &link.presence});
}

bool GlooTransport::take_leave(Rank peer, Link& link) {
  const bool gone = link.left || ledger_.lost(peer);
  link.parting = context_->createUnboundBuffer(&link.mine, sizeof link.mine);
  starter_.add({peer, kPresenceSlot, {Use::notice, {}, link.parting}});
  try {
    link.farewell.emplace(peer, reports_);
  } catch (const std::exception&) {
    return false;  // no thread can wait
  }
  auto answer = context_->createUnboundBuffer(&link.answered, sizeof link.answered);
  starter_.add({peer, kAnswerSlot, {Use::farewell, {}, std::move(answer)}, &*link.farewell});
  // With an exchange unfinished its frames may never be taken, or the peer hang.
  return !gone && !ledger_.needs(peer);
}

Status GlooTransport::post(const Exchange& exchange) {
  if (auto opened = ledger_.open(exchange); !opened) {
    return opened;
  }
  for (const Receive& receive : exchange.receives) {
    await(receive, exchange.tag);
  }
  for (const Send& send : exchange.sends) {
    // Gloo's buffers serve both ways, hence its pointer without const; a send only reads.
    auto* data = const_cast<std::byte*>(send.frame.data());
    start(Use::send, send.to, exchange.tag, {data, send.frame.size()},
          links_.at(send.to).operations);
  }
  lose_leavers();
  return {};
}

void GlooTransport::await(const Receive& receive, const ExchangeTag& tag) {
  Link& link = links_.at(receive.from);
  if (EarlyReceiveBuffer* const buffer = link.early.find(tag)) {
    buffer->posted = receive.buffer;
    buffer->tag = tag;
    hand_over(receive.from, link, *buffer);
  } else {
    start(Use::receive, receive.from, tag, receive.buffer, link.operations);
  }
  if (receive.buffer.size() <= options_.max_frame_bytes) {
    link.early.posted(tag);
  }
}

void GlooTransport::hand_over(Rank peer, Link& link, EarlyReceiveBuffer& buffer) {
  if (!buffer.complete()) {
    return;
  }
  const std::size_t due = buffer.posted->size();
  const std::size_t came = *buffer.frame_bytes;
  if (!link.early.hand_over(buffer)) {
    ledger_.lose(
        peer, fmt::format("its frame of {} bytes is longer than the {} that are due", came, due));
    return;
  }
  ledger_.received(peer, buffer.tag, came);
  link.early.start_foretold();
}

void GlooTransport::start(Use use, Rank peer, const ExchangeTag& tag, std::span<std::byte> memory,
                          Waiter& waiter) {
  if (use == Use::receive) {
    // A header of zeros announces no frame, should less than a header arrive.
    std::fill_n(memory.begin(), kFrameHeaderBytes, std::byte{0});
  }
  auto buffer = context_->createUnboundBuffer(memory.data(), memory.size());
  starter_.add({peer, slot_of(tag), {use, tag, std::move(buffer)}, &waiter});
}

Result<TransportEvent> GlooTransport::poll(Deadline deadline) {
  for (;;) {
    if (ledger_.has_event()) {
      return ledger_.take_event();
    }
    const auto report = reports_.pop(deadline);
    if (!report) {
      return reports_.take_interruption() ? Result(interruption()) : ledger_.overdue(deadline);
    }
    take(*report);
    lose_leavers();
  }
}

/// A peer that left in good order is missed only by the nodes that still need it. Reports of frames
/// that passed before it left may come after that of its leaving; the counts tell.
void GlooTransport::lose_leavers() {
  for (const auto& [peer, link] : links_) {
    if (!link.left) {
      continue;
    }
    const bool heard_all = link.mine.received >= link.theirs.sent;
    const bool told_all = link.mine.sent >= link.theirs.received;
    if ((heard_all && ledger_.awaits(peer)) || (told_all && ledger_.owes(peer))) {
      ledger_.lose(peer, "closed");
    }
  }
}

void GlooTransport::take(const Report& report) {
  Link& link = links_.at(report.peer);
  EarlyReceiveBuffer* const early = link.early.at(report.memory.data());
  if (report.failure && early != nullptr && !early->posted) {
    link.early.release(*early);  // nobody waits for it, and the peer may have left in good order
  } else if (report.failure) {
    ledger_.lose(report.peer, *report.failure);
  } else if (report.use == Use::presence) {
    link.left = true;
  } else if (report.use == Use::send) {
    ++link.mine.sent;
    ledger_.sent(report.peer, report.tag);
  } else if (const auto bytes = announced_frame_bytes(report.memory, report.memory.size());
             bytes.ok()) {
    ++link.mine.received;
    if (early != nullptr) {
      early->frame_bytes = *bytes;
      hand_over(report.peer, link, *early);
    } else {
      ledger_.received(report.peer, report.tag, *bytes);
    }
  } else {
    ledger_.lose(report.peer, bytes.status().message());
  }
}

}  // namespace

Result<std::unique_ptr<Transport>> make_gloo_transport(const TransportOptions& options) {
  const auto address = resolve_bind_address(
      "bind", options.bind, {.beyond_loopback = options.insecure, .everywhere = false});
  try {
    auto transport = std::make_unique<GlooTransport>(options, address);
    if (auto connected =
            transport->connect(Deadline::after(options.connect_timeout, &options.stop));
        !connected) {
      return connected;
    }
    return Result<std::unique_ptr<Transport>>(std::move(transport));
  } catch (const std::exception& failure) {
    return Status(Fault::io,
                  fmt::format("gloo on {}: {}", address.numeric, plain_message(failure)));
  }
}

}  // namespace sotto::internal
