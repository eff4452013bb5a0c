// What a mistyped word may have meant. Pure functions; thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace sotto::cli {

/// The one of `names` that is nearest to `word`, the first of equals: it begins with `word`, or
/// differs in at most a third of its letters (inserted, left out, changed or swapped with the
/// next); capital letters count as small ones. Empty when none is near, or `word` is one of them.
std::string nearest(std::string_view word, const std::vector<std::string>& names);

/// "; did you mean NAME?", or "" when none is near.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& names);

/// The members `name` of a registry's entries.
template <typename Infos>
std::vector<std::string> names_of(const Infos& infos) {
  std::vector<std::string> names;
  for (const auto& info : infos) {
    names.emplace_back(info.name);
  }
  return names;
}

/// "quant:8,chunk=64" → "quant"
std::string_view family(std::string_view spec);

/// Refuses `spec`, given for `option`, when its family is none of `names` but close to one, naming
/// it. What is close to none is left to whoever reads the specification.
void refuse_mistyped(std::string_view option, std::string_view spec,
                     const std::vector<std::string>& names);

}  // namespace sotto::cli
