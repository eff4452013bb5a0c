#include "host_port.h"

#include <charconv>

namespace sotto::internal {

std::optional<HostPort> parse_host_port(std::string_view text) {
  const auto colon = text.rfind(':');
  if (colon == std::string_view::npos || colon == 0) {
    return std::nullopt;
  }
  auto host = text.substr(0, colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  }
  HostPort parsed{std::string(host), 0};
  const auto port = text.substr(colon + 1);
  const auto [end, code] = std::from_chars(port.data(), port.data() + port.size(), parsed.port);
  if (code != std::errc() || end != port.data() + port.size() || parsed.port < 1 ||
      parsed.port > 65535) {
    return std::nullopt;
  }
  return parsed;
}

}  // namespace sotto::internal
