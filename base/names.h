// Names of settings, and of what registries hold: as lists in messages and helps, and where one is
// mistyped. Pure functions; thread-safe.
#pragma once

#include <functional>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

namespace sotto {

/// A setting's name as files and command lines have it: "weight_decay" → "weight-decay".
std::string dashed(std::string_view setting);

/// "quant:8,chunk=64" → "quant", "dct/topk:0.1" → "dct"
std::string_view family_name(std::string_view spec);

/// "a", "a or b", "a, b or c"; empty without names. `last` stands before the last name.
std::string word_list(const std::vector<std::string>& names, std::string_view last = "or");

/// The one of `names` that is nearest to `word`, the first of equals: it begins with `word`, or
/// differs in at most a third of its letters (inserted, left out, changed or swapped with the
/// next); capital letters count as small ones. Empty when none is near, or `word` is one of them.
std::string nearest(std::string_view word, const std::vector<std::string>& names);

/// "; did you mean NAME?", or ";" when no name is near. The caller appends the list of names.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& names);

/// Throws Error "FIELD: 'SPEC' is refused: did you mean NAME? There are …" for a specification
/// whose family is none of `names`, or whose form is none of `forms`, without the guess when none
/// is near. It lists the forms in which names are written; without any, the names.
[[noreturn]] void refuse_unknown(std::string_view field, std::string_view spec,
                                 const std::vector<std::string>& names,
                                 const std::vector<std::string>& forms = {});

/// The members `name` of a registry's entries.
template <typename Infos>
std::vector<std::string> names_of(const Infos& infos) {
  std::vector<std::string> names;
  names.reserve(std::size(infos));
  for (const auto& info : infos) {
    names.emplace_back(info.name);
  }
  return names;
}

/// The members `name` of a registry's entries of which `fact` holds, in the registry's order:
/// `names_with(algorithms(), &AlgorithmInfo::accelerated)`.
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

/// Refuses `spec` as one that fits no entry of a registry whose entries have a `name` and a
/// `synopsis`.
template <typename Infos>
[[noreturn]] void refuse_unregistered(std::string_view field, std::string_view spec,
                                      const Infos& infos) {
  std::vector<std::string> forms;
  forms.reserve(std::size(infos));
  for (const auto& info : infos) {
    forms.emplace_back(info.synopsis);
  }
  refuse_unknown(field, spec, names_of(infos), forms);
}

}  // namespace sotto
