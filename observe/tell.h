// How what tells of a run says that the run goes on without it. A plain type.
#pragma once

#include <functional>
#include <string>

namespace sotto {

/// Takes a warning of one line.
using Tell = std::function<void(const std::string& text)>;

}  // namespace sotto
