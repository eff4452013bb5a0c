// The entries of all nodes that a node has heard of, and how two such books become one.
//
// Order of the entries of one name, without a clock: of one incarnation the larger (life, version)
// wins; of two incarnations the one that names the other in `replaces` wins; where neither does,
// both are kept as a conflict, at most kMostConflicting, the smaller incarnations. merge() keeps
// the maximal entries of this order, so that books which have seen the same entries are equal in
// whatever order these came, as long as no more incarnations of one name conflict than are kept and
// each entry names all incarnations that those which it replaces named.
//
// What is forgotten stays out: entries of the last kMostForgotten that were dropped are taken back
// only when they are newer, or when the node says them itself.
//
// Pure; one thread at a time. Owns its entries.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <sotto/sites/roster/roster_entry.h>

namespace sotto::sites {

/// Two digests of all entries of a book, XXH3-64 under two seeds. Equal books have equal digests.
using RosterDigest = std::array<std::uint64_t, 2>;

/// Which version of an entry a book has, for others to compare.
struct RosterMark {
  std::uint64_t key = 0;      ///< key_of(name, incarnation)
  std::uint32_t life = 0;     ///< the entry's life
  std::uint32_t version = 0;  ///< the entry's version
};

/// The key of an entry among those of a book: XXH3-64 of the name under the incarnation.
std::uint64_t key_of(std::string_view name, Incarnation incarnation);

class RosterBook {
 public:
  /// Entries of one name that conflict, at most.
  static constexpr std::size_t kMostConflicting = 4;
  /// Entries that were dropped and are remembered, at most.
  static constexpr std::size_t kMostForgotten = 1024;

  /// What became of an entry that came.
  enum class Outcome : std::uint8_t {
    known,      ///< it is there, or a better one is
    news,       ///< it was taken
    forgotten,  ///< it was dropped before, and is not taken back
    recalled,   ///< it was dropped before, and is taken back
  };

  /// Takes in an entry. `by_itself`: the node itself sent it, so that it is alive.
  Outcome merge(const RosterEntry& entry, bool by_itself = false);
  /// Takes in all entries of another book.
  void merge(const RosterBook& other);
  /// Drops an entry, and remembers that.
  void forget(std::string_view name, Incarnation incarnation);

  /// Calls `take` with each entry, by name and incarnation.
  template <typename Take>
  void for_each(const Take& take) const {
    for (const auto& [name, held] : names_) {
      for (const auto& [incarnation, entry] : held) {
        take(entry);
      }
    }
  }
  /// All entries, by name and incarnation.
  std::vector<RosterEntry> entries() const;
  /// Counts the changes.
  std::uint64_t revision() const { return revision_; }
  /// Number of all entries.
  std::size_t size() const { return size_; }
  /// Number of entries that are remembered as dropped.
  std::size_t forgotten() const { return forgotten_.size(); }
  /// The entries of a name: more than one are a conflict.
  std::vector<RosterEntry> find(std::string_view name) const;
  /// The digest of all entries.
  RosterDigest digest() const;

  /// Marks of all entries, by ascending key.
  std::vector<RosterMark> marks() const;
  /// The entries whose keys lie in first … last and that `theirs`, the other's marks in this range,
  /// lacks or has in an older version.
  std::vector<RosterEntry> newer_than(std::span<const RosterMark> theirs, std::uint64_t first,
                                      std::uint64_t last) const;
  /// Whether one of `theirs` is newer than the entry here, or not here and not forgotten.
  bool lacks_any(std::span<const RosterMark> theirs) const;

 private:
  using Incarnations = std::map<Incarnation, RosterEntry>;
  struct Dropped {
    std::uint64_t key = 0;
    std::uint32_t life = 0;
    std::uint32_t version = 0;
  };

  const Dropped* dropped(std::uint64_t key) const;
  bool keep(const RosterEntry& entry);

  std::map<std::string, Incarnations, std::less<>> names_;
  std::size_t size_ = 0;
  std::uint64_t revision_ = 0;
  mutable std::optional<RosterDigest>
      digest_;                     ///< digest of the present entries; none: not computed
  std::deque<Dropped> forgotten_;  ///< oldest first
};

}  // namespace sotto::sites
