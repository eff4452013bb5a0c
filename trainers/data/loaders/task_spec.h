// A task's specification, taken apart: `NAME[:PATH][,parameter[=value]…]`.
//
// Private to the loaders. A path may hold commas: only trailing parameters that the task knows are
// cut off. What looks like a parameter, `word=…`, and is none belongs to the path only if such a
// file exists. A value with commas stands in double quotes, a doubled quote standing for one. A
// plain value.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sotto {

/// The kind of value that a parameter takes behind its '='.
enum class ParameterKind {
  number,  ///< a whole number
  text,    ///< a text; may be given repeatedly
  word,    ///< no value: the word is there or not
};

/// A parameter that a task has.
struct KnownParameter {
  std::string_view name;
  ParameterKind kind = ParameterKind::number;
};

struct TaskSpec {
  std::string text;  ///< the whole specification
  std::string name;
  std::string path;  ///< the path; empty where there is none
  std::map<std::string, std::uint64_t, std::less<>> numbers;
  /// Texts by parameter, in the order in which they were given.
  std::map<std::string, std::vector<std::string>, std::less<>> texts;

  /// The number, or `otherwise` when it was not given.
  std::uint64_t value(std::string_view parameter, std::uint64_t otherwise) const;
  /// The texts given for a parameter.
  std::vector<std::string> all(std::string_view parameter) const;
  /// Whether a word is there.
  bool has(std::string_view parameter) const { return numbers.contains(parameter); }
};

/// The part in front of the first ':' or ','.
std::string_view task_name(std::string_view spec);

/// Takes `spec` apart; `known` are the parameters that the task has. Throws Error for a path where
/// none is due or none where one is, and for an unknown or unreadable parameter.
TaskSpec parse_task_spec(std::string_view spec, bool needs_path,
                         std::span<const KnownParameter> known = {});

}  // namespace sotto
