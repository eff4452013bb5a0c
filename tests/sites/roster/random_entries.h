// Entries of rosters, drawn at random as honest nodes may write them.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include <sotto/base/philox.h>
#include <sotto/sites/roster/roster_book.h>

namespace sotto::test {

/// Versions of the entries of some names, each with 1 … 4 incarnations: an incarnation replaces
/// nobody, or one that was there before and all that this one replaced.
inline std::vector<sites::RosterEntry> random_entries(RandomStream& random) {
  std::vector<sites::RosterEntry> all;
  const auto names = 1 + random.below(6);
  for (std::uint64_t name = 0; name < names; ++name) {
    std::vector<sites::RosterEntry> processes;
    const auto count = 1 + random.below(sites::RosterBook::kMostConflicting);
    for (std::uint64_t k = 0; k < count; ++k) {
      sites::RosterEntry entry{.name = "node" + std::to_string(name),
                               .incarnation = std::max<std::uint64_t>(random.next_u64(), 1),
                               .life = static_cast<std::uint32_t>(random.below(3)),
                               .version = 1,
                               .address = "10.0.0.1:" + std::to_string(random.below(9))};
      if (!processes.empty() && random.below(3) > 0) {
        const auto& before = processes[random.below(processes.size())];
        entry.replaces = before.replaces;
        entry.replaces.insert(entry.replaces.begin(), before.incarnation);
      }
      processes.push_back(entry);
      for (std::uint64_t version = 1 + random.below(4); version > 0; --version) {
        entry.version = static_cast<std::uint32_t>(version);
        entry.phase = static_cast<sites::NodePhase>(1 + random.below(4));
        all.push_back(entry);
      }
    }
  }
  return all;
}

/// Some of the entries, in a random order.
inline std::vector<sites::RosterEntry> some_of(std::vector<sites::RosterEntry> entries,
                                               RandomStream& random) {
  std::erase_if(entries, [&](const auto&) { return random.below(3) == 0; });
  std::ranges::shuffle(entries, random);
  return entries;
}

/// A book of these entries.
inline sites::RosterBook book_of(const std::vector<sites::RosterEntry>& entries) {
  sites::RosterBook book;
  for (const sites::RosterEntry& entry : entries) {
    book.merge(entry);
  }
  return book;
}

}  // namespace sotto::test
