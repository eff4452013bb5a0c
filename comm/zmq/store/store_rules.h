// The owner of each key of a store that knows its clients by their keys. Pure functions;
// thread-safe.
//
// The last part of a key says so: "…/3" is node 3's; "…/3-5" is node 3's, for node 5; "…/3-all" is
// node 3's, for all; "…/any" is that node's which sets it first; every other key is node 0's, for
// all. Node 0 serves the store and may do everything.
//
// | key     | set            | get      | remove         |
// | "…/3"   | 3              | 3        | 3              |
// | "…/3-5" | 3              | 3, 5     | 3, 5           |
// | "…/3-all" | 3           | everyone | 3              |
// | "…/any" | who was first  | everyone | who was first  |
// | others  | –              | everyone | –              |
#pragma once

#include <optional>
#include <string_view>

#include <sotto/base/ids.h>

namespace sotto::internal {

/// Whether `who` may set the key. `first`: the node that set it as it is now, if it is there.
bool may_set(Rank who, std::string_view key, std::optional<Rank> first);
bool may_get(Rank who, std::string_view key);
bool may_remove(Rank who, std::string_view key, std::optional<Rank> first);

}  // namespace sotto::internal
