// The addresses of a host by a deadline, beside a name server that does not answer.
#include "../../comm/internal/address/host_lookup.h"

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/error.h>
#include <sotto/base/start_threads.h>

#include "nodes.h"

namespace sotto::test::host_lookup_test {

using namespace std::chrono_literals;
using internal::Address;
using internal::HostLookup;

namespace {

/// A name server that answers when it is told to, and how often it was asked.
struct NameServer {
  std::promise<void> tell;
  std::shared_future<void> told = tell.get_future().share();
  std::atomic<int> asked{0};
};

HostLookup::Resolve asking(const std::shared_ptr<NameServer>& server) {
  return [server](const std::string&) {
    ++server->asked;
    server->told.wait();
    return std::vector{Address{.numeric = "10.0.0.1", .ipv6 = false}};
  };
}

}  // namespace

TEST_CASE("a name server that does not answer is waited for until the deadline, by one thread") {
  const auto server = std::make_shared<NameServer>();
  HostLookup lookup("host.example", asking(server));
  for (int look = 0; look < 3; ++look) {
    CHECK_FALSE(lookup.by(Deadline::after(1ms)));
  }
  std::atomic<bool> stopped{true};
  const StopRequest stop = [&] { return stopped.load(); };
  CHECK_FALSE(lookup.by(Deadline::after(1h, &stop)));
  server->tell.set_value();
  const auto found = lookup.by(generous());
  REQUIRE(found);
  REQUIRE(found->size() == 1);
  CHECK(found->front().numeric == "10.0.0.1");
  CHECK(server->asked == 1);
  CHECK(lookup.by(generous()));  // addresses change: it is asked anew
  CHECK(server->asked == 2);
}

TEST_CASE("a name server that is still asked when the lookup ends is left behind") {
  const auto server = std::make_shared<NameServer>();
  {
    HostLookup lookup("host.example", asking(server));
    CHECK_FALSE(lookup.by(Deadline::after(1ms)));
  }
  server->tell.set_value();
  const std::weak_ptr<NameServer> left = server;
  CHECK_FALSE(left.expired());
}

TEST_CASE("of an address in numbers nobody is asked, and no thread for it is a shortage") {
  const auto refuse_to = [](const std::string&) -> std::vector<Address> {
    FAIL("nobody is to be asked");
    return {};
  };
  HostLookup four("10.0.0.1", refuse_to);
  CHECK(four.by(Deadline::after({}))->front().numeric == "10.0.0.1");
  HostLookup six("::1", refuse_to);
  CHECK(six.by(Deadline::after({}))->front().ipv6);
  HostLookup unknown("host.example", [](const std::string&) { return std::vector<Address>(); });
  {
    const ThreadShortage none(0);
    CHECK_THROWS_AS((void)unknown.by(generous()), Shortage);
  }
  CHECK(unknown.by(generous())->empty());
}

}  // namespace sotto::test::host_lookup_test
