// The comparisons of books that a node has agreed to: each follows an answer of one of two nodes,
// and has that answer's ticket.
//
// A building block of Roster, not for users. One thread at a time.
#pragma once

#include <cstdint>
#include <deque>
#include <set>
#include <string>
#include <vector>

#include <sotto/sites/roster/roster_book.h>
#include <sotto/sites/roster/roster_entry.h>
#include <sotto/sites/roster/roster_message.h>

namespace sotto::sites {

class RosterComparisons {
 public:
  /// From now on marks of this node with this ticket are answered.
  void open(const std::string& with, std::uint64_t ticket, RosterTime now);
  /// Whether the marks belong to a comparison that is open, and come for the first time.
  bool admit(const std::string& from, const RosterMarks& marks, RosterTime now);

 private:
  struct Comparison {
    std::string with{};
    std::uint64_t ticket = 0;
    RosterTime since{0};
    std::set<std::uint64_t> seen{};  ///< first keys of the marks that were answered
  };
  std::deque<Comparison> open_;  ///< oldest first
};

/// The book's marks in the range that `wanted` names, in as many messages like it as they need.
std::vector<RosterMarks> marks_in_range(const RosterBook& book, const RosterMarks& wanted);

}  // namespace sotto::sites
