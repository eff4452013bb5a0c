// The nodes of a job in the middle of a round, for tests that show one of them other frames.
#pragma once

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/frame.h>

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

}  // namespace sotto::test
