#include "channel.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <sodium.h>

#include "../../internal/host_port.h"

namespace sotto::internal {
namespace {

using namespace std::chrono_literals;

/// Between two attempts: from kFirstPause, doubling up to kLongestPause.
constexpr std::chrono::milliseconds kFirstPause = 50ms;
constexpr std::chrono::milliseconds kLongestPause = 5s;
/// How long an attempt waits at first, before it begins anew, for any process to take the
/// connection; attempts that a crowded host drops are dropped without a word. A quarter longer each
/// time: a link may be slow.
constexpr std::chrono::milliseconds kDialTime = 400ms;
/// How long a name server may take.
constexpr std::chrono::milliseconds kLookupTime = 10s;
/// How long a peer's connection waits for one of this side's, where there is an address for it.
constexpr std::chrono::milliseconds kAnswerAfter = 1s;
/// Messages of one peer that are taken before others have their turn.
constexpr int kRepliesAtOnce = 64;
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
    "it lets this site connect, and does not answer: another process with this site's key is in "
    "touch with it, or its program is older than one that answers on the same connection and "
    "cannot reach the address that its list has for this site";
constexpr const char* kAwaited =
    "this site's list has no address for it: it is to connect to this site, and has not yet";
constexpr const char* kNoWay =
    "neither side can dial: this site listens nowhere, and its list has no address for the peer; "
    "one of the two needs an address, its own or a forwarder's";

/// How ZeroMQ writes an endpoint that is dialled from one of these addresses, with spaces between
/// them: "tcp://10.0.0.5:0;10.0.0.2:9001". Nothing where none is of its kind.
std::optional<std::string> endpoint_from(const std::string& sources, const std::string& endpoint) {
  constexpr std::string_view kScheme = "tcp://";
  const auto ipv6 = [](std::string_view text) { return text.find('[') != std::string_view::npos; };
  const auto all = split_addresses(sources);
  if (all.empty()) {
    return endpoint;
  }
  for (const std::string& source : all) {
    if (ipv6(source) == ipv6(endpoint)) {
      return fmt::format("{}{}:0;{}", kScheme, source, endpoint.substr(kScheme.size()));
    }
  }
  return std::nullopt;
}

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
  std::vector<PublicKey> keys;
  if (trusted) {
    for (const PeerKey& one : line->keys()) {
      keys.push_back(one.key);
    }
  }
  const auto addresses = trusted ? split_addresses(line->address) : std::vector<std::string>();
  const bool moved = addresses != addresses_;
  const bool listed_before = !keys_.empty();
  if (keys != keys_) {
    use_keys(std::move(keys));
  }
  if (moved) {
    addresses_ = addresses;
    next_address_ = 0;
    lookup_.reset();
    endpoints_.clear();
    sources_.clear();
    ++sources_version_;
    if (listed_before && trusted && !hang_up_) {
      fall(ChannelTrouble::closed, "the list of peers has another address for it");
    }
  }
  if (trusted && addresses_.empty() && traffic_.trouble == ChannelTrouble::none && !up()) {
    const bool listens = !context_.listener.endpoints().empty();
    traffic_.trouble = listens ? ChannelTrouble::awaited : ChannelTrouble::unreachable;
    traffic_.reason = listens ? kAwaited : kNoWay;
  }
}

/// What a key proved that is listed no more is over; what another one of the peer's proved stays.
void Channel::use_keys(std::vector<PublicKey> keys) {
  const bool same_peer = std::ranges::any_of(
      keys_, [&](const PublicKey& key) { return std::ranges::find(keys, key) != keys.end(); });
  const bool listed = !keys_.empty();
  keys_ = std::move(keys);
  next_key_ = 0;
  const bool proof_is_gone =
      (in_ && !has_key(in_->key)) || (connection_ != nullptr && !has_key(dialled_key_));
  if (listed && (!same_peer || proof_is_gone)) {
    context_.events.forget(traffic_.peer);
    fall(ChannelTrouble::revoked, kRevoked);
  }
  if (rival_ && !has_key(rival_->in.key)) {
    rival_.reset();  // as a remnant it is cut
  }
  if (!same_peer) {
    barred_until_ = {};
    lookup_.reset();
  }
}

bool Channel::has_key(std::string_view key) const {
  return std::ranges::any_of(keys_, [&](const PublicKey& one) { return one.text() == key; });
}

std::set<Source> Channel::sources() const {
  std::set<Source> all;
  for (const auto& [address, found] : sources_) {
    all.insert(found.begin(), found.end());
  }
  return all;
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
  // It is there: no need to be patient with it.
  next_attempt_ = std::min(next_attempt_, std::max(now, connecting_since_ + kFirstPause));
}

bool Channel::hear_back(Time now) {
  for (int taken = 0; connection_ != nullptr && taken < kRepliesAtOnce; ++taken) {
    zmq::message_t body;
    if (hang_up_ || !connection_->receive(body)) {
      return true;
    }
    const auto message = channel_wire::parse(view_of(body));
    const auto* greeting = message.ok() ? std::get_if<channel_wire::Greeting>(&*message) : nullptr;
    if (!message.ok()) {
      offend(message.status().message(), now);
    } else if (in_ && in_->own) {
      heed(*message, now);
    } else if (greeting != nullptr) {
      greeted_back_ = true;
      greet_back(greeting->session, now);
    } else if (!greeted_back_) {
      offend("it spoke before it greeted", now);
    }
  }
  return connection_ == nullptr;
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
  let_in({.route = {}, .key = dialled_key_, .since = now, .own = true, .session = session}, now);
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
  try_later(now, trouble, std::move(reason));
}

void Channel::try_later(Time now, ChannelTrouble trouble, std::string reason) {
  try_next(now, trouble, std::move(reason));
  if (!endpoints_.empty() || (!addresses_.empty() && next_address_ % addresses_.size() != 0)) {
    return;  // there is another way to try
  }
  pause_ = std::clamp(2 * pause_, kFirstPause, kLongestPause);
  next_attempt_ = now + pause_;
}

void Channel::try_next(Time now, ChannelTrouble trouble, std::string reason) {
  traffic_.trouble = trouble;
  traffic_.reason = std::move(reason);
  next_attempt_ = now + kFirstPause;
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
  const bool waits = in_ && in_->connection >= 0 && !up() && !connected_ && welcome(now);
  return waits && (addresses_.empty() || now - in_->since >= kAnswerAfter);
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
  } else if (connection_ != nullptr) {
    look_at_dial(now);
  } else if (!answering_ && welcome(now) && now >= next_attempt_) {
    connect(now);
  }
  if ((answering_ || connected_) && !up() && !hang_up_) {
    look_at_meeting(now);
  }
}

