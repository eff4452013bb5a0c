// The names of a plan's sites. Pure functions; thread-safe.
#pragma once

#include <string>
#include <string_view>

#include <sotto/base/ids.h>

namespace sotto::sitelab {

/// The name of a site of a plan, and back; −1: no such name.
std::string site_name(Rank site);
Rank site_rank(std::string_view name);

}  // namespace sotto::sitelab
