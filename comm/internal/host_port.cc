#include "host_port.h"

#include <sotto/base/number.h>

namespace sotto::internal {

std::string_view without_brackets(std::string_view host) {
  const bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
  return bracketed ? host.substr(1, host.size() - 2) : host;
}

std::optional<HostPort> parse_host_port(std::string_view text) {
  const auto colon = text.rfind(':');
  if (colon == std::string_view::npos || colon == 0) {
    return std::nullopt;
  }
  const auto host = without_brackets(text.substr(0, colon));
  const auto port = parse_number<int>(text.substr(colon + 1), 1, 65535);
  return port ? std::optional(HostPort{std::string(host), *port}) : std::nullopt;
}

}  // namespace sotto::internal
