#include <sotto/sites/roster/roster_comparisons.h>

#include <algorithm>
#include <span>

namespace sotto::sites {
namespace {

constexpr RosterTime kComparedWithin{10'000};
constexpr std::size_t kMostComparisons = 64;
constexpr std::size_t kMostMarksSeen = 128;  // in one comparison

}  // namespace

void RosterComparisons::open(const std::string& with, std::uint64_t ticket, RosterTime now) {
  if (open_.size() >= kMostComparisons) {
    open_.pop_front();
  }
  open_.push_back({.with = with, .ticket = ticket, .since = now});
}

bool RosterComparisons::admit(const std::string& from, const RosterMarks& marks, RosterTime now) {
  const auto found = std::ranges::find_if(open_, [&](const Comparison& one) {
    return one.ticket == marks.ticket && one.with == from && now - one.since <= kComparedWithin;
  });
  return found != open_.end() && found->seen.size() < kMostMarksSeen &&
         found->seen.insert(marks.first).second;
}

std::vector<RosterMarks> marks_in_range(const RosterBook& book, const RosterMarks& wanted) {
  std::vector<RosterMark> marks = book.marks();
  std::erase_if(marks, [&](const RosterMark& mark) {
    return mark.key < wanted.first || mark.key > wanted.last;
  });
  std::span<const RosterMark> left = marks;
  std::vector<RosterMarks> messages;
  RosterMarks part = wanted;
  do {
    const auto now = left.first(std::min(kMostMarks, left.size()));
    left = left.subspan(now.size());
    part.marks.assign(now.begin(), now.end());
    part.last = left.empty() ? wanted.last : now.back().key;
    messages.push_back(part);
    part.first = part.last + 1;
  } while (!left.empty());
  return messages;
}

}  // namespace sotto::sites
