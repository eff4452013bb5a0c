#include "host_port.h"

#include <algorithm>

#include <sotto/base/number.h>

namespace sotto::internal {

std::string_view without_brackets(std::string_view host) {
  const bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
  return bracketed ? host.substr(1, host.size() - 2) : host;
}

std::vector<std::string> split_addresses(std::string_view text) {
  constexpr std::string_view kBlank = " \t";
  std::vector<std::string> found;
  for (auto begin = text.find_first_not_of(kBlank); begin != std::string_view::npos;) {
    const auto end = std::min(text.find_first_of(kBlank, begin), text.size());
    found.emplace_back(text.substr(begin, end - begin));
    begin = text.find_first_not_of(kBlank, end);
  }
  return found;
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
