// What the registries hold, as JSON. Not installed, as the type of its library shows. Pure
// functions; thread-safe.
#pragma once

#include <string_view>
#include <vector>

#include <sotto/base/json.h>

namespace sotto {

/// The names of the registries, as catalog_kinds (catalog.h) has them.
std::vector<std::string_view> catalog_names();
/// The entries of one of them in its order, an array of objects. Throws Error for any other name.
Json catalog_items(std::string_view kind);

}  // namespace sotto
