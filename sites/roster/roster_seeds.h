// The addresses that a node asks who is there: when each is asked, and what became of it.
//
// A seed may be a lease from a store (seed_leases.h), of a node that may be gone and whose address
// another run may have by now. What answers there as another run is believed only after the lease
// was renewed so often that its node is there.
//
// A building block of Roster, not for users. One thread at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <sotto/sites/roster/roster_entry.h>

namespace sotto::sites {

/// A run with other settings, at the address of a seed.
struct OtherRun {
  std::string address{};  ///< address at which it answered
  /// The first line of the own settings that the other run does not have; empty: it has more.
  std::string line{};
  /// Whether a node that has nothing to lose gives way to it: more nodes are up there, or as many,
  /// and its digest is the greater one, so that of two nodes one gives way.
  bool goes_before = false;
  auto operator<=>(const OtherRun&) const = default;
};

/// A probe that is due to a seed.
struct SeedProbe {
  std::string to;
  std::uint64_t nonce = 0;
};

class RosterSeeds {
 public:
  /// Silence after a probe for which a seed counts as silent.
  static constexpr RosterTime kSilentAfter{6'000};
  /// Longest time between two probes of a silent seed: one that begins anew waits for the others,
  /// half a minute by default.
  static constexpr RosterTime kLongestBackOff{8'000};

  /// Renewals of a lease after which another run at its address is one that shares the store. The
  /// first of them may be from before that answer.
  static constexpr std::uint64_t kRenewalsSeen = 2;

  /// The seeds are asked from `now` on; `own` is this node's address, which is none of them.
  RosterSeeds(const std::vector<std::string>& addresses, std::string own, RosterTime now);

  /// From now on these are the seeds. Of those that stay is known what was known.
  void set(const std::vector<RosterSeed>& named, RosterTime now);
  /// The seed at this address is this node, by another name of its own.
  void note_own(const std::string& address);
  /// A probe of this node has come to itself.
  void note_own_probe(std::uint64_t nonce);
  /// An answer came. Whether it is to a probe of a seed.
  bool note_answer(std::uint64_t nonce);
  /// Another run answered. None: it was not asked. Whether it is believed.
  std::optional<bool> note_other(std::uint64_t nonce, const OtherRun& other);

  /// Whether there is nobody to ask.
  bool nobody() const;
  /// All are asked again now.
  void ask_all(RosterTime now);
  /// The pace of asking.
  struct Pace {
    bool joining = false;      ///< the node asks who is there
    bool below_least = false;  ///< fewer nodes are known than the run needs
  };
  /// The probes that are due. Those at `reached` addresses need none; `draw` gives nonces.
  std::vector<SeedProbe> due(const std::set<std::string>& reached, Pace pace, RosterTime now,
                             const std::function<std::uint64_t()>& draw);

  /// Seeds that are not this node, as far as is known, nor of another run.
  std::vector<std::string> asked() const;
  /// Seeds that have not answered for kSilentAfter.
  std::vector<std::string> silent() const;
  /// The other runs that answered at leases, and are not believed yet.
  std::vector<OtherRun> strangers() const;

 private:
  struct Seed {
    std::string address{};
    RosterTime next{0};
    RosterTime pause{0};
    std::optional<std::uint64_t> nonce{};  ///< of the last probe; none: it was answered
    std::optional<RosterTime> asked{};     ///< the first probe without an answer
    bool silent = false;                   ///< it has not answered for kSilentAfter
    bool own = false;                      ///< it is this node, by another of its addresses
    /// Times that its lease was seen to be renewed; none: it is no lease's, and lasts.
    std::optional<std::uint64_t> renewals{};
    std::optional<OtherRun> stranger{};  ///< the other run that answered there
    std::uint64_t believed_at = 0;       ///< renewals with which `stranger` is believed
    bool is_strange() const { return stranger && renewals && *renewals < believed_at; }
  };
  std::string own_;
  std::vector<Seed> seeds_;
};

}  // namespace sotto::sites
