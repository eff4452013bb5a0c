#include <sotto/sim/network/network.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/error.h>
#include <sotto/base/philox.h>

namespace sotto::test::network_test {

namespace {

constexpr SimTime kMs = 1'000'000;

/// One half-duplex link between two hosts.
Platform one_link(const LinkSpec& spec) {
  Platform platform(2);
  const LinkId link = platform.add_link(spec);
  platform.set_route(0, 1, {link});
  platform.set_route(1, 0, {link});
  return platform;
}

struct Job {
  Rank from;
  Rank to;
  std::uint64_t bytes;
};

/// When each of the messages, all sent at 0 on connections of their own, is delivered; kNever: not.
std::vector<SimTime> deliver(const Platform& platform, const std::vector<Job>& jobs,
                             const NetworkModel& model = {}) {
  EventQueue queue;
  Network network(platform, model, 1, queue);
  for (const Job& job : jobs) {
    network.connect(platform, job.from, job.to);
  }
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    network.send(static_cast<ConnectionId>(i), jobs[i].bytes);
  }
  std::vector<SimTime> times(jobs.size(), kNever);
  while (const auto delivery = network.step()) {
    times[delivery->connection] = queue.now();
  }
  return times;
}

Platform random_star(RandomStream& random, int hosts, double scale) {
  Platform platform(hosts);
  platform.set_default_route({});
  for (Rank h = 0; h < hosts; ++h) {
    platform.set_egress(h, {.bytes_per_s = scale * (1e5 + 1e6 * random.uniform()),
                            .latency = static_cast<SimTime>(random.below(20 * kMs))});
    platform.set_ingress(h, {.bytes_per_s = scale * (1e5 + 1e6 * random.uniform())});
  }
  return platform;
}

}  // namespace

