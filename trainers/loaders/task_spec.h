// A task's specification, taken apart: `NAME[:PATH][,parameter=value…]`.
//
// Private to the loaders. A path may hold commas: only trailing parameters that the task knows are
// cut off. What looks like a parameter, `word=…`, and is none belongs to the path only if such a
// file exists. A plain value.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>

namespace sotto {

struct TaskSpec {
  std::string text;  ///< the whole specification
  std::string name;
  std::string path;  ///< empty where there is none
  std::map<std::string, std::uint64_t, std::less<>> parameters;

  /// The parameter, or `otherwise` when it was not given.
  std::uint64_t value(std::string_view parameter, std::uint64_t otherwise) const;
};

/// The part in front of the first ':' or ','.
std::string_view task_name(std::string_view spec);

/// Takes `spec` apart; `known` are the parameters that the task has, all whole numbers. Throws
/// Error for a path where none is due or none where one is, and for an unknown or unreadable
/// parameter.
TaskSpec parse_task_spec(std::string_view spec, bool needs_path,
                         std::initializer_list<std::string_view> known);

}  // namespace sotto
