// What a peer that is made of bytes needs to meet a real node: the node's address, and an address
// of its own at which nobody hears the node.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

#include "../../comm/internal/meeting/rendezvous.h"
#include "nodes.h"
#include "raw_peer.h"

namespace sotto::test {

inline constexpr std::size_t kDecoyPayload = 1000;  ///< most bytes of a payload

inline std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// Meets rank 0 of a ring of two as rank 1, which is said to listen at `address`.
inline std::string meet_rank_0(const std::shared_ptr<Store>& store, std::string_view address) {
  const auto met = internal::meet(options_for(ring(2), 1, store, kDecoyPayload), "zmq",
                                  {{0, bytes_of(address)}}, generous());
  REQUIRE_MESSAGE(met.ok(), met.status().message());
  return text_of(met->at(0));
}

/// Two nodes of another run, which heed nobody of ours, and the address of one.
struct Decoys {
  Decoys() {
    const auto store = std::make_shared<KeepingStore>();
    spawn(2, [&](Rank rank) {
      auto options = options_for(ring(2), rank, store, kDecoyPayload);
      options.run_id = kRun + 1;
      nodes[static_cast<std::size_t>(rank)] = connect("zmq", options);
    });
    address = listening_address(*store, kRun + 1, 0, 1);
  }
  std::array<std::unique_ptr<Transport>, 2> nodes;
  std::string address;
};

}  // namespace sotto::test
