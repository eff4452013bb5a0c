#include "terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <string_view>

namespace sotto::cli {

std::optional<TerminalSize> terminal_behind(int descriptor) {
  const char* kind = std::getenv("TERM");
  winsize size{};
  if (::isatty(descriptor) != 1 || kind == nullptr || std::string_view(kind).empty() ||
      std::string_view(kind) == "dumb" || ::ioctl(descriptor, TIOCGWINSZ, &size) != 0) {
    return std::nullopt;
  }
  return TerminalSize{size.ws_col, size.ws_row};
}

}  // namespace sotto::cli
