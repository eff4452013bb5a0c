// The page of `netlab corners`: four plots a transport. Pure functions; thread-safe.
#pragma once

#include <string>
#include <vector>

#include "corners_survey.h"

namespace sotto::netlab::corners {

/// HTML: a plot for each of `edges()`, of each survey.
std::string page_of(const std::vector<Survey>& surveys);

}  // namespace sotto::netlab::corners
