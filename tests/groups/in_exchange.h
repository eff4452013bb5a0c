// The nodes of a job in the middle of a round, for tests that show one of them other frames.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/frame.h>
#include <sotto/base/philox.h>

#include "optim/other_frames.h"
#include "runs.h"

namespace sotto::test {

/// All nodes in one exchange of their first round, in which all take part; the frames have come.
struct InExchange {
  /// The exchange number `number` of the round.
  explicit InExchange(const ProgramJob& job, std::size_t number = 0)
      : runner(job), exchanges(static_cast<std::size_t>(job.nodes)) {
    for (Rank rank = 0; rank < job.nodes; ++rank) {
      nodes.push_back(runner.algorithm(rank));
      inputs.emplace_back(job.dimension);
      normal_input(job.seed, rank, 0, inputs.back());
      nodes.back()->begin_round();
      REQUIRE(nodes.back()->take_gradient(inputs.back()).ok());
    }
    for (std::size_t i = 0; i <= number; ++i) {
      for (std::size_t rank = 0; rank < nodes.size(); ++rank) {
        const auto more = nodes[rank]->next_exchange(exchanges[rank]);
        REQUIRE(more.ok());
        REQUIRE(*more);
      }
      hand_over();
      for (std::size_t rank = 0; rank < nodes.size() && i < number; ++rank) {
        REQUIRE(nodes[rank]->complete(exchanges[rank]).ok());
      }
    }
  }

  /// The edge along which `to` hears `from`.
  std::size_t edge(std::size_t to, Rank from) const {
    const auto& receives = exchanges[to].receives;
    const auto at = std::ranges::find(receives, from, &Receive::from);
    REQUIRE(at != receives.end());
    return static_cast<std::size_t>(at - receives.begin());
  }
  /// The frame along it.
  Bytes frame(std::size_t to, Rank from) const {
    return copy_of(exchanges[to].receives[edge(to, from)].frame());
  }

  ProgramRunner runner;
  std::vector<std::unique_ptr<Algorithm>> nodes;
  std::vector<std::vector<float>> inputs;
  std::vector<Exchange> exchanges;

 private:
  void hand_over() {
    for (std::size_t rank = 0; rank < nodes.size(); ++rank) {
      for (Receive& receive : exchanges[rank].receives) {
        for (const Send& send : exchanges[static_cast<std::size_t>(receive.from)].sends) {
          if (send.to == static_cast<Rank>(rank)) {
            std::ranges::copy(send.frame, receive.buffer.begin());
            receive.bytes = send.frame.size();
          }
        }
      }
    }
  }
};

/// `frame` with another payload, sealed anew with this number of elements.
inline Bytes with_payload(const Bytes& frame, const Bytes& payload, std::uint64_t elements) {
  FrameHeader header = parse_frame(frame)->header;
  header.payload_bytes = payload.size();
  header.elements = elements;
  Bytes whole(kFrameHeaderBytes + payload.size());
  std::ranges::copy(payload, whole.begin() + kFrameHeaderBytes);
  seal_frame(header, whole);
  return whole;
}

/// The payload of a frame.
inline Bytes payload_of(const Bytes& frame) {
  return {frame.begin() + kFrameHeaderBytes, frame.end()};
}

/// Any bytes at all in place of the payload that is due: they are refused and counted, or taken,
/// and then the right frame is taken; nothing else happens.
/// What is taken may make a fault later, in which `later` stands.
inline void fuzz_payloads(std::uint64_t seed, const ProgramJob& job, int cases,
                          std::string_view later = {}) {
  for (int i = 0; i < cases; ++i) {
    CAPTURE(i);
    InExchange open(job);
    RandomStream stream({.seed = seed, .round = static_cast<Round>(i), .purpose = Purpose::test});
    OtherFrames frames(open.exchanges[0]);
    const std::size_t edge = stream.below(frames.count());
    Bytes payload = payload_of(frames.right(edge));
    const std::uint64_t kind = stream.below(4);
    if (kind == 0) {
      payload.resize(stream.below(payload.size() + 1));
    } else if (kind == 1) {
      payload.resize(payload.size() + 1 + stream.below(40), std::byte{0xFF});
    }
    for (std::uint64_t flips = stream.below(4); flips > 0 && !payload.empty() && kind > 0;
         --flips) {
      payload[stream.below(std::min<std::size_t>(payload.size(), kind == 3 ? 6 : payload.size()))] =
          static_cast<std::byte>(stream.below(256));
    }
    const std::uint64_t elements = stream.below(3) == 0 ? stream.next_u64() : 12;
    frames.show(edge, with_payload(frames.right(edge), payload, elements));
    const Status status = open.nodes[0]->complete(frames.exchange());
    CAPTURE(status.message());
    if (!status.ok() && (later.empty() || status.message().find(later) == std::string::npos)) {
      CHECK(status.message().find("from node " + std::to_string(frames.from(edge))) !=
            std::string::npos);
      CHECK(open.nodes[0]->counters().bad_frames == 1);
      frames.show_right(edge);
      const Status right = open.nodes[0]->complete(frames.exchange());
      CHECK_MESSAGE(right.ok(), right.message());
    }
  }
}

}  // namespace sotto::test
