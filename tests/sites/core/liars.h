// A network of sites, some of which lie in what they send: their messages are changed, or held
// back, on the way.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <functional>
#include <utility>
#include <variant>
#include <vector>

#include <doctest/doctest.h>

#include "sites/core/site_network.h"

namespace sotto::test {

/// Changes what a site lets go, or drops it.
using Lie = std::function<bool(sites::Message&, std::vector<std::byte>& payload)>;

/// A network in which some sites lie in what they send.
class Liars {
 public:
  Liars(SiteNetworkOptions options, std::vector<std::size_t> liars, Lie lie)
      : network(std::move(options)), liars_(std::move(liars)), lie_(std::move(lie)) {
    network.connect_all();
    deliver_all();
  }

  bool lies(std::size_t site) const { return std::ranges::count(liars_, site) > 0; }

  /// A round of all, in which nobody waits for liars.
  void round() {
    network.connect_all();
    deliver_all();
    for (std::size_t i = 0; i < network.size(); ++i) {
      network.advance(i, false, true);
    }
    deliver_all();
    for (std::size_t i = 0; i < network.size(); ++i) {
      if (network.node(i).phase == SiteNetwork::Phase::offered) {
        network.collect(i);
      }
    }
    deliver_all();
  }
  void rounds(int count) {
    for (int k = 0; k < count; ++k) {
      round();
    }
  }

  /// Parcels of `from` that are in the state of `to`.
  sites::Sequence applied(std::size_t from, std::size_t to) {
    return network.peers(to)[network.place(to, from)].applied;
  }
  PeerState seen(std::size_t by, std::size_t peer) {
    return network.peers(by)[network.place(by, peer)];
  }

  /// All that is under way arrives, changed where its sender lies.
  void deliver_all() {
    for (auto pairs = network.loaded(); !pairs.empty(); pairs = network.loaded()) {
      for (const auto& [from, to] : pairs) {
        if (!network.connected(from, to) || network.queue(from, to).empty()) {
          continue;
        }
        auto& waiting = network.queue(from, to);
        if (lies(from) && !corrupt(waiting.front())) {
          waiting.pop_front();
          continue;
        }
        (void)network.deliver(from, to);
      }
    }
  }

  SiteNetwork network;

 private:
  bool corrupt(std::vector<std::byte>& bytes) {
    auto parsed = sites::parse(bytes, network.options().dimension);
    REQUIRE(parsed.ok());
    std::vector<std::byte> payload;
    if (auto* parcel = std::get_if<sites::Parcel>(&*parsed)) {
      payload.assign(parcel->payload.begin(), parcel->payload.end());
      parcel->payload = payload;
    }
    if (!lie_(*parsed, payload)) {
      return false;
    }
    if (auto* parcel = std::get_if<sites::Parcel>(&*parsed)) {
      parcel->payload = payload;
    }
    bytes = std::visit([](const auto& message) { return encode(message); }, *parsed);
    return true;
  }

  std::vector<std::size_t> liars_;
  Lie lie_;
};

/// Sends nothing but hellos and receipts.
inline bool only_takes(sites::Message& message, std::vector<std::byte>& /*payload*/) {
  if (auto* hello = std::get_if<sites::Hello>(&message)) {
    hello->next = hello->oldest;  // there is nothing to come
  }
  return !std::holds_alternative<sites::Parcel>(message);
}

/// Takes, and says neither so nor anything else.
inline bool swallows(sites::Message& message, std::vector<std::byte>& payload) {
  return only_takes(message, payload) && std::holds_alternative<sites::Hello>(message);
}

inline void set_share(std::vector<std::byte>& payload, double share, double mass) {
  std::memcpy(payload.data(), &share, sizeof share);
  std::memcpy(payload.data() + sizeof share, &mass, sizeof mass);
}

inline void set_values(std::vector<std::byte>& payload, float value) {
  for (std::size_t at = 16; at + sizeof value <= payload.size(); at += sizeof value) {
    std::memcpy(payload.data() + at, &value, sizeof value);
  }
}

}  // namespace sotto::test