TEST_CASE("known answers: 100 kB over 10 ms and 1 Mbit/s") {
  const Platform platform = one_link({.bytes_per_s = 125e3, .latency = 10 * kMs});
  CHECK(deliver(platform, {{0, 1, 100'000}}, NetworkModel::cm02())[0] == 810 * kMs);
  CHECK(to_seconds(deliver(platform, {{0, 1, 100'000}}, NetworkModel::lv08())[0]) ==
        doctest::Approx(0.996079).epsilon(1e-6));
}

TEST_CASE("events come in the order of time, then of insertion") {
  RandomStream random({.seed = 7, .purpose = Purpose::test});
  EventQueue queue;
  std::uint32_t number = 0;
  Event last{.time = -1};
  for (int i = 0; i < 20'000; ++i) {
    if (random.below(5) < 3 || queue.empty()) {
      queue.push(
          {.time = queue.now() + static_cast<SimTime>(random.below(50)), .subject = number++});
      continue;
    }
    const SimTime due = queue.next_time();
    const Event event = queue.pop();
    REQUIRE(event.time == due);
    REQUIRE((event.time > last.time || (event.time == last.time && event.subject > last.subject)));
    last = event;
  }
}

TEST_CASE(
    "the next time is known without a look at events far away, and what never comes is not kept") {
  EventQueue queue;
  CHECK(queue.next_time() == kNever);
  queue.push({.time = kNever});
  CHECK(queue.empty());
  RandomStream random({.seed = 8, .purpose = Purpose::test});
  std::vector<SimTime> times;
  for (int i = 0; i < 2'000; ++i) {
    times.push_back(static_cast<SimTime>(random.below(kNever >> random.below(60))));
    queue.push({.time = times.back()});
    REQUIRE(queue.next_time() == *std::min_element(times.begin(), times.end()));
  }
  std::sort(times.begin(), times.end());
  for (const SimTime time : times) {
    REQUIRE(queue.next_time() == time);
    REQUIRE(queue.pop().time == time);
  }
}

TEST_CASE("messages of one connection arrive in order, one latency behind each other's rate") {
  EventQueue queue;
  const Platform platform = one_link({.bytes_per_s = 1e6, .latency = 5 * kMs});
  Network network(platform, {}, 1, queue);
  const ConnectionId connection = network.connect(platform, 0, 1);
  network.send(connection, 10'000);
  network.send(connection, 20'000);
  CHECK(network.under_way(connection) == 2);
  CHECK(network.step()->bytes == 10'000);
  CHECK(queue.now() == 15 * kMs);
  CHECK(network.step()->bytes == 20'000);
  CHECK(queue.now() == 35 * kMs);
  CHECK_FALSE(network.step());
  CHECK(network.carried()[0] == 30'000);
}

TEST_CASE("what would take longer than time lasts does not arrive") {
  CHECK(plus(5, 6) == 11);
  CHECK(plus(5, kNever) == kNever);
  CHECK(plus(kNever - 5, 6) == kNever);
  CHECK(plus(kNever, 0) == kNever);
  const LinkSpec slow = {.bytes_per_s = 1e-3, .latency = 10'000 * kMs};
  CHECK(deliver(one_link(slow), {{0, 1, 1'000'000'000'000}})[0] == kNever);
  NetworkModel model;
  model.latency_factor = 1e12;
  CHECK(deliver(one_link(slow), {{0, 1, 1}}, model)[0] == kNever);
}

TEST_CASE("a link that is cut holds its messages until it heals") {
  Platform platform = one_link({.bytes_per_s = 1e6});
  const LinkId link = 0;
  platform.cut({&link, 1}, 4 * kMs, 100 * kMs);
  CHECK(deliver(platform, {{0, 1, 10'000}})[0] == 106 * kMs);
  Platform slow = one_link({.bytes_per_s = 1e6});
  slow.add_change({.at = 5 * kMs, .link = 0, .bytes_per_s = 1e5});
  CHECK(deliver(slow, {{0, 1, 10'000}})[0] == 55 * kMs);
  Platform lost = one_link({.bytes_per_s = 1e6});
  lost.cut({&link, 1}, 4 * kMs, kNever);
  CHECK(deliver(lost, {{0, 1, 10'000}})[0] == kNever);
}

TEST_CASE("a bound that changes under a running flow changes its rate") {
  Platform platform(2);
  const LinkId there = platform.add_link({.latency = 10 * kMs});
  const LinkId back = platform.add_link({.latency = 10 * kMs});
  platform.set_route(0, 1, {there});
  platform.set_route(1, 0, {back});
  platform.add_change(
      {.at = 1'000 * kMs, .link = back, .bytes_per_s = kUnlimited, .latency = 190 * kMs});
  // 50 MB/s until 1 s, then 5 MB/s for the other half, and 10 ms.
  CHECK(deliver(platform, {{0, 1, 100'000'000}}, {.window_bytes = 1e6})[0] == 11'010 * kMs);
}

TEST_CASE("a round trip may become 0, and positive again") {
  Platform platform(2);
  const LinkId back = platform.add_link({.latency = 10 * kMs});
  platform.set_route(0, 1, {});
  platform.set_route(1, 0, {back});
  platform.add_change({.at = 1 * kMs, .link = back, .bytes_per_s = kUnlimited, .latency = 0});
  platform.add_change(
      {.at = 100 * kMs, .link = back, .bytes_per_s = kUnlimited, .latency = 10 * kMs});
  EventQueue queue;
  Network network(platform, {.window_bytes = 1e6}, 1, queue);
  const ConnectionId connection = network.connect(platform, 0, 1);
  network.send(connection, 1'000'000);
  REQUIRE(network.step());
  CHECK(queue.now() == 1 * kMs + 1);  // all at once when the round trip becomes 0
  network.step();
  CHECK(queue.now() == 100 * kMs);
  network.send(connection, 1'000'000);
  REQUIRE(network.step());
  CHECK(queue.now() == 110 * kMs);
}

TEST_CASE("jitter stays within its bounds, differs between messages and repeats by seed") {
  const Platform platform = one_link({.bytes_per_s = 1e9, .latency = 10 * kMs, .jitter = 4 * kMs});
  const std::vector<Job> jobs(1, {0, 1, 1000});
  CHECK(deliver(platform, jobs) == deliver(platform, jobs));
  EventQueue queue;
  Network network(platform, {}, 1, queue);
  const ConnectionId connection = network.connect(platform, 0, 1);
  std::vector<SimTime> took;
  for (int i = 0; i < 200; ++i) {
    const SimTime sent = queue.now();
    network.send(connection, 1000);
    REQUIRE(network.step());
    took.push_back(queue.now() - sent - 1000);
  }
  CHECK(*std::min_element(took.begin(), took.end()) >= 6 * kMs);
  CHECK(*std::max_element(took.begin(), took.end()) <= 14 * kMs);
  CHECK(*std::max_element(took.begin(), took.end()) - *std::min_element(took.begin(), took.end()) >
        6 * kMs);
}

TEST_CASE("a way out is busy while its sender sends, and with latency first, one latency later") {
  // Both cross the way out of 1 MB/s, 100 ms and 10 ms far.
  Platform platform(3);
  platform.set_egress(0, {.bytes_per_s = 1e6});
  platform.set_route(0, 1, {platform.add_link({.latency = 100 * kMs})});
  platform.set_route(0, 2, {platform.add_link({.latency = 10 * kMs})});
  const std::vector<Job> jobs = {{0, 1, 20'000}, {0, 2, 20'000}};
  CHECK(deliver(platform, jobs) == std::vector<SimTime>{140 * kMs, 50 * kMs});
  CHECK(deliver(platform, jobs, {.latency_first = true}) ==
        std::vector<SimTime>{120 * kMs, 30 * kMs});
}

TEST_CASE("a stream of messages loses no fraction of a nanosecond between them") {
  // 7 bytes at 3 GB/s take 2⅓ ns.
  for (const bool latency_first : {false, true}) {
    EventQueue queue;
    const Platform platform = one_link({.bytes_per_s = 3e9});
    Network network(platform, {.latency_first = latency_first}, 1, queue);
    const ConnectionId connection = network.connect(platform, 0, 1);
    constexpr int kMessages = 30'000;
    for (int i = 0; i < kMessages; ++i) {
      network.send(connection, 7);
    }
    for (int i = 1; i <= kMessages; ++i) {
      REQUIRE(network.step());
      REQUIRE(queue.now() == (7 * i + 2) / 3);
    }
  }
}

TEST_CASE("what a link could have carried follows its changes") {
  Platform platform = one_link({.bytes_per_s = 1e6});
  const LinkId link = 0;
  platform.add_change({.at = 10 * kMs, .link = link, .bytes_per_s = 4e6});
  platform.cut({&link, 1}, 20 * kMs, 30 * kMs);
  EventQueue queue;
  Network network(platform, {}, 1, queue);
  network.send(network.connect(platform, 0, 1), 70'000);
  REQUIRE(network.step());
  CHECK(queue.now() == 35 * kMs);
  CHECK(network.offered(link) == doctest::Approx(70'000));
}

TEST_CASE("of cuts and changes of one link, each holds from its moment on") {
  Platform platform = one_link({.bytes_per_s = 1e6});
  const LinkId link = 0;
  const auto at = [](SimTime ms, double rate, SimTime latency = 0) {
    return LinkChange{.at = ms * kMs, .link = 0, .bytes_per_s = rate, .latency = latency};
  };
  platform.add_change(at(5, 5));
  platform.add_change(at(20, 20, 2));
  platform.add_change(at(15, 15, 1));
  platform.add_change(at(15, 16, 1));
  platform.cut({&link, 1}, 10 * kMs, 20 * kMs);
  platform.cut({&link, 1}, 30 * kMs, 40 * kMs);
  platform.cut({&link, 1}, 50 * kMs, kNever);
  std::vector<std::vector<double>> seen;
  for (const LinkChange& change : platform.changes()) {
    seen.push_back({static_cast<double>(change.at / kMs), change.bytes_per_s,
                    static_cast<double>(change.latency)});
  }
  // The second of the two changes at 20 ms holds: the cut heals to what then is.
  CHECK(seen ==
        std::vector<std::vector<double>>{
            {5, 5, 0}, {10, 0, 0}, {20, 16, 1}, {20, 20, 2}, {30, 0, 2}, {40, 20, 2}, {50, 0, 2}});
}

TEST_CASE(
    "half the bandwidth makes no message faster, and bytes are conserved, and rates are fair") {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    CAPTURE(seed);
    RandomStream random({.seed = seed, .purpose = Purpose::test});
    const int hosts = 3 + static_cast<int>(random.below(8));
    RandomStream again = random;
    const Platform fast = random_star(random, hosts, 1);
    const Platform slow = random_star(again, hosts, 0.5);
    std::vector<Job> jobs;
    for (int i = 0; i < 40; ++i) {
      const auto from = static_cast<Rank>(random.below(static_cast<std::uint64_t>(hosts)));
      const auto to = static_cast<Rank>(
          (from + 1 + static_cast<Rank>(random.below(static_cast<std::uint64_t>(hosts - 1)))) %
          hosts);
      jobs.push_back({from, to, 1 + random.below(200'000)});
    }
    const auto at_full = deliver(fast, jobs);
    const auto at_half = deliver(slow, jobs);
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      CHECK(at_half[i] >= at_full[i]);
    }

    EventQueue queue;
    Network network(fast, {}, 1, queue);
    double sent = 0;
    for (const Job& job : jobs) {
      network.send(network.connect(fast, job.from, job.to), job.bytes);
      sent += static_cast<double>(job.bytes);
    }
    double received = 0;
    while (const auto delivery = network.step()) {
      received += static_cast<double>(delivery->bytes);
      network.settle();
      REQUIRE(network.shares().unfairness() < 1e-8);
    }
    double carried = 0;
    for (const double bytes : network.carried()) {
      carried += bytes;
    }
    CHECK(received == sent);
    CHECK(carried == 2 * sent);
  }
}

TEST_CASE("platforms refuse what cannot be, and name it") {
  Platform platform(2);
  CHECK_THROWS_WITH_AS(platform.add_link({.name = "x", .bytes_per_s = -1}),
                       "bandwidth of link x: '-1 bytes/s' is refused: it must be 0 or more", Error);
  CHECK_THROWS_AS(platform.add_link({.latency = -1}), Error);
  CHECK_THROWS_AS(platform.add_link({.latency = 9'000'000'000'000'000'000}), Error);
  CHECK_THROWS_AS(platform.add_link({.latency = 1, .jitter = 2}), Error);
  CHECK_THROWS_AS(platform.add_link({.loss = 1}), Error);
  CHECK_THROWS_AS(platform.set_route(0, 2, {}), Error);
  CHECK_THROWS_AS(platform.set_route(0, 1, {0}), Error);
  CHECK_THROWS_WITH_AS(
      platform.route(0, 1),
      "route: 'host 0 to host 1' is refused: the platform has no link between them", Error);
}

}  // namespace sotto::test::network_test
