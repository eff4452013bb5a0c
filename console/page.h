// Self-contained HTML pages, light and dark as the reader's system is. Pure functions; thread-safe.
#pragma once

#include <string>

namespace sotto::console {

/// From the doctype to the heading.
std::string open_page(const std::string& title);
std::string close_page();

}  // namespace sotto::console
