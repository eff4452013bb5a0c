// A node of a simulation: its algorithm, where its thread is in a round, and where its time went.
//
// Plain values. Owns its algorithm.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include <sotto/optim/algorithm.h>
#include <sotto/sim/time.h>

#include "frame_copies.h"

namespace sotto {

struct SimulatedNode {
  /// The position of a node's thread in its round.
  enum class Stage : std::uint8_t {
    absent,
    between_rounds,
    before_gradient,
    computing,
    gradient_taken,  ///< the time for it is over
    stepping,
    draining,
    ended,
  };
  /// The work of a node's algorithm; posted exchanges are under way beside it.
  enum class Codec : std::uint8_t {
    idle,
    encoding,        ///< the node's thread encodes, and waits for it
    encoding_aside,  ///< encoding beside the node's thread
    decoding,
    computing,  ///< computing behind an exchange that is decoded
  };
  /// What a node waits for by itself: of each kind it has one event at most at a time.
  enum Timer : std::uint32_t {
    starts,
    computed,  ///< a gradient is taken
    coded,     ///< the node's thread has encoded
    posted,    ///< an exchange that the node's thread does not wait for is encoded
    carried,   ///< an exchange is complete, and decoded
    deadline,
    kTimers,
  };
  /// An exchange that is being encoded.
  struct Encoding {
    Exchange exchange;
    std::vector<CopiedFrame> frames;
  };
  /// Time spent, as NodeReport has it.
  struct Spent {
    SimTime compute = 0;
    SimTime codec = 0;
    SimTime wire = 0;
    SimTime idle = 0;
  };

  bool ended() const { return stage == Stage::ended; }
  /// Whether an event of the node's own is due, now or once it resumes.
  bool waits() const {
    return std::ranges::any_of(due, [](SimTime time) { return time != kNever; });
  }

  std::unique_ptr<Algorithm> algorithm;
  Stage stage = Stage::absent;
  Codec codec = Codec::idle;
  bool deadline_due = false;
  bool leaving = false;
  bool suspended = false;  ///< held or away
  bool held = false;       ///< an event has suspended it
  bool away = false;       ///< the availability says that the node is away
  /// Times of the next event of each kind, kNever when none is due; while the node is suspended,
  /// the time that each has still to go.
  std::array<SimTime, kTimers> due = never();
  SimTime heard = 0;
  SimTime stood_since = 0;  ///< time when the node was suspended
  Round rounds = 0;         ///< rounds finished
  SimTime start = 0;
  SimTime end = 0;
  SimTime accounted = 0;  ///< time until which `spent` is booked
  Spent spent = {};
  std::unique_ptr<Encoding> encoding;  ///< null until something takes time to encode

 private:
  static constexpr std::array<SimTime, kTimers> never() {
    std::array<SimTime, kTimers> due = {};
    due.fill(kNever);
    return due;
  }
};

}  // namespace sotto
