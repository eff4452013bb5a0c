// Addresses as people write them.
#include "../../comm/internal/address/host_port.h"

#include <string>

#include <doctest/doctest.h>

#include <sotto/base/error.h>

#include "../../comm/internal/address/address.h"

namespace sotto::test::host_port_test {

using namespace sotto::internal;

TEST_CASE("HOST:PORT has one form, whatever kind of host it is") {
  for (const auto& [text, host, port] : {std::tuple{"localhost:1", "localhost", 1},
                                         {"10.0.0.1:65535", "10.0.0.1", 65535},
                                         {"[::1]:80", "::1", 80},
                                         {"[fe80::1%eth0]:9", "fe80::1%eth0", 9}}) {
    const std::string shown_text(text);
    CAPTURE(shown_text);
    const auto parsed = parse_host_port(text);
    REQUIRE(parsed);
    CHECK(parsed->host == host);
    CHECK(parsed->port == port);
  }
  for (const char* text : {"", ":80", "host", "host:", "host:0", "host:65536", "host:-1", "host:+1",
                           "host: 1", "host:1 ", "host:0x10", "[::1]", "host:99999999999"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_host_port(text));
  }
}

TEST_CASE("an address to listen on may stand in brackets, as in a URL") {
  for (const std::string address : {"127.0.0.1", "localhost", "::1"}) {
    CAPTURE(address);
    std::string plain;
    try {
      plain = resolve_bind_address("bind", address, {}).endpoint("7");
    } catch (const Error&) {
      continue;  // a machine without IPv6
    }
    CHECK(resolve_bind_address("bind", "[" + address + "]", {}).endpoint("7") == plain);
    CHECK(resolve_host("bind", "[" + address + "]").numeric ==
          resolve_host("bind", address).numeric);
  }
  CHECK(without_brackets("[]") == "[]");
  CHECK(without_brackets("[::1") == "[::1");
  CHECK_THROWS_AS(resolve_bind_address("bind", "[nowhere.invalid]", {}), Error);
}

}  // namespace sotto::test::host_port_test
