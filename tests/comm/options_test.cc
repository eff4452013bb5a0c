// Requests that make_transport and make_store refuse, and what they say.
#include <doctest/doctest.h>

#include <sotto/base/error.h>
#include <sotto/comm/stores.h>

#include "nodes.h"

namespace sotto::test::options_test {

namespace {

void check_refused(TransportOptions options, std::string_view field) {
  CAPTURE(field);
  try {
    (void)make_transport("inproc", options);
    FAIL("not refused");
  } catch (const Error& error) {
    CHECK_MESSAGE(std::string_view(error.what()).starts_with(field), error.what());
  }
}

}  // namespace

TEST_CASE("settings of a transport that cannot work are refused by name") {
  const auto good = options_for(ring(3), 1, make_memory_store(), 100);
  auto options = good;
  options.rank = 3;
  check_refused(options, "rank");
  options = good;
  options.to = {2, 0};
  check_refused(options, "to");
  options = good;
  options.to = {0, 0};
  check_refused(options, "to");
  options = good;
  options.from = {1};
  check_refused(options, "from");
  options = good;
  options.from = {3};
  check_refused(options, "from");
  options = good;
  options.max_frame_bytes = 63;
  check_refused(options, "max_frame_bytes");
  options = good;
  options.store = nullptr;
  check_refused(options, "store");
  CHECK_THROWS_AS((void)make_transport("telepathy", good), Error);
}

TEST_CASE("every transport of the table is available or says what is missing") {
  for (const TransportInfo& info : transports()) {
    CAPTURE(info.name);
    CHECK_FALSE(info.summary.empty());
    auto options = options_for(ring(1), 0, make_memory_store(), 0);
    if (info.available) {
      const auto transport = make_transport(info.name, options);
      if (info.name == "nccl" && !transport.ok()) {
        CHECK(transport.status().fault() == Fault::io);
        CHECK_MESSAGE(transport.status().message().find("GPU") != std::string::npos,
                      transport.status().message());
        continue;
      }
      REQUIRE_MESSAGE(transport.ok(), transport.status().message());
      CHECK((*transport)->name() == info.name);
    } else {
      CHECK_THROWS_AS((void)make_transport(info.name, options), Error);
    }
  }
}

TEST_CASE("inproc refuses two nodes of one rank, and a store that is not shared memory") {
  auto options = options_for(ring(1), 0, make_memory_store(), 0);
  const auto first = connect("inproc", options);
  CHECK_THROWS_AS((void)make_transport("inproc", options), Error);
  options.run_id = kRun + 1;
  CHECK(make_transport("inproc", options).ok());
}

TEST_CASE("inproc refuses an edge that its receiver does not know of") {
  const auto store = make_memory_store();
  spawn(2, [&](Rank rank) {
    auto options = options_for(ring(2), rank, store, 100);
    if (rank == 1) {
      options.from.clear();
    }
    const auto transport = make_transport("inproc", options);
    if (rank == 0) {
      REQUIRE_FALSE(transport.ok());
      CHECK(transport.status().fault() == Fault::unexpected);
    }
  });
}

TEST_CASE("store URLs that mean nothing are refused") {
  for (const auto* url : {"", "memory", "file:", "tcp://", "tcp://host", "tcp://:1", "tcp://h:0",
                          "tcp://h:65536", "tcp://h:1x", "tcp://127.0.0.1:9000/x", "redis://h",
                          "http://h:1", "torch://", "torch://h", "torch://h:0/run"}) {
    CAPTURE(url);
    CHECK_THROWS_AS((void)make_store(url, 1), Error);
  }
}

TEST_CASE("plain text stays on loopback unless it is allowed to leave") {
  for (const auto& name : conforming_transports()) {
    if (joins_threads(name) || name == kSecured) {
      continue;
    }
    CAPTURE(name);
    auto options = options_for(ring(1), 0, make_memory_store(), 0);
    for (const auto* bind : {"192.0.2.1", "0.0.0.0", "::", "no-such-interface", ""}) {
      CAPTURE(bind);
      options.bind = bind;
      CHECK_THROWS_AS((void)open_transport(name, options), Error);
    }
    for (const auto* bind : {"127.0.0.1", "localhost", "lo"}) {
      CAPTURE(bind);
      options.bind = bind;
      CHECK(open_transport(name, options).ok());
    }
    options.insecure = true;
    options.bind = "0.0.0.0";  // no peer could reach it
    CHECK_THROWS_AS((void)open_transport(name, options), Error);
    options.bind = "192.0.2.1";  // not an address of this machine
    CHECK_THROWS_AS((void)open_transport(name, options), Error);
  }
}

}  // namespace sotto::test::options_test
