// How the settings of the library are called by those who give them as options. Pure functions.
#pragma once

#include <string>
#include <string_view>

namespace sotto::study {

/// The message of an Error with the library's name of a setting, at its start, replaced by the
/// option that gives it: "learning_rate: …" → "--lr: …".
std::string with_option_names(std::string_view message);

}  // namespace sotto::study
