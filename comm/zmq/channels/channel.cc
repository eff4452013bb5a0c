#include "channel.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <sodium.h>

namespace sotto::internal {
namespace {

using namespace std::chrono_literals;

/// Between two attempts: from kFirstPause, doubling up to kLongestPause.
constexpr std::chrono::milliseconds kFirstPause = 50ms;
constexpr std::chrono::milliseconds kLongestPause = 5s;
/// For what takes a few messages to and fro, if the timeout is shorter.
constexpr std::chrono::milliseconds kHandshake = 2s;
/// Chunks that go out before others have their turn.
constexpr int kChunksAtOnce = 16;
/// Gaps between chunks that make a silence.
constexpr int kGapsOfSilence = 4;
/// A pair that is heard so long after a rival came is of another process than the rival.
constexpr auto kRivalry = 2s;
/// Signs of life in a timeout.
constexpr int kSigns = 4;

constexpr const char* kUnanswered =
    "it lets this site connect, and does not connect to it: it cannot reach the address that its "
    "list has for this site, or another process with this site's key is in touch with it";

std::uint64_t draw_session() {
  std::uint64_t session = 0;
  while (session == 0) {
    ::randombytes_buf(&session, sizeof session);
  }
  return session;
}

}  // namespace

void Channel::list(const std::optional<TrustedPeer>& line) {
  const bool trusted = line && (line->may_send || line->send_to);
  const auto key = trusted ? line->key.text() : std::string();
  if (key != key_) {
    if (!key_.empty()) {
      context_.events.forget(traffic_.peer);
      fall(ChannelTrouble::revoked, kRevoked);
      rival_.reset();  // as a remnant it is cut
    }
    key_ = key;
    barred_until_ = {};
    lookup_.reset();
  } else if (trusted && trusted_.address != line->address) {
    lookup_.reset();
    fall(ChannelTrouble::closed, "the list of peers has another address for it");
  }
  trusted_ = trusted ? *line : TrustedPeer{};
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
    return {Fault::budget,
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
      offend(message.status().message(), now);
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
  } else if (!on(incoming.connection)) {
    context_.listener.cut(incoming.connection);  // too early, or a remnant
  }
}

void Channel::greet(const Incoming& incoming, std::uint64_t session, Time now) {
  In in = {.route = incoming.route, .connection = incoming.connection, .session = session};
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
  in_ = std::move(in);
  unpaired_since_ = now;
  // It is there: no need to be patient with it.
  next_attempt_ = std::min(next_attempt_, std::max(now, connecting_since_ + kFirstPause));
}

void Channel::heed(const channel_wire::Message& message, Time now) {
  if (pair_) {
    pair_->heard = now;
    if (!within_quota(message, now)) {
      offend(fmt::format("more small messages than {} a second", FrameQuota::kPerSecond), now);
      return;
    }
  }
  if (std::holds_alternative<channel_wire::Greeting>(message)) {
    offend("it greeted twice", now);
  } else if (std::holds_alternative<channel_wire::Bye>(message)) {
    fall(ChannelTrouble::left, "it left");
    hang_up(now);
  } else if (const auto* accept = std::get_if<channel_wire::Accept>(&message)) {
    heed_accept(accept->session, now);
  } else if (in_->phase == In::Phase::stale) {
    return;  // meant for an older session
  } else if (!up()) {
    offend("it spoke before both sides had accepted", now);
  } else if (const auto* chunk = std::get_if<channel_wire::Chunk>(&message)) {
    heed_chunk(*chunk, now);
  } else if (const auto* receipt = std::get_if<channel_wire::Receipt>(&message)) {
    if (const auto taken = pair_->out.take(*receipt, now); !taken) {
      offend(taken.message(), now);
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
    offend("it accepted twice", now);
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
    offend(taken.status().message(), now);
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
  pause_ = kFirstPause;
  traffic_.trouble = ChannelTrouble::none;
  traffic_.reason.clear();
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
  }
}

void Channel::end_soon(Time now, ChannelTrouble trouble, std::string reason) {
  if (!ending_) {
    ending_ = Ending{now, trouble, std::move(reason)};
  }
}

void Channel::offend(const std::string& what, Time now) {
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
  next_attempt_ = now + kFirstPause;
  if (auto rival = std::exchange(rival_, std::nullopt)) {
    if (welcome(now)) {
      let_in(std::move(rival->in), now);
    } else {
      context_.listener.cut(rival->in.connection);
    }
  }
}

void Channel::abandon(int linger_ms) {
  if (connection_ != nullptr) {
    connection_->linger(linger_ms);
  }
  connection_.reset();
  connected_ = false;
  session_ = 0;
  greeted_ = false;
  accepted_ = 0;
  if (in_ && in_->phase == In::Phase::current) {
    in_->phase = In::Phase::stale;
  }
}

void Channel::drop_connection(Time now, ChannelTrouble trouble, std::string reason) {
  abandon(0);
  try_later(now, trouble, std::move(reason));
}

void Channel::try_later(Time now, ChannelTrouble trouble, std::string reason) {
  traffic_.trouble = trouble;
  traffic_.reason = std::move(reason);
  pause_ = std::clamp(2 * pause_, kFirstPause, kLongestPause);
  next_attempt_ = now + pause_;
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

void Channel::look_at_connection(Time now) {
  if (connection_ == nullptr) {
    if (welcome(now) && now >= next_attempt_) {
      connect(now);
    }
    return;
  }
  const auto limit = std::max(context_.options.timeout, kHandshake);
  const auto state = connection_->look();
  if (state == PeerConnection::State::broken && up()) {
    end_soon(now, connection_->trouble(), connection_->reason());
  } else if (state == PeerConnection::State::broken) {
    drop_connection(now, connection_->trouble(), connection_->reason());
  } else if (state == PeerConnection::State::opening && now - connecting_since_ > limit) {
    drop_connection(now, ChannelTrouble::unreachable, "no answer from " + trusted_.address);
  } else if (state == PeerConnection::State::open && !connected_) {
    connected_ = true;
    unpaired_since_ = now;
  } else if (connected_ && in_ && !up() && now - unpaired_since_ > limit) {
    drop_connection(now, ChannelTrouble::unanswered, "it does not accept the greeting");
  } else if (connected_ && !in_ && now - unpaired_since_ > limit) {
    traffic_.trouble = ChannelTrouble::unanswered;
    traffic_.reason = kUnanswered;
  }
}

void Channel::connect(Time now) {
  if (!lookup_) {
    lookup_.emplace(trusted_.address);
  }
  if (!lookup_->done()) {
    return;
  }
  const auto endpoint = std::exchange(lookup_, std::nullopt)->endpoint();
  if (!endpoint) {
    try_later(now, ChannelTrouble::unreachable, "no host is known at " + trusted_.address);
    return;
  }
  connecting_since_ = now;
  try {
    connection_ = std::make_unique<PeerConnection>(
        context_.context,
        ConnectionOptions{.endpoint = *endpoint,
                          .max_message_bytes = channel_wire::kMaxWireBytes,
                          .curve = CurveClient{context_.options.security.own, trusted_.key},
                          .participant = "site"});
    session_ = draw_session();
  } catch (const zmq::error_t& error) {
    try_later(now, ChannelTrouble::unreachable,
              fmt::format("connecting to {}: {}", *endpoint, error.what()));
  }
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
  return connection_->send(channel_wire::write(message));
}

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
  for (int i = 0; i < kChunksAtOnce && out.ready() && connection_->writable(); ++i) {
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
