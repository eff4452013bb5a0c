#include "channel.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <sodium.h>

#include "../../internal/address/host_port.h"

namespace sotto::internal {
namespace {

using namespace std::chrono_literals;

/// How long a peer's connection waits for one of this side's, where there is an address for it.
constexpr std::chrono::milliseconds kAnswerAfter = 1s;
/// Messages of one peer that are taken before others have their turn.
constexpr int kRepliesAtOnce = 64;
/// A pair that is heard this long after a rival came belongs to another process than the rival.
constexpr auto kRivalry = 2s;

constexpr const char* kUnanswered =
    "it lets this site connect, and does not answer: another process with this site's key is in "
    "touch with it, or its program is older than one that answers on the same connection and "
    "cannot reach the address that its list has for this site";
constexpr const char* kAwaited =
    "this site's list has no address for it: it is to connect to this site, and has not yet";
constexpr const char* kNoWay =
    "neither side can dial: this site listens nowhere, and its list has no address for the peer; "
    "one of the two needs an address, its own or a forwarder's";

std::string too_many() {
  return fmt::format("more small messages than {} a second", FrameQuota::kPerSecond);
}

std::uint64_t draw_session() {
  std::uint64_t session = 0;
  while (session == 0) {
    ::randombytes_buf(&session, sizeof session);
  }
  return session;
}

}  // namespace

void Channel::follow_line(const std::optional<TrustedPeer>& line) {
  const bool trusted = line && (line->may_send || line->send_to);
  std::vector<PublicKey> keys;
  if (trusted) {
    for (const PeerKey& one : line->keys()) {
      keys.push_back(one.key);
    }
  }
  const auto addresses = trusted ? split_addresses(line->address) : std::vector<std::string>();
  const bool listed_before = !dialler().keys().empty();
  if (keys != dialler().keys()) {
    use_keys(std::move(keys));
  }
  const bool moved = dialler().use_addresses(addresses);
  if (moved && listed_before && trusted && !close_due_) {
    close_pair(ChannelTrouble::closed, "the list of peers has another address for it");
  }
  if (trusted && addresses.empty() && traffic_.trouble == ChannelTrouble::none && !up()) {
    const bool listens = !context_.listener.endpoints().empty();
    traffic_.trouble = listens ? ChannelTrouble::awaited : ChannelTrouble::unreachable;
    traffic_.reason = listens ? kAwaited : kNoWay;
  }
}

/// Ends the connections of keys that are no longer listed; those of the peer's other keys stay.
void Channel::use_keys(std::vector<PublicKey> keys) {
  const bool same_peer = std::ranges::any_of(dialler().keys(), [&](const PublicKey& key) {
    return std::ranges::find(keys, key) != keys.end();
  });
  const bool listed = !dialler().keys().empty();
  dialler().use_keys(std::move(keys));
  const PeerGreeting* const peer = handshake_.peer();
  const bool proof_is_gone = (peer != nullptr && !has_key(peer->key)) ||
                             (dialler().connection() != nullptr && !has_key(dialler().key()));
  if (listed && (!same_peer || proof_is_gone)) {
    context_.events.forget(traffic_.peer);
    close_pair(ChannelTrouble::revoked, kRevoked);
  }
  if (handshake_.rival() != nullptr && !has_key(handshake_.rival()->key)) {
    handshake_.dismiss_rival();  // as a remnant it is cut
  }
  if (!same_peer) {
    barred_until_ = {};
    dialler().forget_lookup();
  }
}

Status Channel::send(ChannelMessage message) {
  if (!up() || ending_ || !context_.events.known(traffic_.peer)) {
    return {Fault::peer_lost, fmt::format("the channel to rank {} is down", traffic_.peer)};
  }
  if (message.size() > context_.options.max_message_bytes) {
    return {Fault::malformed, fmt::format("a message of {} bytes where {} are sent at most",
                                          message.size(), context_.options.max_message_bytes)};
  }
  return pair_->add(traffic_.peer, std::move(message));
}

void Channel::close(Time now, std::chrono::milliseconds pause) {
  context_.events.forget(traffic_.peer);
  close_pair(ChannelTrouble::closed, "it was closed here");
  barred_until_ = std::max(barred_until_, now + pause);
}

ChannelTraffic Channel::traffic() const {
  auto traffic = traffic_;
  traffic.up = up();
  traffic.bytes_sent += up() ? pair_->bytes_sent() : 0;
  traffic.bytes_arrived = up() ? pair_->bytes_arrived() : 0;
  traffic.contested = contested();
  return traffic;
}

bool Channel::idle() const {
  return dialler().keys().empty() && !up() && !ending_ && !close_due_ && !answering() &&
         dialler().connection() == nullptr && handshake_.peer() == nullptr &&
         handshake_.rival() == nullptr && context_.events.none_of(traffic_.peer);
}

bool Channel::contested() const {
  return up() && handshake_.rival() != nullptr &&
         pair_->heard() - handshake_.rival()->since > kRivalry;
}

void Channel::handle(const Incoming& incoming, Time now) {
  if (close_due_) {
    close_connections(now);
  }
  const auto message = channel_wire::parse(view_of(incoming.body));
  switch (handshake_.speaker(incoming.route)) {
    case Handshake::Speaker::peer:
      handle_message(message, now);
      return;
    case Handshake::Speaker::rival:
      if (within(others_, message, now)) {
        handshake_.rival_spoke();
      } else {
        cut(handshake_.dismiss_rival());  // no offence: the peer that is in touch may be another
      }
      return;
    case Handshake::Speaker::stranger:
      break;
  }
  if (up() && !within(others_, message, now)) {
    context_.listener.cut(incoming.connection);
    return;
  }
  const auto* greeting = message.ok() ? std::get_if<channel_wire::Greeting>(&*message) : nullptr;
  if (greeting != nullptr && welcome(now) && context_.listener.alive(incoming.connection)) {
    handle_greeting(incoming, greeting->session, now);
  } else if (!uses(incoming.connection)) {
    context_.listener.cut(incoming.connection);  // too early, or a remnant
  }
}

void Channel::handle_greeting(const Incoming& incoming, std::uint64_t session, Time now) {
  PeerGreeting greeting = {.route = incoming.route,
                           .connection = incoming.connection,
                           .key = incoming.key,
                           .since = now,
                           .session = session};
  if (up()) {
    cut(handshake_.challenge(std::move(greeting)));
  } else {
    admit(std::move(greeting), now);
  }
}

void Channel::admit(PeerGreeting greeting, Time now) {
  cut(handshake_.connection());
  if (answering()) {
    abandon(0);  // the way out was the connection before
  }
  handshake_.admit(std::move(greeting));
  await_pair(now);
}

void Channel::await_pair(Time now) {
  unpaired_since_ = now;
  dialler().hasten(now);
}

void Channel::cut(int connection) {
  if (connection != PeerGreeting::kNoConnection) {
    context_.listener.cut(connection);
  }
}

void Channel::notice_end(Time now) {
  if (connection() == nullptr || !up() || close_due_) {
    return;
  }
  if (auto broken = dialler().broken()) {
    close_pair_soon(now, broken->trouble, std::move(broken->reason));
  }
}

bool Channel::handle_replies(Time now) {
  for (int taken = 0; connection() != nullptr && taken < kRepliesAtOnce; ++taken) {
    zmq::message_t body;
    if (close_due_ || !connection()->receive(body)) {
      return true;
    }
    const auto message = channel_wire::parse(view_of(body));
    const auto* greeting = message.ok() ? std::get_if<channel_wire::Greeting>(&*message) : nullptr;
    if (!message.ok() || (handshake_.peer() != nullptr && handshake_.peer()->own)) {
      handle_message(message, now);
    } else if (!within(replies_, message, now)) {
      punish(too_many(), now);
    } else if (greeting != nullptr) {
      handshake_.note_reply();
      handle_reply_greeting(greeting->session, now);
    } else if (!handshake_.replied()) {
      punish("it spoke before it greeted", now);
    }
  }
  return connection() == nullptr;
}

/// The peer speaks on this side's connection.
void Channel::handle_reply_greeting(std::uint64_t session, Time now) {
  if (up()) {
    close_pair(ChannelTrouble::lost, "it has begun to speak on another connection");
    close_connections(now);
  } else if (welcome(now)) {
    admit({.key = dialler().key(), .since = now, .own = true, .session = session}, now);
  }
}

void Channel::handle_message(const Result<channel_wire::Message>& message, Time now) {
  if (pair_) {
    pair_->hear(now);
  }
  if (!message.ok()) {
    punish(message.status().message(), now);
  } else if (!within(quota_, message, now)) {
    punish(too_many(), now);
  } else {
    act_on(*message, now);
  }
}

void Channel::act_on(const channel_wire::Message& message, Time now) {
  if (std::holds_alternative<channel_wire::Greeting>(message)) {
    punish("it greeted twice", now);
  } else if (std::holds_alternative<channel_wire::Bye>(message)) {
    close_pair(ChannelTrouble::left, "it left");
    close_connections(now);
  } else if (const auto* accept = std::get_if<channel_wire::Accept>(&message)) {
    if (handshake_.accept(accept->session)) {
      open_pair(now);
    } else {
      punish("it accepted twice", now);
    }
  } else if (handshake_.stale()) {
    return;  // meant for an older session
  } else if (!up()) {
    punish("it spoke before both sides had accepted", now);
  } else if (const auto* chunk = std::get_if<channel_wire::Chunk>(&message)) {
    handle_chunk(*chunk, now);
  } else if (const auto* receipt = std::get_if<channel_wire::Receipt>(&message)) {
    if (const auto taken = pair_->take(*receipt, now); !taken) {
      punish(taken.message(), now);
    }
  }
}

bool Channel::within(FrameQuota& quota, const Result<channel_wire::Message>& message, Time now) {
  const auto* chunk = message.ok() ? std::get_if<channel_wire::Chunk>(&*message) : nullptr;
  if (chunk == nullptr || chunk->piece.bytes.size() < FrameQuota::kSmall) {
    quota.take(now);
  }
  return !quota.far_beyond();
}

std::uint64_t Channel::held(Time now) const {
  return quota_.spent(now) ? pair_->window() : context_.events.held(traffic_.peer);
}

void Channel::handle_chunk(const channel_wire::Chunk& chunk, Time now) {
  auto taken = pair_->take(chunk, now);
  if (!taken) {
    punish(taken.status().message(), now);
  } else if (*taken) {
    context_.events.message(traffic_.peer, std::move(**taken));
  }
}

void Channel::open_pair(Time now) {
  if (up() || !has_way_out() || !handshake_.complete()) {
    return;
  }
  pair_.emplace(context_.options, context_.pool, now);
  dialler().succeeded();
  traffic_.trouble = ChannelTrouble::none;
  traffic_.reason.clear();
  traffic_.key = handshake_.peer()->key;
  traffic_.one_connection = answering() || handshake_.peer()->own;
  ++traffic_.ups;
  context_.events.up(traffic_.peer);
}

void Channel::close_pair(ChannelTrouble trouble, const std::string& reason) {
  traffic_.trouble = trouble;
  traffic_.reason = reason;
  ending_.reset();
  close_due_ = true;
  if (up()) {
    traffic_.bytes_sent += pair_->bytes_sent();
    pair_.reset();
    context_.events.down(traffic_.peer, reason);
  }
}

void Channel::ended(int connection, Time now) {
  if (!handshake_.ended(connection)) {
    return;
  }
  if (up()) {
    close_pair_soon(now, ChannelTrouble::lost, "its connection ended");
    return;
  }
  handshake_.expel();
  if (answering()) {
    abandon(0);
  }
}

void Channel::close_pair_soon(Time now, ChannelTrouble trouble, std::string reason) {
  if (!ending_) {
    ending_ = Ending{now, trouble, std::move(reason)};
  }
}

void Channel::punish(const std::string& what, Time now) {
  ++traffic_.offences;
  close_pair(ChannelTrouble::offence, "it broke a rule: " + what);
  barred_until_ = std::max(barred_until_, now + context_.options.offence_pause);
  close_connections(now);
}

void Channel::close_connections(Time now) {
  close_due_ = false;
  cut(handshake_.expel());
  abandon(0);
  dialler().try_soon(now);
  if (handshake_.rival() == nullptr) {
    return;
  }
  if (welcome(now)) {
    handshake_.admit_rival();
    await_pair(now);
  } else {
    cut(handshake_.dismiss_rival());
  }
}

void Channel::abandon(int linger_ms) {
  way_.abandon(linger_ms);
  handshake_.close();
}

void Channel::close_way_out() {
  way_.stop_answering();
  handshake_.close();
}

void Channel::drop_way_out(Time now, ChannelTrouble trouble, std::string reason) {
  abandon(0);
  dialler().try_later(now);
  traffic_.trouble = trouble;
  traffic_.reason = std::move(reason);
}

/// The way in may be there while the way out has ended: a process that died ends both, a moment
/// apart, and of what it said last nothing is to be lost.
bool Channel::all_has_come(Time now) const {
  return handshake_.connection() == PeerGreeting::kNoConnection || now - ending_->since >= kSettle;
}

void Channel::work(Time now, bool drained) {
  if (close_due_) {
    close_connections(now);
  }
  keep_way_out(now);
  if (ending_ && drained && all_has_come(now)) {
    close_pair(ending_->trouble, std::string(ending_->reason));
    close_connections(now);
  }
  if (drained) {
    judge_silence(now);
  }
  send_due(now);
}

bool Channel::may_answer(Time now) const {
  const bool waits = handshake_.connection() != PeerGreeting::kNoConnection && !up() &&
                     !dialler().open() && welcome(now);
  return waits && (!dialler().has_addresses() || now - handshake_.peer()->since >= kAnswerAfter);
}

void Channel::open_answer(Time now) {
  abandon(0);
  way_.answer(handshake_.peer()->route);
  handshake_.open(draw_session());
  unpaired_since_ = now;
}

void Channel::keep_way_out(Time now) {
  if (!answering() && may_answer(now)) {
    open_answer(now);
  } else if (connection() != nullptr || (!answering() && welcome(now))) {
    dial(now);
  }
  if ((answering() || dialler().open()) && !up() && !close_due_) {
    judge_handshake(now);
  }
}

void Channel::dial(Time now) {
  const bool dialled = connection() != nullptr;
  if (dialled && up()) {
    return;  // see notice_end
  }
  const Dialler::Phase before = dialler().phase();
  if (auto failure = dialler().work(now)) {
    if (dialled) {
      close_way_out();
    }
    traffic_.trouble = failure->trouble;
    traffic_.reason = std::move(failure->reason);
  } else if (dialler().phase() != before && dialler().phase() == Dialler::Phase::dialling) {
    handshake_.open(draw_session());
  } else if (dialler().phase() != before && dialler().open()) {
    unpaired_since_ = now;
  }
}

/// Ends a handshake that takes too long: a side is there, and the channel is not up.
void Channel::judge_handshake(Time now) {
  const auto limit = std::max<Deadline::Clock::duration>(context_.options.timeout, kHandshake);
  if (now - unpaired_since_ <= limit) {
    return;
  }
  if (handshake_.peer() == nullptr) {
    traffic_.trouble = ChannelTrouble::unanswered;
    traffic_.reason = kUnanswered;
    return;
  }
  if (answering()) {
    cut(handshake_.connection());
  }
  drop_way_out(now, ChannelTrouble::unanswered, "it does not accept the greeting");
}

void Channel::judge_silence(Time now) {
  if (!up() || ending_) {
    return;
  }
  if (const auto allowed = pair_->broken_silence(now)) {
    close_pair(ChannelTrouble::lost,
               fmt::format("nothing was heard for {} ms",
                           std::chrono::ceil<std::chrono::milliseconds>(*allowed).count()));
    close_connections(now);
  }
}

bool Channel::pending(Time now) const {
  if (!has_way_out()) {
    return false;
  }
  if (!up()) {
    return handshake_.due().has_value();
  }
  return pair_->pending(held(now), now) || (leaving_ && !left_ && pair_->empty());
}

void Channel::send_due(Time now) {
  if (!has_way_out()) {
    return;
  }
  for (auto due = handshake_.due(); due && way_.send(*due); due = handshake_.due()) {
    handshake_.sent();
  }
  open_pair(now);
  if (!up()) {
    return;
  }
  pair_->send(way_, held(now), now);
  if (leaving_ && !left_ && pair_->empty()) {
    left_ = way_.send(channel_wire::Bye{});
  }
}

}  // namespace sotto::internal
