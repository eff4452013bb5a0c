// Sites of one process for the tests of channels: their lists, their channels, and what is expected
// of them.
#pragma once

#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <sotto/comm/channels.h>

#include "nodes.h"
#include "support/free_port.h"

namespace sotto::test {

using Bytes = std::vector<std::byte>;

/// Every byte depends on the name and its place.
inline Bytes message_of(std::uint64_t name, std::size_t bytes) {
  Bytes message(bytes);
  std::uint64_t state = name * 2654435761U + 1;
  for (std::size_t at = 0; at < bytes; at += sizeof state) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    std::memcpy(message.data() + at, &state, std::min(sizeof state, bytes - at));
  }
  return message;
}

/// A site's channels with what tests ask of them.
class SiteEnd {
 public:
  explicit SiteEnd(ChannelOptions options) : peers(options.security.peers) {
    auto made = make_channels(options);
    REQUIRE_MESSAGE(made.ok(), made.status().message());
    channels_ = std::move(*made);
  }

  Channels& channels() { return *channels_; }
  ChannelEvent next() {
    auto event = channels_->poll(generous());
    REQUIRE_MESSAGE(event.ok(), event.status().message());
    return std::move(*event);
  }
  void expect_up(Rank peer) {
    const auto event = next();
    REQUIRE_MESSAGE(event.kind == ChannelEvent::Kind::up, event.reason);
    CHECK(event.peer == peer);
  }
  /// Drops everything else.
  void wait_up(Rank peer) {
    for (;;) {
      const auto event = next();
      if (event.kind == ChannelEvent::Kind::up && event.peer == peer) {
        return;
      }
    }
  }
  void expect_message(Rank peer, const Bytes& message) {
    const auto event = next();
    REQUIRE_MESSAGE(event.kind == ChannelEvent::Kind::message, event.reason);
    CHECK(event.peer == peer);
    CHECK(event.message == message);
  }
  void expect_down(Rank peer, std::string_view reason) {
    const auto event = next();
    REQUIRE(event.kind == ChannelEvent::Kind::down);
    CHECK(event.peer == peer);
    CHECK_MESSAGE(event.reason.find(reason) != std::string::npos, event.reason);
  }
  void expect_nothing(std::chrono::milliseconds time = std::chrono::milliseconds(100)) {
    const auto event = channels_->poll(Deadline::after(time));
    REQUIRE_FALSE(event.ok());
    CHECK(event.status().fault() == Fault::deadline);
  }
  void send(Rank peer, std::span<const std::byte> message) {
    const Status sent = channels_->send(peer, message);
    REQUIRE_MESSAGE(sent.ok(), sent.message());
  }
  ChannelTraffic traffic(Rank peer) {
    for (const ChannelTraffic& one : channels_->traffic()) {
      if (one.peer == peer) {
        return one;
      }
    }
    FAIL("no such peer");
    return {};
  }

  std::shared_ptr<AllowList> peers;

 private:
  std::unique_ptr<Channels> channels_;
};

/// Sites that all know each other, at ports of their own.
class Sites {
 public:
  static constexpr std::size_t kMostMessage = 100'000;

  explicit Sites(int count) : lines_(lines_of(count)) {
    for (auto& line : lines_) {
      ports_.push_back(free_port());
      line.address = fmt::format("127.0.0.1:{}", ports_.back());
    }
  }

  int port(Rank rank) const { return ports_[static_cast<std::size_t>(rank)]; }
  const std::vector<TrustedPeer>& lines() const { return lines_; }
  /// Options of a site; change them as the test needs.
  ChannelOptions options(Rank rank) const {
    return {.security = {keys_of(rank), std::make_shared<AllowList>(lines_)},
            .rank = rank,
            .max_message_bytes = kMostMessage,
            .max_queued_bytes = 3 * kMostMessage,
            .timeout = std::chrono::seconds(5)};
  }
  /// … with another way to a peer.
  ChannelOptions options(Rank rank, Rank peer, int port) const {
    auto made = options(rank);
    auto lines = lines_;
    lines[static_cast<std::size_t>(peer)].address = fmt::format("127.0.0.1:{}", port);
    made.security.peers = std::make_shared<AllowList>(lines);
    return made;
  }

 private:
  std::vector<TrustedPeer> lines_;
  std::vector<int> ports_;
};

/// Two sites that have met.
struct MetSites {
  explicit MetSites(const ChannelOptions& first, const ChannelOptions& second)
      : a(first), b(second) {
    a.expect_up(second.rank);
    b.expect_up(first.rank);
  }
  SiteEnd a;
  SiteEnd b;
};

}  // namespace sotto::test
