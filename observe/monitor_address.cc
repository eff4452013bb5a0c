#include <sotto/observe/monitor_address.h>

#include <string_view>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/base/number.h>

namespace sotto {
namespace {

constexpr int kLargestPort = 65'535;

}  // namespace

MonitorAddress parse_monitor_address(const std::string& text) {
  const auto colon = text.rfind(':');
  MonitorAddress address;
  address.host = colon == std::string::npos ? "127.0.0.1" : text.substr(0, colon);
  if (address.host != "127.0.0.1" && address.host != "localhost" && address.host != "[::1]") {
    throw Error(
        fmt::format("'{}' is refused: it is 127.0.0.1:PORT, localhost:PORT or [::1]:PORT, as "
                    "whoever reaches it can read what it shows; from elsewhere go through a "
                    "tunnel or a proxy that asks who it is",
                    text));
  }
  if (address.host == "[::1]") {
    address.host = "::1";
  }
  const std::string_view port = std::string_view(text).substr(colon + 1);  // npos + 1: all
  const auto number = parse_number<int>(port, 1, kLargestPort);
  if (!number) {
    throw Error(fmt::format("'{}' is no whole number from 1 to {}", port, kLargestPort));
  }
  address.port = *number;
  return address;
}

}  // namespace sotto
