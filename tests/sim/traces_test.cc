// Links and nodes that change as traces of real ones say, to the nanosecond.
#include <algorithm>
#include <set>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/error.h>
#include <sotto/base/philox.h>
#include <sotto/sim/availability.h>
#include <sotto/sim/client_sample.h>
#include <sotto/sim/network/network.h>
#include <sotto/sim/step_times.h>

#include "sim/job.h"

namespace sotto::test::traces_test {

namespace {

constexpr SimTime kMs = 1'000'000;
constexpr SimTime kS = 1000 * kMs;

std::shared_ptr<const LinkTrace> trace_of(std::vector<SimTime> at, std::vector<double> rates,
                                          SimTime period, std::vector<SimTime> latency = {}) {
  return std::make_shared<const LinkTrace>(LinkTrace{
      .steps = {std::move(at), period}, .bytes_per_s = std::move(rates), .latency = latency});
}

Platform traced_pair(std::shared_ptr<const LinkTrace> trace, SimTime start = 0, double times = 1) {
  Platform platform(2);
  const LinkId link =
      platform.add_link({.trace = std::make_shared<const TracedLink>(TracedLink{
                             .trace = std::move(trace), .start = start, .times = times})});
  platform.set_route(0, 1, {link});
  return platform;
}

/// When a message that is sent at 0 is there.
SimTime arrival(const Platform& platform, std::uint64_t bytes) {
  EventQueue queue;
  Network network(platform, {}, 1, queue);
  const ConnectionId id = network.connect(platform, 0, 1);
  network.send(id, bytes);
  REQUIRE(network.step());
  CHECK(network.offered(0) >= static_cast<double>(bytes) * (1 - 1e-9));
  return queue.now();
}

/// A node that stands still now and then, as events have it.
std::vector<NodeEvent> as_events(Rank node, SimTime from, SimTime until, SimTime period,
                                 SimTime end) {
  std::vector<NodeEvent> events;
  for (SimTime lap = 0; lap < end; lap += period) {
    events.push_back({.at = lap + from, .node = node, .kind = NodeEvent::Kind::suspend});
    events.push_back({.at = lap + until, .node = node, .kind = NodeEvent::Kind::resume});
  }
  return events;
}

SimulatorOptions options_for(Round rounds) {
  SimulatorOptions options;
  options.rounds = rounds;
  options.nodes[0].compute = {.kind = ComputeTime::Kind::uniform, .seconds = 0.01, .spread = 0.3};
  options.seed = 3;
  return options;
}

}  // namespace

TEST_CASE("a cursor is where the times say, whenever a run begins") {
  RandomStream random({.seed = 11, .purpose = Purpose::test});
  for (int trial = 0; trial < 200; ++trial) {
    StepTimes times;
    SimTime at = 0;
    for (std::uint64_t k = 0; k < 1 + random.below(5); ++k) {
      times.at.push_back(at);
      at += 1 + static_cast<SimTime>(random.below(20));
    }
    times.period = random.below(4) == 0 ? kNever : at;
    const auto start = static_cast<SimTime>(random.below(200));
    CAPTURE(trial);
    REQUIRE(times.valid());
    StepCursor cursor(times, start);
    for (SimTime now = 0; now < 300; ++now) {
      while (cursor.next() <= now) {
        cursor.advance();
      }
      const SimTime within = times.period == kNever ? start + now : (start + now) % times.period;
      const auto step = std::ranges::upper_bound(times.at, within) - times.at.begin() - 1;
      REQUIRE(cursor.step() == static_cast<std::size_t>(step));
    }
  }
}

TEST_CASE("a message takes what the trace of its link lets pass, and its latency then") {
  // 1 MB/s for a second, nothing for another, and so on.
  const auto trace = trace_of({0, kS}, {1e6, 0}, 2 * kS);
  CHECK(arrival(traced_pair(trace), 1'500'000) == 2'500 * kMs);
  CHECK(arrival(traced_pair(trace, 500 * kMs), 1'500'000) == 2'500 * kMs);
  CHECK(arrival(traced_pair(trace, 1'500 * kMs), 1'500'000) == 3'000 * kMs);
  CHECK(arrival(traced_pair(trace, 0, 2), 1'500'000) == 750 * kMs);
  CHECK(mean_bandwidth(*trace) == 500'000);
  // The last step holds where nothing repeats.
  const auto once = trace_of({0, kS, 2 * kS}, {1e6, 0, 4e6}, kNever);
  CHECK(arrival(traced_pair(once), 3'000'000) == 2'500 * kMs);
  CHECK(arrival(traced_pair(once, 10 * kS), 3'000'000) == 750 * kMs);
  // The latency is that of the moment at which the last byte leaves.
  const auto slower = trace_of({0, kS}, {1e6, 1e6}, kNever, {10 * kMs, 30 * kMs});
  CHECK(arrival(traced_pair(slower), 500'000) == 510 * kMs);
  CHECK(arrival(traced_pair(slower), 1'500'000) == 1'530 * kMs);
}

TEST_CASE("of a trace of a million steps one is an event at a time") {
  std::vector<SimTime> at;
  std::vector<double> rates;
  for (int k = 0; k < 1'000'000; ++k) {
    at.push_back(k * kMs);
    rates.push_back(k % 2 == 0 ? 1e6 : 3e6);
  }
  const Platform platform = traced_pair(trace_of(at, rates, 1'000'000 * kMs));
  EventQueue queue;
  Network network(platform, {}, 1, queue);
  network.send(network.connect(platform, 0, 1), 100'000);
  std::size_t most = 0;
  for (; !network.under_way(0) == 0 && !queue.empty();) {
    (void)network.step();
    most = std::max(most, queue.size());
  }
  CHECK(network.trace_events() == 1);
  CHECK(queue.now() == 50 * kMs);  // 2 kB a millisecond on average
  CHECK(most < 100);               // and the ends of the message that were expected before
}

TEST_CASE("traces that make no sense are refused, and so are changes of their links") {
  const auto refused = [](const std::shared_ptr<const LinkTrace>& trace) {
    CHECK_THROWS_AS((void)traced_pair(trace), Error);
  };
  refused(nullptr);
  refused(trace_of({}, {}, kNever));
  refused(trace_of({1}, {1}, kNever));
  refused(trace_of({0, 2, 2}, {1, 1, 1}, kNever));
  refused(trace_of({0, 2}, {1, 1}, 2));
  refused(trace_of({0, 2}, {1}, kNever));
  refused(trace_of({0, 2}, {0, 0}, kNever));
  refused(trace_of({0}, {-1}, kNever));
  refused(trace_of({0}, {1}, kNever, {-1}));
  Platform platform = traced_pair(trace_of({0}, {1e6}, kNever));
  const LinkId link = 0;
  CHECK_THROWS_AS(platform.add_change({.at = 1, .link = link, .bytes_per_s = 1}), Error);
  CHECK_THROWS_AS(platform.cut({&link, 1}, 1, 2), Error);
}

TEST_CASE("a node that comes and goes leaves the trace of one that events suspend and resume") {
  for (const char* algorithm : {"dpsgd", "dcd", "adpsgd"}) {
    CAPTURE(algorithm);
    Job job{.algorithm = algorithm, .compressor = std::string(algorithm) == "dcd" ? "quant:8" : ""};
    const Platform platform = make_star(6, 1e6, kMs);
    auto options = options_for(40);
    constexpr SimTime kFrom = 50 * kMs + 7;
    constexpr SimTime kUntil = 130 * kMs + 3;
    constexpr SimTime kPeriod = 200 * kMs + 1;
    options.events = as_events(2, kFrom, kUntil, kPeriod, 4 * kS);
    const auto listed = simulate(job, options, platform);
    const auto models = job.x;
    options.events.clear();
    options.availability.resize(6);
    options.availability[2].times = std::make_shared<const Availability>(
        availability_of({{0, kFrom}, {kUntil, kPeriod}}, kPeriod));
    const auto traced = simulate(job, options, platform);
    CHECK(traced.trace_sha256 == listed.trace_sha256);
    CHECK(traced.end == listed.end);
    CHECK(traced.end > 200 * kMs);
    CHECK(job.x == models);
  }
}

TEST_CASE("who is away at first joins when it comes, and who never comes back is not waited for") {
  Job job;
  const Platform platform = make_star(6, 1e6, kMs);
  auto options = options_for(5);
  options.timeout = 5 * kS;
  options.availability.resize(6);
  options.availability[1].times =
      std::make_shared<const Availability>(availability_of({{kS, kNever}}, kNever));
  const auto late = simulate(job, options, platform);
  CHECK(late.nodes[1].start == kS);
  CHECK(late.nodes[1].rounds == 5);
  CHECK(late.end > kS);
  // It goes after 20 ms, for good: the others' deadlines end them, and it stands still.
  options.availability[1].times =
      std::make_shared<const Availability>(availability_of({{0, 20 * kMs}}, kNever));
  const auto gone = simulate(job, options, platform);
  CHECK(gone.nodes[1].status.fault() == Fault::deadline);
  CHECK(gone.nodes[0].status.fault() != Fault::none);
  CHECK(gone.end < 30 * kS);
  // One that comes and goes, but that an event holds for good, does not keep the run alive.
  options.availability[1].times =
      std::make_shared<const Availability>(availability_of({{0, 20 * kMs}}, 30 * kMs));
  options.events = {{.at = kMs, .node = 1, .kind = NodeEvent::Kind::suspend}};
  CHECK(simulate(job, options, platform).end < 30 * kS);
}

TEST_CASE("nodes that are all away at night go on in the morning") {
  Job job;
  const Platform platform = make_star(6, 1e6, kMs);
  auto options = options_for(40);
  const auto plain = simulate(job, options, platform);
  const auto models = job.x;
  const auto day = std::make_shared<const Availability>(availability_of({{0, 100 * kMs}}, 10 * kS));
  options.availability.assign(6, {.times = day});
  const auto shifts = simulate(job, options, platform);
  CHECK(job.x == models);
  // Each whole day of work is followed by a night.
  const SimTime nights = plain.end / (100 * kMs);
  CHECK(shifts.end > nights * 10 * kS);
  CHECK(shifts.end < (nights + 1) * 10 * kS + 100 * kMs);
  // A run that begins at noon has half of the first day.
  options.availability.assign(6, {.times = day, .start = 50 * kMs});
  CHECK(simulate(job, options, platform).end >= shifts.end - 50 * kMs);
  CHECK(job.x == models);
}

TEST_CASE("a node with hours waits for a peer that vanished no longer than its timeout of hours") {
  Job job;
  const Platform platform = make_star(6, 1e6, kMs);
  auto options = options_for(40);
  options.timeout = 5 * kS;  // days have 3 s, of which 1 s is work
  const auto day = std::make_shared<const Availability>(availability_of({{0, kS}}, 3 * kS));
  options.availability.assign(6, {.times = day});
  options.events = {{.at = 100 * kMs, .node = 1, .kind = NodeEvent::Kind::vanish}};
  const auto report = simulate(job, options, platform);
  for (std::size_t node = 0; node < 6; ++node) {
    CHECK_FALSE(report.nodes[node].status.ok());
  }
  // Five seconds of work are five days.
  CHECK(report.end >= 13 * kS);
  CHECK(report.end <= 20 * kS);
}

TEST_CASE("how long a node is there between two times is what its steps add up to") {
  const std::uint64_t seed = 20'261;
  CAPTURE(seed);
  RandomStream draws({.seed = seed, .purpose = Purpose::test});
  for (int trial = 0; trial < 300; ++trial) {
    Availability times{.there_first = draws.below(2) == 0};
    times.steps.at = {0};
    for (std::uint64_t more = draws.below(5); more > 0; --more) {
      times.steps.at.push_back(times.steps.at.back() + 1 + static_cast<SimTime>(draws.below(9)));
    }
    if (draws.below(3) > 0) {
      times.steps.period = times.steps.at.back() + 1 + static_cast<SimTime>(draws.below(9));
    }
    const NodeAvailability node{.times = std::make_shared<const Availability>(times),
                                .start = static_cast<SimTime>(draws.below(70))};
    const auto from = static_cast<SimTime>(draws.below(60));
    const SimTime until = from + static_cast<SimTime>(draws.below(80));
    StepCursor cursor(times.steps, node.start);
    SimTime due = 0;
    for (SimTime now = 0; now < until; ++now) {
      for (; cursor.next() <= now; cursor.advance()) {
      }
      due += now >= from && times.there(cursor.step()) ? 1 : 0;
    }
    CAPTURE(trial);
    REQUIRE(time_there(node, from, until) == due);
  }
  CHECK(time_there({}, 3, 10) == 7);
}

TEST_CASE("a node is there for the first time when its times say, seen from the run's start") {
  CHECK(first_presence({}) == 0);
  const auto day = std::make_shared<const Availability>(
      availability_of({{2 * kS, 3 * kS}, {5 * kS, 6 * kS}}, 10 * kS));
  CHECK(first_presence({.times = day}) == 2 * kS);
  CHECK(first_presence({.times = day, .start = 2 * kS}) == 0);
  CHECK(first_presence({.times = day, .start = 4 * kS}) == kS);
  CHECK(first_presence({.times = day, .start = 7 * kS}) == 5 * kS);
  CHECK(first_presence({.times = day, .start = 27 * kS}) == 5 * kS);
}

TEST_CASE("a sample has each client once, and every client comes in time") {
  std::vector<int> drawn(30);
  for (std::uint32_t draw = 0; draw < 3'000; ++draw) {
    const auto sample = draw_clients(5, draw, 10, 30);
    CHECK(std::set(sample.begin(), sample.end()).size() == 10);
    for (const auto client : sample) {
      REQUIRE(client < 30);
      ++drawn[client];
    }
  }
  // A thousand each, give or take five deviations of 26.
  CHECK(*std::ranges::min_element(drawn) > 870);
  CHECK(*std::ranges::max_element(drawn) < 1'130);
  ClientSample sample(5, 10, 30);
  CHECK(sample.client(3, 7) == draw_clients(5, 7, 10, 30)[3]);
  CHECK(sample.client(9, 2) == draw_clients(5, 2, 10, 30)[9]);
}

TEST_CASE("a round lasts as long as the slowest of the clients that are drawn for it") {
  Job job{.algorithm = "allreduce"};
  job.nodes = 4;
  const Platform platform = make_star(4, 1e9, 0);
  auto options = options_for(6);
  auto clients = std::make_shared<std::vector<Client>>();
  for (int k = 0; k < 50; ++k) {
    clients->push_back({.gradient_s = 1.0 + k, .bytes_per_s = 1e9});
  }
  options.sampling = {.clients = clients, .every = 2, .model_bytes = 1e8};
  const auto report = simulate(job, options, platform);
  double expected = 0;
  for (std::uint32_t draw = 0; draw < 3; ++draw) {
    const auto drawn = draw_clients(options.seed, draw, 4, 50);
    expected += 2 * (1.0 + *std::ranges::max_element(drawn)) + 0.1;  // and 0.1 s for the model
  }
  CHECK(to_seconds(report.end) == doctest::Approx(expected).epsilon(1e-4));
  // Fewer clients than nodes, and links that are not theirs to change.
  clients->resize(3);
  CHECK_THROWS_AS((void)simulate(job, options, platform), Error);
  clients->resize(4, {.gradient_s = 1, .bytes_per_s = 1e6});
  Platform open(4);
  open.set_default_route({});
  CHECK_THROWS_AS((void)simulate(job, options, open), Error);
}

TEST_CASE("without deadlines, nodes wait for a link that its trace closes for a while") {
  Job job{.topology = "complete", .nodes = 2};
  auto options = options_for(5);
  options.timeout = kNever;
  // Open for 5 ms of each second: what a node sends after its gradient waits for the next one.
  Platform platform = traced_pair(trace_of({0, 5 * kMs}, {1e6, 0}, kS));
  platform.set_route(1, 0, {platform.add_link({.bytes_per_s = 1e6})});
  const SimulationReport report = simulate(job, options, platform);
  for (const auto& node : report.nodes) {
    CHECK_MESSAGE(node.status.ok(), node.status.message());
    CHECK(node.rounds == 5);
  }
  CHECK(report.nodes[1].end > kS);
}

TEST_CASE("a node that is suspended for good does not keep a trace going for ever") {
  Job job{.topology = "complete", .nodes = 2};
  auto options = options_for(1000);
  options.timeout = kNever;
  options.events.push_back({.at = 3 * kMs, .node = 0, .kind = NodeEvent::Kind::suspend});
  Platform platform = traced_pair(trace_of({0, 5 * kMs}, {1e6, 2e6}, 10 * kMs));
  platform.set_route(1, 0, {platform.add_link({.bytes_per_s = 1e6})});
  const SimulationReport report = simulate(job, options, platform);
  CHECK_FALSE(report.nodes[1].status.ok());
  CHECK(report.nodes[1].end < kS);
}

TEST_CASE("a link whose trace has ended closed holds its messages for good, and the run ends") {
  Job job{.topology = "complete", .nodes = 2};
  auto options = options_for(1000);
  options.timeout = kNever;
  Platform platform = traced_pair(trace_of({0, 30 * kMs}, {1e6, 0}, kNever));
  platform.set_route(
      1, 0,
      {platform.add_link({.trace = std::make_shared<const TracedLink>(TracedLink{
                              .trace = trace_of({0, 5 * kMs}, {1e6, 2e6}, 10 * kMs)})})});
  const SimulationReport report = simulate(job, options, platform);
  CHECK_FALSE(report.nodes[1].status.ok());
  CHECK(report.nodes[1].end < kS);
}

TEST_CASE("a trace that is infinitely wide is refused") {
  CHECK_THROWS_WITH_AS(arrival(traced_pair(trace_of({0, kS}, {1e6, 0}, 2 * kS), 0, kUnlimited), 1),
                       doctest::Contains("not infinitely"), Error);
}

}  // namespace sotto::test::traces_test
