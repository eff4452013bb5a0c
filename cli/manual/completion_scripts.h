// Completion scripts for shells. Pure functions.
#pragma once

#include <string>

#include "manual/command_words.h"

namespace sotto::cli {

std::string bash_completion(const CommandWords& program);
std::string zsh_completion(const CommandWords& program);
std::string fish_completion(const CommandWords& program);

}  // namespace sotto::cli
