#include "dialler.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "../../internal/address/host_port.h"
#include "channel_wire.h"

namespace sotto::internal {
namespace {

using namespace std::chrono_literals;

constexpr std::chrono::milliseconds kLongestPause = 5s;
/// How long an attempt waits at first, before it begins anew, for any process to take the
/// connection; attempts that a crowded host drops are dropped without a word. A quarter longer each
/// time: a link may be slow.
constexpr std::chrono::milliseconds kDialTime = 400ms;
/// How long a name server may take.
constexpr std::chrono::milliseconds kLookupTime = 10s;

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

}  // namespace

bool Dialler::use_addresses(const std::vector<std::string>& addresses) {
  if (addresses == addresses_) {
    return false;
  }
  addresses_ = addresses;
  next_address_ = 0;
  forget_lookup();
  endpoints_.clear();
  sources_.clear();
  ++sources_version_;
  return true;
}

void Dialler::use_keys(std::vector<PublicKey> keys) {
  keys_ = std::move(keys);
  next_key_ = 0;
}

void Dialler::forget_lookup() {
  lookup_.reset();
  if (phase_ == Phase::looking_up) {
    phase_ = Phase::waiting;
  }
}

bool Dialler::has_key(std::string_view key) const {
  return std::ranges::any_of(keys_, [&](const PublicKey& one) { return one.text() == key; });
}

std::set<Source> Dialler::sources() const {
  std::set<Source> all;
  for (const auto& [address, found] : sources_) {
    all.insert(found.begin(), found.end());
  }
  return all;
}

std::optional<DialFailure> Dialler::work(Time now) {
  if (connection_ != nullptr) {
    return look(now);
  }
  return now >= next_attempt_ ? begin(now) : std::nullopt;
}

std::optional<DialFailure> Dialler::broken() {
  return connection_->look() == PeerConnection::State::broken
             ? std::optional(DialFailure{connection_->trouble(), connection_->reason()})
             : std::nullopt;
}

void Dialler::abandon(int linger_ms) {
  if (connection_ != nullptr) {
    connection_->linger(linger_ms);
    connection_.reset();
    phase_ = Phase::waiting;
  }
}

void Dialler::try_soon(Time now) { next_attempt_ = now + kFirstPause; }

void Dialler::hasten(Time now) {
  next_attempt_ = std::min(next_attempt_, std::max(now, dialled_since_ + kFirstPause));
}

void Dialler::try_later(Time now) {
  try_soon(now);
  if (!endpoints_.empty() || (!addresses_.empty() && next_address_ % addresses_.size() != 0)) {
    return;  // there is another way to try
  }
  pause_ = std::clamp(2 * pause_, kFirstPause, kLongestPause);
  next_attempt_ = now + pause_;
}

DialFailure Dialler::failed(Time now, ChannelTrouble trouble, std::string reason) {
  abandon(0);
  phase_ = Phase::waiting;
  try_later(now);
  return {trouble, std::move(reason)};
}

std::optional<DialFailure> Dialler::look(Time now) {
  const auto limit = std::max<Deadline::Clock::duration>(options_.timeout, kHandshake);
  const auto state = connection_->look();
  if (state == PeerConnection::State::open && phase_ == Phase::dialling) {
    phase_ = Phase::open;
    dial_time_ = kDialTime;
  } else if (state == PeerConnection::State::broken) {
    const auto trouble = connection_->trouble();
    if (trouble == ChannelTrouble::other_key && next_key_ + 1 < keys_.size()) {
      ++next_key_;
      endpoints_.push_front(dialled_);  // with the next of its keys
    } else {
      next_key_ = 0;
    }
    return failed(now, trouble, connection_->reason());
  } else if (state == PeerConnection::State::opening && !connection_->reached() &&
             now - dialled_since_ > std::min(dial_time_, limit)) {
    dial_time_ = std::min<Deadline::Clock::duration>(dial_time_ * 5 / 4, limit);
    abandon(0);
    try_soon(now);
    return DialFailure{ChannelTrouble::unreachable, "no answer from " + dialled_};
  } else if (state == PeerConnection::State::opening && now - dialled_since_ > limit) {
    return failed(now, ChannelTrouble::unreachable,
                  fmt::format("what listens at {} does not shake hands", dialled_));
  }
  return std::nullopt;
}

std::optional<DialFailure> Dialler::begin(Time now) {
  if (endpoints_.empty()) {
    if (auto failure = find_endpoints(now); failure || endpoints_.empty()) {
      return failure;
    }
  }
  const std::string endpoint = std::move(endpoints_.front());
  endpoints_.pop_front();
  return dial(endpoint, now);
}

std::optional<DialFailure> Dialler::find_endpoints(Time now) {
  if (addresses_.empty()) {
    return std::nullopt;
  }
  const std::string& address = addresses_[next_address_ % addresses_.size()];
  if (!lookup_) {
    lookup_.emplace(address);
    lookup_since_ = now;
    phase_ = Phase::looking_up;
  }
  const bool late = now - lookup_since_ > kLookupTime;
  if (!lookup_->done() && !late) {
    return std::nullopt;
  }
  const auto found = lookup_->done() ? lookup_->endpoints() : std::vector<std::string>();
  forget_lookup();
  endpoints_.assign(found.begin(), found.end());
  note_sources(address, found);
  ++next_address_;
  if (endpoints_.empty()) {
    return failed(now, ChannelTrouble::unreachable,
                  late ? "nobody says within 10 s which host is at " + address
                       : "no host is known at " + address);
  }
  return std::nullopt;
}

void Dialler::note_sources(const std::string& address, const std::vector<std::string>& endpoints) {
  std::set<Source> sources;
  for (const std::string& endpoint : endpoints) {
    if (const auto source = source_of_endpoint(endpoint)) {
      sources.insert(*source);
    }
  }
  if (!endpoints.empty() && sources_[address] != sources) {
    sources_[address] = std::move(sources);
    ++sources_version_;
  }
}

std::optional<DialFailure> Dialler::dial(const std::string& endpoint, Time now) {
  const auto from = endpoint_from(options_.source, endpoint);
  if (!from) {
    return failed(now, ChannelTrouble::unreachable,
                  fmt::format("{} is of another kind than the source addresses, {}", endpoint,
                              options_.source));
  }
  const PublicKey& key = keys_[next_key_ % keys_.size()];
  dialled_since_ = now;
  dial_time_ = std::max<Deadline::Clock::duration>(dial_time_, kDialTime);
  try {
    connection_ = std::make_unique<PeerConnection>(
        context_, ConnectionOptions{.endpoint = *from,
                                    .max_message_bytes = channel_wire::kMostWireBytes,
                                    .curve = CurveClient{options_.security.own, key},
                                    .directions = Directions::both,
                                    .participant = "site"});
    phase_ = Phase::dialling;
    dialled_ = endpoint;
    dialled_key_ = key.text();
  } catch (const zmq::error_t& error) {
    return failed(now, ChannelTrouble::unreachable,
                  fmt::format("connecting to {}: {}", endpoint, error.what()));
  }
  return std::nullopt;
}

}  // namespace sotto::internal