void Channel::look_at_dial(Time now) {
  const auto limit = std::max<Deadline::Clock::duration>(context_.options.timeout, kHandshake);
  const auto state = connection_->look();
  const std::string where = dialled_;
  if (state == PeerConnection::State::broken && up()) {
    end_soon(now, connection_->trouble(), connection_->reason());
  } else if (state == PeerConnection::State::broken) {
    const auto trouble = connection_->trouble();
    if (trouble == ChannelTrouble::other_key && next_key_ + 1 < keys_.size()) {
      ++next_key_;
      endpoints_.push_front(where);  // with the next of its keys
    } else {
      next_key_ = 0;
    }
    drop_connection(now, trouble, connection_->reason());
  } else if (state == PeerConnection::State::opening && !connection_->reached() &&
             now - connecting_since_ > std::min(dial_time_, limit)) {
    dial_time_ = std::min<Deadline::Clock::duration>(dial_time_ * 5 / 4, limit);
    abandon(0);
    try_next(now, ChannelTrouble::unreachable, "no answer from " + where);
  } else if (state == PeerConnection::State::opening && now - connecting_since_ > limit) {
    drop_connection(now, ChannelTrouble::unreachable,
                    fmt::format("what listens at {} does not shake hands", where));
  } else if (state == PeerConnection::State::open && !connected_) {
    connected_ = true;
    dial_time_ = kDialTime;
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

bool Channel::find_endpoints(Time now) {
  if (!endpoints_.empty()) {
    return true;
  }
  if (addresses_.empty()) {
    return false;
  }
  const std::string& address = addresses_[next_address_ % addresses_.size()];
  if (!lookup_) {
    lookup_.emplace(address);
    lookup_since_ = now;
  }
  const bool late = now - lookup_since_ > kLookupTime;
  if (!lookup_->done() && !late) {
    return false;
  }
  const auto found = lookup_->done() ? lookup_->endpoints() : std::vector<std::string>();
  lookup_.reset();
  endpoints_.assign(found.begin(), found.end());
  std::set<Source> sources;
  for (const std::string& endpoint : found) {
    if (const auto source = source_of_endpoint(endpoint)) {
      sources.insert(*source);
    }
  }
  if (!found.empty() && sources_[address] != sources) {
    sources_[address] = std::move(sources);
    ++sources_version_;
  }
  ++next_address_;
  if (endpoints_.empty()) {
    const auto reason = late ? "nobody says within 10 s which host is at " + address
                             : "no host is known at " + address;
    try_later(now, ChannelTrouble::unreachable, reason);
  }
  return !endpoints_.empty();
}

void Channel::connect(Time now) {
  if (!find_endpoints(now)) {
    return;
  }
  const std::string endpoint = std::move(endpoints_.front());
  endpoints_.pop_front();
  dial(endpoint, now);
}

void Channel::dial(const std::string& endpoint, Time now) {
  const auto from = endpoint_from(context_.options.source, endpoint);
  if (!from) {
    try_later(now, ChannelTrouble::unreachable,
              fmt::format("{} is of another kind than the source addresses, {}", endpoint,
                          context_.options.source));
    return;
  }
  const PublicKey& key = keys_[next_key_ % keys_.size()];
  connecting_since_ = now;
  dial_time_ = std::max<Deadline::Clock::duration>(dial_time_, kDialTime);
  try {
    connection_ = std::make_unique<PeerConnection>(
        context_.context,
        ConnectionOptions{.endpoint = *from,
                          .max_message_bytes = channel_wire::kMaxWireBytes,
                          .curve = CurveClient{context_.options.security.own, key},
                          .participant = "site"});
    session_ = draw_session();
    dialled_ = endpoint;
    dialled_key_ = key.text();
  } catch (const zmq::error_t& error) {
    try_later(now, ChannelTrouble::unreachable,
              fmt::format("connecting to {}: {}", endpoint, error.what()));
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
  const auto bytes = channel_wire::write(message);
  return answering_ ? context_.listener.send(in_->route, zmq::message_t(bytes.data(), bytes.size()))
                    : connection_->send(bytes);
}

/// The listener tells only when it does not take a message.
bool Channel::writable() { return answering_ || connection_->writable(); }

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
