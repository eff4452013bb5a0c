#include "store_rules.h"

#include <fmt/format.h>

#include <sotto/base/number.h>

namespace sotto::internal {
namespace {

constexpr Rank kNode0 = 0;

struct Owners {
  std::optional<Rank> writer;
  std::optional<Rank> reader;
  bool first_come = false;
  bool for_all = false;
};

/// A rank as it is printed, and nothing else.
std::optional<Rank> rank_of(std::string_view text) {
  const auto rank = parse_number<Rank>(text);
  return rank && fmt::to_string(*rank) == text ? rank : std::nullopt;
}

Owners owners_of(std::string_view key) {
  const auto last = key.substr(key.rfind('/') + 1);  // all of it where there is no slash
  if (last == "any") {
    return {.writer = {}, .reader = {}, .first_come = true};
  }
  const auto dash = last.find('-');
  const auto writer = rank_of(last.substr(0, dash));
  if (dash == std::string_view::npos) {
    return {.writer = writer, .reader = {}};
  }
  if (last.substr(dash + 1) == "all") {
    return writer ? Owners{.writer = writer, .reader = {}, .for_all = true} : Owners{};
  }
  const auto reader = rank_of(last.substr(dash + 1));
  return writer && reader ? Owners{.writer = writer, .reader = reader} : Owners{};
}

bool is_first(Rank who, const Owners& owners, std::optional<Rank> first) {
  return owners.first_come && first == who;
}

}  // namespace

bool may_set(Rank who, std::string_view key, std::optional<Rank> first) {
  const Owners owners = owners_of(key);
  return who == kNode0 || owners.writer == who || (owners.first_come && !first) ||
         is_first(who, owners, first);
}

bool may_get(Rank who, std::string_view key) {
  const Owners owners = owners_of(key);
  return who == kNode0 || !owners.writer || owners.for_all || owners.writer == who ||
         owners.reader == who;
}

bool may_remove(Rank who, std::string_view key, std::optional<Rank> first) {
  const Owners owners = owners_of(key);
  return who == kNode0 || owners.writer == who || owners.reader == who ||
         is_first(who, owners, first);
}

}  // namespace sotto::internal
