// The callback through which an output reports that it failed and that the run goes on. A plain
// type.
#pragma once

#include <functional>
#include <string>

namespace sotto {

/// Takes a warning of one line.
using Tell = std::function<void(const std::string& text)>;

}  // namespace sotto
