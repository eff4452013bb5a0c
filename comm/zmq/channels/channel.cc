#include "channel.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <sodium.h>

#include "../../internal/host_port.h"

namespace sotto::internal {
namespace {

using namespace std::chrono_literals;

/// How long a peer's connection waits for one of this side's, where there is an address for it.
constexpr std::chrono::milliseconds kAnswerAfter = 1s;
/// Messages of one peer that are taken before others have their turn.
constexpr int kRepliesAtOnce = 64;
/// Chunks that go out before others have their turn.
constexpr int kChunksAtOnce = 16;
/// Gaps between chunks that make a silence.
constexpr int kGapsOfSilence = 4;
/// A pair that is heard so long after a rival came is of another process than the rival.
constexpr auto kRivalry = 2s;
/// Signs of life in a timeout.
constexpr int kSigns = 4;

constexpr const char* kUnanswered =
    "it lets this site connect, and does not answer: another process with this site's key is in "
    "touch with it, or its program is older than one that answers on the same connection and "
    "cannot reach the address that its list has for this site";
constexpr const char* kAwaited =
    "this site's list has no address for it: it is to connect to this site, and has not yet";
constexpr const char* kNoWay =
    "neither side can dial: this site listens nowhere, and its list has no address for the peer; "
    "one of the two needs an address, its own or a forwarder's";

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
  const bool listed_before = !dialler_.keys().empty();
  if (keys != dialler_.keys()) {
    use_keys(std::move(keys));
  }
  const bool moved = dialler_.use_addresses(addresses);
  if (moved && listed_before && trusted && !hang_up_) {
    fall(ChannelTrouble::closed, "the list of peers has another address for it");
  }
  if (trusted && addresses.empty() && traffic_.trouble == ChannelTrouble::none && !up()) {
    const bool listens = !context_.listener.endpoints().empty();
    traffic_.trouble = listens ? ChannelTrouble::awaited : ChannelTrouble::unreachable;
    traffic_.reason = listens ? kAwaited : kNoWay;
  }
}

/// What a key proved that is listed no more is over; what another one of the peer's proved stays.
void Channel::use_keys(std::vector<PublicKey> keys) {
  const bool same_peer = std::ranges::any_of(dialler_.keys(), [&](const PublicKey& key) {
    return std::ranges::find(keys, key) != keys.end();
  });
  const bool listed = !dialler_.keys().empty();
  dialler_.use_keys(std::move(keys));
  const bool proof_is_gone =
      (in_ && !has_key(in_->key)) || (dialler_.connection() != nullptr && !has_key(dialler_.key()));
  if (listed && (!same_peer || proof_is_gone)) {
    context_.events.forget(traffic_.peer);
    fall(ChannelTrouble::revoked, kRevoked);
  }
  if (rival_ && !has_key(rival_->in.key)) {
    rival_.reset();  // as a remnant it is cut
  }
  if (!same_peer) {
    barred_until_ = {};
    dialler_.forget_lookup();
  }
}

Status Channel::send(std::span<const std::byte> message) {
  if (!up() || ending_ || !context_.events.known(traffic_.peer)) {
    return {Fault::peer_lost, fmt::format("the channel to rank {} is down", traffic_.peer)};
  }
  if (message.size() > context_.options.max_message_bytes) {
    return {Fault::malformed, fmt::format("a message of {} bytes where {} are sent at most",
                                          message.size(), context_.options.max_message_bytes)};
  }
  const MessageSender& out = pair_->out;
  const auto most = context_.options.max_queued_bytes;
  if (out.queued_bytes() + message.size() > most ||
      out.queued_messages() * channel_wire::kMessageCost > most) {
    return {Fault::backlog,
            fmt::format("rank {} takes nothing, and {} messages of {} bytes in all wait for it",
                        traffic_.peer, out.queued_messages(), out.queued_bytes())};
  }
  pair_->out.add(message);
  return {};
}

void Channel::close(Time now, std::chrono::milliseconds pause) {
  context_.events.forget(traffic_.peer);
  fall(ChannelTrouble::closed, "it was closed here");
  barred_until_ = std::max(barred_until_, now + pause);
}

ChannelTraffic Channel::traffic() const {
  auto traffic = traffic_;
  traffic.up = up();
  traffic.bytes_sent += up() ? pair_->out.sent_bytes() : 0;
  traffic.contested = contested();
  return traffic;
}

bool Channel::contested() const {
  return up() && rival_ && pair_->heard - rival_->since > kRivalry;
}

void Channel::hear(const Incoming& incoming, Time now) {
  if (hang_up_) {
    hang_up(now);
  }
  const auto message = channel_wire::parse(view_of(incoming.body));
  if (in_ && in_->route == incoming.route) {
    if (message.ok()) {
      heed(*message, now);
    } else {
      punish(message.status().message(), now);
    }
    return;
  }
  if (rival_ && rival_->in.route == incoming.route) {
    rival_->in.phase = In::Phase::stale;  // it may have accepted an older greeting
    return;
  }
  const auto* greeting = message.ok() ? std::get_if<channel_wire::Greeting>(&*message) : nullptr;
  if (greeting != nullptr && welcome(now) && context_.listener.alive(incoming.connection)) {
    greet(incoming, greeting->session, now);
  } else if (!uses(incoming.connection)) {
    context_.listener.cut(incoming.connection);  // too early, or a remnant
  }
}

void Channel::greet(const Incoming& incoming, std::uint64_t session, Time now) {
  In in = {.route = incoming.route,
           .connection = incoming.connection,
           .key = incoming.key,
           .since = now,
           .session = session};
  if (up()) {
    if (rival_) {
      context_.listener.cut(rival_->in.connection);
    }
    rival_ = Rival{std::move(in), now};
    return;
  }
  if (in_ && in_->connection >= 0) {
    context_.listener.cut(in_->connection);
  }
  let_in(std::move(in), now);
}

void Channel::let_in(In in, Time now) {
  if (answering_) {
    abandon(0);  // the way out was the connection before
  }
  in_ = std::move(in);
  unpaired_since_ = now;
  dialler_.hasten(now);
}

bool Channel::hear_back(Time now) {
  for (int taken = 0; connection() != nullptr && taken < kRepliesAtOnce; ++taken) {
    zmq::message_t body;
    if (hang_up_ || !connection()->receive(body)) {
      return true;
    }
    const auto message = channel_wire::parse(view_of(body));
    const auto* greeting = message.ok() ? std::get_if<channel_wire::Greeting>(&*message) : nullptr;
    if (!message.ok()) {
      punish(message.status().message(), now);
    } else if (in_ && in_->own) {
      heed(*message, now);
    } else if (greeting != nullptr) {
      greeted_back_ = true;
      greet_back(greeting->session, now);
    } else if (!greeted_back_) {
      punish("it spoke before it greeted", now);
    }
  }
  return connection() == nullptr;
}

/// The peer speaks on this side's connection.
void Channel::greet_back(std::uint64_t session, Time now) {
  if (up()) {
    fall(ChannelTrouble::lost, "it has begun to speak on another connection");
    hang_up(now);
    return;
  }
  if (!welcome(now)) {
    return;
  }
  if (in_ && in_->connection >= 0) {
    context_.listener.cut(in_->connection);
  }
  let_in({.route = {}, .key = dialler_.key(), .since = now, .own = true, .session = session}, now);
}

void Channel::heed(const channel_wire::Message& message, Time now) {
  if (pair_) {
    pair_->heard = now;
    if (!within_quota(message, now)) {
      punish(fmt::format("more small messages than {} a second", FrameQuota::kPerSecond), now);
      return;
    }
  }
  if (std::holds_alternative<channel_wire::Greeting>(message)) {
    punish("it greeted twice", now);
  } else if (std::holds_alternative<channel_wire::Bye>(message)) {
    fall(ChannelTrouble::left, "it left");
    hang_up(now);
  } else if (const auto* accept = std::get_if<channel_wire::Accept>(&message)) {
    heed_accept(accept->session, now);
  } else if (in_->phase == In::Phase::stale) {
    return;  // meant for an older session
  } else if (!up()) {
    punish("it spoke before both sides had accepted", now);
  } else if (const auto* chunk = std::get_if<channel_wire::Chunk>(&message)) {
    heed_chunk(*chunk, now);
  } else if (const auto* receipt = std::get_if<channel_wire::Receipt>(&message)) {
    if (const auto taken = pair_->out.take(*receipt, now); !taken) {
      punish(taken.message(), now);
    }
  }
}

bool Channel::within_quota(const channel_wire::Message& message, Time now) {
  const auto* chunk = std::get_if<channel_wire::Chunk>(&message);
  if (chunk == nullptr || chunk->piece.bytes.size() < FrameQuota::kSmall) {
    pair_->quota.take(now);
  }
  return !pair_->quota.far_beyond();
}

std::uint64_t Channel::held(Time now) const {
  return pair_->quota.spent(now) ? pair_->in.window() : context_.events.held(traffic_.peer);
}

void Channel::heed_accept(std::uint64_t session, Time now) {
  if (in_->phase == In::Phase::current) {
    punish("it accepted twice", now);
    return;
  }
  in_->phase = session == session_ ? In::Phase::current : In::Phase::stale;
  rise(now);
}

void Channel::heed_chunk(const channel_wire::Chunk& chunk, Time now) {
  if (pair_->in.arriving()) {
    pair_->chunk_gap = now - pair_->chunk_heard;
  }
  pair_->chunk_heard = now;
  auto taken = pair_->in.take(chunk);
  if (!taken) {
    punish(taken.status().message(), now);
  } else if (*taken) {
    context_.events.message(traffic_.peer, std::move(**taken));
  }
}

void Channel::rise(Time now) {
  if (up() || !open() || !greeted_ || !in_ || in_->phase != In::Phase::current ||
      accepted_ != in_->session) {
    return;
  }
  pair_.emplace(context_.options, now);
  dialler_.succeeded();
  traffic_.trouble = ChannelTrouble::none;
  traffic_.reason.clear();
  traffic_.key = in_->key;
  traffic_.one_connection = answering_ || in_->own;
  ++traffic_.ups;
  context_.events.up(traffic_.peer);
}

/// Down, as far as anybody asks; hang_up does the rest.
void Channel::fall(ChannelTrouble trouble, const std::string& reason) {
  traffic_.trouble = trouble;
  traffic_.reason = reason;
  ending_.reset();
  hang_up_ = true;
  if (up()) {
    traffic_.bytes_sent += pair_->out.sent_bytes();
    pair_.reset();
    context_.events.down(traffic_.peer, reason);
  }
}

void Channel::ended(int connection, Time now) {
  if (rival_ && rival_->in.connection == connection) {
    rival_.reset();
    return;
  }
  in_->connection = -1;
  if (up()) {
    end_soon(now, ChannelTrouble::lost, "its connection ended");
  } else {
    in_.reset();
    if (answering_) {
      abandon(0);
    }
  }
}

void Channel::end_soon(Time now, ChannelTrouble trouble, std::string reason) {
  if (!ending_) {
    ending_ = Ending{now, trouble, std::move(reason)};
  }
}

void Channel::punish(const std::string& what, Time now) {
  ++traffic_.offences;
  fall(ChannelTrouble::offence, "it broke a rule: " + what);
  barred_until_ = std::max(barred_until_, now + context_.options.offence_pause);
  hang_up(now);
}

void Channel::hang_up(Time now) {
  hang_up_ = false;
  if (in_ && in_->connection >= 0) {
    context_.listener.cut(in_->connection);
  }
  in_.reset();
  abandon(0);
  dialler_.try_soon(now);
  if (auto rival = std::exchange(rival_, std::nullopt)) {
    if (welcome(now)) {
      let_in(std::move(rival->in), now);
    } else {
      context_.listener.cut(rival->in.connection);
    }
  }
}

void Channel::abandon(int linger_ms) {
  dialler_.abandon(linger_ms);
  forget_way_out();
}

void Channel::forget_way_out() {
  greeted_back_ = false;
  answering_ = false;
  session_ = 0;
  greeted_ = false;
  accepted_ = 0;
  if (in_ && in_->own) {
    in_.reset();
  } else if (in_ && in_->phase == In::Phase::current) {
    in_->phase = In::Phase::stale;
  }
}

void Channel::drop_connection(Time now, ChannelTrouble trouble, std::string reason) {
  abandon(0);
  dialler_.try_later(now);
  traffic_.trouble = trouble;
  traffic_.reason = std::move(reason);
}

void Channel::work(Time now, bool drained) {
  if (hang_up_) {
    hang_up(now);
  }
  look_at_connection(now);
  if (ending_ && drained && now - ending_->since >= kSettle) {
    fall(ending_->trouble, std::string(ending_->reason));
    hang_up(now);
  }
  if (drained) {
    judge_silence(now);
  }
  speak(now);
}

bool Channel::may_answer(Time now) const {
  const bool waits = in_ && in_->connection >= 0 && !up() && !dialler_.open() && welcome(now);
  return waits && (!dialler_.has_addresses() || now - in_->since >= kAnswerAfter);
}

void Channel::begin_answer(Time now) {
  abandon(0);
  answering_ = true;
  session_ = draw_session();
  unpaired_since_ = now;
}

void Channel::look_at_connection(Time now) {
  if (!answering_ && may_answer(now)) {
    begin_answer(now);
  } else if (connection() != nullptr || (!answering_ && welcome(now))) {
    dial(now);
  }
  if ((answering_ || dialler_.open()) && !up() && !hang_up_) {
    look_at_meeting(now);
  }
}

void Channel::dial(Time now) {
  const bool dialled = connection() != nullptr;
  if (dialled && up()) {
    if (auto broken = dialler_.broken()) {
      end_soon(now, broken->trouble, std::move(broken->reason));
    }
    return;
  }
  const Dialler::Phase before = dialler_.phase();
  if (auto failure = dialler_.work(now)) {
    if (dialled) {
      forget_way_out();
    }
    traffic_.trouble = failure->trouble;
    traffic_.reason = std::move(failure->reason);
  } else if (dialler_.phase() != before && dialler_.phase() == Dialler::Phase::dialling) {
    session_ = draw_session();
  } else if (dialler_.phase() != before && dialler_.open()) {
    unpaired_since_ = now;
  }
}

/// Both sides are there, or this one is, and the channel is not up.
void Channel::look_at_meeting(Time now) {
  const auto limit = std::max<Deadline::Clock::duration>(context_.options.timeout, kHandshake);
  if (now - unpaired_since_ <= limit) {
    return;
  }
  if (!in_) {
    traffic_.trouble = ChannelTrouble::unanswered;
    traffic_.reason = kUnanswered;
    return;
  }
  if (answering_) {
    context_.listener.cut(in_->connection);
  }
  drop_connection(now, ChannelTrouble::unanswered, "it does not accept the greeting");
}

void Channel::judge_silence(Time now) {
  if (!up() || ending_) {
    return;
  }
  const auto gap = pair_->in.arriving() ? pair_->chunk_gap : Deadline::Clock::duration::zero();
  const auto allowed =
      std::max<Deadline::Clock::duration>(context_.options.timeout, kGapsOfSilence * gap);
  if (now - pair_->heard > allowed) {
    fall(ChannelTrouble::lost,
         fmt::format("nothing was heard for {} ms",
                     std::chrono::ceil<std::chrono::milliseconds>(allowed).count()));
    hang_up(now);
  }
}

bool Channel::receipt_due(Time now) const {
  return pair_->in.news(held(now)) || now - pair_->receipted >= context_.options.timeout / kSigns;
}

bool Channel::pending(Time now) const {
  if (!open()) {
    return false;
  }
  if (!up()) {
    return !greeted_ || (in_ && accepted_ != in_->session);
  }
  return receipt_due(now) || pair_->out.ready() || (leaving_ && !left_ && pair_->out.empty());
}

bool Channel::say(const channel_wire::Message& message) {
  const auto bytes = channel_wire::write(message);
  return answering_ ? context_.listener.send(in_->route, zmq::message_t(bytes.data(), bytes.size()))
                    : connection()->send(bytes);
}

/// The listener tells only when it does not take a message.
bool Channel::writable() { return answering_ || connection()->writable(); }

void Channel::speak(Time now) {
  if (!open()) {
    return;
  }
  greeted_ = greeted_ || say(channel_wire::Greeting{session_});
  if (greeted_ && in_ && accepted_ != in_->session && say(channel_wire::Accept{in_->session})) {
    accepted_ = in_->session;
  }
  rise(now);
  if (!up()) {
    return;
  }
  if (receipt_due(now)) {
    const auto receipt = pair_->in.receipt(held(now));
    if (say(receipt)) {
      pair_->in.said(receipt);
      pair_->receipted = now;
    }
  }
  speak_chunks(now);
}

void Channel::speak_chunks(Time now) {
  MessageSender& out = pair_->out;
  for (int i = 0; i < kChunksAtOnce && out.ready() && writable(); ++i) {
    if (!say(out.next())) {
      return;
    }
    out.gone(now);
  }
  if (leaving_ && !left_ && out.empty()) {
    left_ = say(channel_wire::Bye{});
  }
}

}  // namespace sotto::internal
