// Manual pages in man(7). Pure functions.
#pragma once

#include <string>

#include "manual/command_words.h"

namespace sotto::cli {

/// The page of `command`; `program` is the tree that it belongs to.
std::string man_page(const CommandWords& command, const CommandWords& program);

}  // namespace sotto::cli
