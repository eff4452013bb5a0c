// The settings that all nodes of a job, and a checkpoint and the run that resumes it, must agree
// on: names and values in a fixed order. Pure functions; thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sotto {

/// A value may be any text; what cannot stand on one line is written out (base/text.h).
using AgreedSettings = std::vector<std::pair<std::string, std::string>>;

/// The settings as text, one line "name=value" each.
std::string settings_text(const AgreedSettings& settings);

/// The first setting in which two texts differ, e.g. "lr is 0.1 here and 0.2 there"; empty when
/// they are equal.
std::string first_difference(std::string_view here, std::string_view there);

}  // namespace sotto
