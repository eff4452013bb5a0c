// What honest sites say of a neighbour that lies, by the kind of its lie: for simulated and for
// real sites.
//
// Plain values; thread-safe.
#pragma once

#include <span>
#include <string_view>

#include <sotto/sites/faults/lie_plan.h>

namespace sotto {

/// A word by which honest sites tell of a kind of lie.
struct LieSign {
  LieKind lie;
  /// As status writes it ("confirms-nothing"); the log's event is "peer-" and this word.
  std::string_view word;
  /// Whether lies of the usual strength are told by it. Others tell of weaker ones, and of those of
  /// a site that is refused, or whose pulls are cut, before more is known of it.
  bool usual = true;
};

/// The signs of all kinds, those of a kind together.
std::span<const LieSign> lie_signs();

}  // namespace sotto
