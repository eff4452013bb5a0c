// HOST:PORT, as in URLs and lists of peers. Pure functions; thread-safe.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sotto::internal {

struct HostPort {
  std::string host;  ///< an IPv6 address without its brackets
  int port = 0;      ///< 1 … 65535
};

/// An address in brackets, as IPv6 addresses stand in URLs, without them; any other text as it is.
std::string_view without_brackets(std::string_view host);

/// "HOST:PORT" or "[IPV6]:PORT"; nothing for anything else.
std::optional<HostPort> parse_host_port(std::string_view text);

/// The addresses of a text in which spaces stand between them.
std::vector<std::string> split_addresses(std::string_view text);

}  // namespace sotto::internal
