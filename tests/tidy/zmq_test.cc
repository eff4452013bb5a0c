// What no test from outside can see of every socket: which of ZeroMQ's options are set.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

#include <doctest/doctest.h>

namespace sotto::test::zmq_test {

namespace fs = std::filesystem;

namespace {

/// The sources of comm/zmq, one behind the other.
std::string sources() {
  std::string text;
  for (const auto& entry :
       fs::recursive_directory_iterator(fs::path(SOTTO_SOURCE_DIR) / "comm" / "zmq")) {
    if (entry.is_regular_file()) {
      std::ifstream in(entry.path());
      text.append(std::istreambuf_iterator<char>(in), {});
    }
  }
  return text;
}

std::size_t count(std::string_view text, std::string_view what) {
  std::size_t found = 0;
  for (auto at = text.find(what); at != std::string_view::npos; at = text.find(what, at + 1)) {
    ++found;
  }
  return found;
}

}  // namespace

TEST_CASE("ZeroMQ's trap 6: every socket that others reach has a longest message and no linger") {
  const std::string text = sources();
  const auto reached = count(text, "socket_type::dealer") + count(text, "socket_type::router");
  CHECK(reached > 3);
  // Each is set up once; the function itself is declared and defined.
  CHECK(count(text, "set_common_options(") == reached + 2);
  CHECK(count(text, "sockopt::maxmsgsize, ") == 1);
  CHECK(count(text, "sockopt::linger, 0") >= 1);
  CHECK(count(text, "sockopt::handshake_ivl, ") == 1);
}

TEST_CASE("ZeroMQ's traps 3, 4 and 5: no stolen routes, no heartbeats, no silent drops") {
  const std::string text = sources();
  CHECK(count(text, "router_handover") == 0);
  CHECK(count(text, "heartbeat_") == 0);
  CHECK(count(text, "sockopt::router_mandatory, 1") == count(text, "socket_type::router"));
}

}  // namespace sotto::test::zmq_test
