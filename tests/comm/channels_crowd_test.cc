// A crowd of strangers at a site's port: a peer that starts again is let in all the same.
#ifdef SOTTO_HAVE_ZMQ
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/file_descriptor.h>

#include "outsider.h"
#include "raw_curve.h"
#include "sites.h"

namespace sotto::test::channels_crowd_test {

using namespace std::chrono_literals;

namespace {

/// The process's limit of descriptors, as long as the object lives.
class DescriptorLimit {
 public:
  explicit DescriptorLimit(rlim_t count) {
    REQUIRE(::getrlimit(RLIMIT_NOFILE, &before_) == 0);
    const rlimit less{std::min(count, before_.rlim_cur), before_.rlim_max};
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &less) == 0);
  }
  ~DescriptorLimit() { (void)::setrlimit(RLIMIT_NOFILE, &before_); }
  DescriptorLimit(const DescriptorLimit&) = delete;
  DescriptorLimit& operator=(const DescriptorLimit&) = delete;

 private:
  rlimit before_{};
};

/// A connection that says one thing, and stays.
class Idler {
 public:
  Idler(int port, std::uint32_t from, std::string words)
      : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)),
        words_(std::move(words)) {
    const sockaddr_in source = address_of(from, 0);
    const sockaddr_in to = address_of(INADDR_LOOPBACK, port);
    REQUIRE(::bind(socket_.get(), reinterpret_cast<const sockaddr*>(&source), sizeof source) == 0);
    (void)::connect(socket_.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to);
  }
  void speak() {
    if (!words_.empty() && ::send(socket_.get(), words_.data(), words_.size(), MSG_NOSIGNAL) > 0) {
      words_.clear();
    }
  }
  /// The other side has ended it.
  bool ended() const {
    std::array<char, 256> heard{};
    ssize_t got = 1;
    while (got > 0) {
      got = ::recv(socket_.get(), heard.data(), heard.size(), MSG_DONTWAIT);
    }
    return got == 0 || (errno != EAGAIN && errno != ENOTCONN);
  }

 private:
  static sockaddr_in address_of(std::uint32_t host, int port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(host);
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    return address;
  }
  FileDescriptor socket_;
  std::string words_;
};

/// Site 0 with little room for strangers, and more strangers than that, all of them from one
/// address.
class CrowdedSite {
 public:
  CrowdedSite(const Sites& sites, const ChannelOptions& options, std::uint32_t from) {
    {
      const DescriptorLimit few(400);
      site.emplace(options);
    }
    const auto room = site->channels().strangers().room;
    REQUIRE(room >= 64);
    REQUIRE(room <= 200);
    const auto right = greeting("CURVE");
    const std::string says(reinterpret_cast<const char*>(right.data()), right.size());
    // Some say nothing, some greet and say no more, and some send garbage.
    const std::vector<std::string> words = {"", says, std::string(4096, '\xA5')};
    for (std::size_t i = 0; i < 2 * room; ++i) {
      crowd.emplace_back(sites.port(0), from, words[i % words.size()]);
    }
    const auto deadline = generous();
    // More may just have been taken in than there is room for, until the site looks again.
    const auto crowded = [&] {
      const Strangers strangers = site->channels().strangers();
      return strangers.cut == 0 || strangers.waiting > room + 8;
    };
    while (crowded()) {
      REQUIRE_FALSE(deadline.expired());
      for (Idler& one : crowd) {
        one.speak();
      }
      std::this_thread::yield();
    }
  }
  std::optional<SiteEnd> site;
  std::deque<Idler> crowd;
};

constexpr std::uint32_t kElsewhere = 0x7F000102;  // 127.0.1.2

}  // namespace

TEST_CASE(
    "a crowd at the door: a site that starts again is let in, the oldest strangers are ended") {
  const Sites sites(2);
  for (const std::uint32_t from : {static_cast<std::uint32_t>(INADDR_LOOPBACK), kElsewhere}) {
    CrowdedSite door(sites, sites.options(0), from);
    SiteEnd& a = *door.site;
    for (int start = 0; start < 3; ++start) {
      SiteEnd b(sites.options(1));
      a.wait_up(1);
      b.expect_up(0);
      b.send(0, message_of(1, 1000));
      a.expect_message(1, message_of(1, 1000));
    }
    // The connections that came last are still there: none is ended but for want of room.
    CHECK(std::ranges::any_of(door.crowd, [](const Idler& one) { return one.ended(); }));
    CHECK(std::ranges::any_of(door.crowd, [](const Idler& one) { return !one.ended(); }));
    CHECK(a.traffic(1).offences == 0);
  }
}

TEST_CASE("a crowd at the door: a peer of no known address is let in, too") {
  const Sites sites(2);
  auto lines = sites.lines();
  lines[1].address.clear();
  auto options = sites.options(0);
  options.security.peers = std::make_shared<AllowList>(lines);
  CrowdedSite door(sites, options, INADDR_LOOPBACK);
  auto dialler = sites.options(1);
  dialler.security.peers = std::make_shared<AllowList>(lines);
  for (int start = 0; start < 3; ++start) {
    SiteEnd b(dialler);
    door.site->wait_up(1);
    b.expect_up(0);
  }
}

TEST_CASE("few descriptors are told, with the way out") {
  const Sites sites(1);
  const DescriptorLimit few(400);
  SiteEnd a(sites.options(0));
  const auto strangers = a.channels().strangers();
  CHECK(std::ranges::any_of(strangers.shortages, [](const std::string& line) {
    return line.find("ulimit -n") != std::string::npos;
  }));
}
#endif

}  // namespace sotto::test::channels_crowd_test
