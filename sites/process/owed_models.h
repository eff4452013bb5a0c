// The models that peers have promised a site that is about to begin: each must come on, or the site
// stops waiting for it.
//
// A liar that promises its model and delivers none must not keep a site waiting for as long as a
// large model may take over a slow link.
//
// One thread at a time.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include <sotto/base/ids.h>

namespace sotto {

/// A peer that owes its model.
struct OwedModel {
  Rank peer = 0;
  std::uint64_t bytes = 0;  ///< bytes that have come of it in all, or of anything before it
};

class OwedModels {
 public:
  /// The clock of overdue().
  using Clock = std::chrono::steady_clock;

  /// A peer is given up when none of its bytes came for `quiet`, or the model is not there after
  /// `longest`.
  OwedModels(Clock::duration quiet, Clock::duration longest) : quiet_(quiet), longest_(longest) {}

  /// Returns who is to be given up of `owing`, all that owe a model now.
  std::vector<Rank> overdue(std::span<const OwedModel> owing, Clock::time_point now);

 private:
  struct Debt {
    std::uint64_t bytes = 0;
    Clock::time_point since;     ///< when the peer was found to owe its model
    Clock::time_point advanced;  ///< when its latest bytes came
  };

  Clock::duration quiet_;
  Clock::duration longest_;
  std::map<Rank, Debt> debts_;
};

}  // namespace sotto
