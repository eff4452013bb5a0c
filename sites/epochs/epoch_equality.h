// What the members of an epoch say of their models and means, and which of them differ from most
// (docs/epochs.md, "Nodes that differ").
//
// A digest is a claim. A member is unequal where more than half of all members have said one digest
// of a step, and it has said another one: no member alone, and no two of five, can make another
// unequal. Where no digest can be that of more than half, nobody can tell which one is right.
//
// A plain state; one thread at a time. Memory: kKept claims for each member.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>

#include <sotto/base/ids.h>
#include <sotto/sites/epochs/epoch_membership.h>
#include <sotto/sites/epochs/epoch_node.h>

namespace sotto::sites {

/// Digests that members have said of one thing, by their places.
using SaidDigests = std::map<std::uint16_t, EpochDigest>;

/// What a member's digests come to.
struct EqualityVerdict {
  std::uint64_t unequal = 0;  ///< places, as bits, with another digest than more than half
  bool tie = false;           ///< they differ, and none can be that of more than half any more
};

/// What these digests come to among so many members.
EqualityVerdict judge(const SaidDigests& said, std::size_t members);

/// Names and digests of those that have said them: "a has 0123…, b has 4567…".
std::string words_of(const SaidDigests& said, const EpochMembership& place);

class EpochEquality {
 public:
  /// Claims of one member that are kept: those of models that wait for their callers may be so many
  /// steps behind others'.
  static constexpr std::size_t kKept = 4;

  /// The member at this place says this of its model. A second claim of one step is ignored.
  void note(std::uint16_t place, const ModelClaim& claim);
  /// Forgets all.
  void clear() { claims_.clear(); }

  /// Places, as bits, of members whose model is unequal after some step.
  std::uint64_t unequal(std::size_t members) const;
  /// A step after which models differ, of which the member at place `own` has said its digest, and
  /// none can be that of more than half; none: there is none.
  std::optional<Round> tie(std::size_t members, std::uint16_t own) const;
  /// What members have said of their models after a step.
  SaidDigests said(Round step) const;

 private:
  std::map<std::uint16_t, std::deque<ModelClaim>> claims_;
};

}  // namespace sotto::sites
