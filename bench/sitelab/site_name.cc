#include "site_name.h"

#include <fmt/format.h>

#include <sotto/base/number.h>

namespace sotto::sitelab {
namespace {

constexpr std::string_view kName = "site-";

}  // namespace

std::string site_name(Rank site) { return fmt::format("{}{}", kName, site); }

Rank site_rank(std::string_view name) {
  Rank rank = -1;
  if (name.starts_with(kName)) {
    name.remove_prefix(kName.size());
    rank = parse_number<Rank>(name).value_or(rank);
  }
  return rank;
}

}  // namespace sotto::sitelab
