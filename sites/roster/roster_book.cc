#include <sotto/sites/roster/roster_book.h>

#include <algorithm>
#include <tuple>

#include <sotto/base/bytes.h>
#include <sotto/base/xxh3.h>
#include <sotto/sites/roster/roster_message.h>

namespace sotto::sites {
namespace {

bool names_as_replaced(const RosterEntry& entry, Incarnation other) {
  return std::ranges::find(entry.replaces, other) != entry.replaces.end();
}

/// Two that name each other, which no honest node writes, are a conflict.
bool replaces(const RosterEntry& entry, const RosterEntry& other) {
  return names_as_replaced(entry, other.incarnation) &&
         !names_as_replaced(other, entry.incarnation);
}

/// Compares two entries of one incarnation. Those that differ in other fields alone have one order
/// everywhere, too.
bool newer(const RosterEntry& entry, const RosterEntry& other) {
  return std::tie(entry.life, entry.version, entry) > std::tie(other.life, other.version, other);
}

template <typename Mark>
bool older(const Mark& mark, std::uint32_t life, std::uint32_t version) {
  return std::tie(mark.life, mark.version) < std::tie(life, version);
}

}  // namespace

std::uint64_t key_of(std::string_view name, Incarnation incarnation) {
  return xxh3(std::as_bytes(std::span(name)), incarnation);
}

const RosterBook::Dropped* RosterBook::dropped(std::uint64_t key) const {
  const auto found = std::ranges::find(forgotten_, key, &Dropped::key);
  return found == forgotten_.end() ? nullptr : &*found;
}

RosterBook::Outcome RosterBook::merge(const RosterEntry& entry, bool by_itself) {
  const std::uint64_t key = key_of(entry.name, entry.incarnation);
  const Dropped* const before = dropped(key);
  if (before == nullptr) {
    return keep(entry) ? Outcome::news : Outcome::known;
  }
  if (!by_itself && !older(*before, entry.life, entry.version)) {
    return Outcome::forgotten;
  }
  std::erase_if(forgotten_, [key](const Dropped& one) { return one.key == key; });
  return keep(entry) ? Outcome::recalled : Outcome::known;
}

bool RosterBook::keep(const RosterEntry& entry) {
  Incarnations& held = names_[entry.name];
  const auto same = held.find(entry.incarnation);
  const bool known = same != held.end() && !newer(entry, same->second);
  const bool replaced =
      std::ranges::any_of(held, [&](const auto& other) { return replaces(other.second, entry); });
  if (known || replaced) {
    return false;
  }
  size_ -= held.size();
  ++revision_;
  digest_.reset();
  held.insert_or_assign(entry.incarnation, entry);
  std::erase_if(held, [&](const auto& other) { return replaces(entry, other.second); });
  while (held.size() > kMostConflicting) {
    held.erase(std::prev(held.end()));
  }
  size_ += held.size();
  return held.contains(entry.incarnation);
}

void RosterBook::merge(const RosterBook& other) {
  other.for_each([this](const RosterEntry& entry) { merge(entry); });
}

void RosterBook::forget(std::string_view name, Incarnation incarnation) {
  const auto held = names_.find(name);
  if (held == names_.end()) {
    return;
  }
  const auto found = held->second.find(incarnation);
  if (found == held->second.end()) {
    return;
  }
  forgotten_.push_back({.key = key_of(name, incarnation),
                        .life = found->second.life,
                        .version = found->second.version});
  if (forgotten_.size() > kMostForgotten) {
    forgotten_.pop_front();
  }
  held->second.erase(found);
  --size_;
  ++revision_;
  digest_.reset();
  if (held->second.empty()) {
    names_.erase(held);
  }
}

std::vector<RosterEntry> RosterBook::entries() const {
  std::vector<RosterEntry> all;
  all.reserve(size_);
  for_each([&](const RosterEntry& entry) { all.push_back(entry); });
  return all;
}

std::vector<RosterEntry> RosterBook::find(std::string_view name) const {
  std::vector<RosterEntry> found;
  if (const auto held = names_.find(name); held != names_.end()) {
    for (const auto& [incarnation, entry] : held->second) {
      found.push_back(entry);
    }
  }
  return found;
}

RosterDigest RosterBook::digest() const {
  if (!digest_) {
    ByteBuffer all;
    for_each([&](const RosterEntry& entry) { write_entry(entry, all); });
    digest_ = {xxh3(all.bytes(), 0), xxh3(all.bytes(), 1)};
  }
  return *digest_;
}

std::vector<RosterMark> RosterBook::marks() const {
  std::vector<RosterMark> marks;
  marks.reserve(size_);
  for_each([&](const RosterEntry& entry) {
    marks.push_back({.key = key_of(entry.name, entry.incarnation),
                     .life = entry.life,
                     .version = entry.version});
  });
  std::ranges::sort(marks, {}, &RosterMark::key);
  return marks;
}

std::vector<RosterEntry> RosterBook::newer_than(std::span<const RosterMark> theirs,
                                                std::uint64_t first, std::uint64_t last) const {
  std::vector<RosterEntry> newer;
  for_each([&](const RosterEntry& entry) {
    const std::uint64_t key = key_of(entry.name, entry.incarnation);
    const auto mark = std::ranges::lower_bound(theirs, key, {}, &RosterMark::key);
    const bool has =
        mark != theirs.end() && mark->key == key && !older(*mark, entry.life, entry.version);
    if (key >= first && key <= last && !has) {
      newer.push_back(entry);
    }
  });
  return newer;
}

bool RosterBook::lacks_any(std::span<const RosterMark> theirs) const {
  const std::vector<RosterMark> own = marks();
  return std::ranges::any_of(theirs, [&](const RosterMark& mark) {
    const auto held = std::ranges::lower_bound(own, mark.key, {}, &RosterMark::key);
    if (held != own.end() && held->key == mark.key) {
      return older(*held, mark.life, mark.version);
    }
    const Dropped* const before = dropped(mark.key);
    return before == nullptr || older(*before, mark.life, mark.version);
  });
}

}  // namespace sotto::sites
