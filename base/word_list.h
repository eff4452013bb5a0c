// Lists of names in messages and helps, as the registries have them. Pure functions; thread-safe.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace sotto {

/// "a", "a or b", "a, b or c"; empty without names. `last` stands before the last name.
std::string word_list(const std::vector<std::string>& names, std::string_view last = "or");

/// The members `name` of a registry's entries of which `fact` holds, in the registry's order:
/// `names_with(algorithms(), &AlgorithmInfo::delayable)`.
template <typename Infos, typename Fact>
std::vector<std::string> names_with(const Infos& infos, Fact fact) {
  std::vector<std::string> names;
  for (const auto& info : infos) {
    if (std::invoke(fact, info)) {
      names.emplace_back(info.name);
    }
  }
  return names;
}

}  // namespace sotto
