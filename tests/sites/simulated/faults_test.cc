// Sites under faults, in virtual time: each row of the table of faults that can be played without a
// network (docs/faults.md), and thousands of random ones.
#include <cmath>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/sites/simulated/simulated_sites.h>

#include "sites/simulated/fault_plans.h"

namespace sotto::test::faults_test {

using Kind = SimulatedSiteEvent::Kind;

TEST_CASE("faults: without any, sites keep step and come together") {
  const SimulatedSitesReport report = play(plan_of(5, {}));
  CHECK(report.rounds_least > 80);
  CHECK(report.rounds_most - report.rounds_least <= 1);
  CHECK(report.resets == 0);
  CHECK(report.minted == 5);
  CHECK(std::abs(report.lost) <= 1e-9);
}

TEST_CASE("faults: SIGKILL any node at any round, the bootstrap node included") {
  for (Rank site = 0; site < 4; ++site) {
    for (Round round = 0; round < 5; ++round) {
      for (const FaultMoment moment :
           {FaultMoment::any, FaultMoment::before_commit, FaultMoment::before_release}) {
        CAPTURE(site);
        CAPTURE(round);
        SimTime died = kNever;
        SimTime noticed = 0;
        std::set<Rank> heard_of_it;
        const auto watch = [&](const SimulatedSiteEvent& event) {
          if (event.kind == Kind::ended) {
            died = event.time;
          } else if (event.kind == Kind::down && event.peer == site && died != kNever) {
            noticed = std::max(noticed, event.time - died);
            heard_of_it.insert(event.site);
          }
        };
        // For good: the survivors finish.
        const SimulatedSitesReport report = play(
            plan_of(4,
                    {{.kind = FaultKind::kill, .sites = {site}, .round = round, .moment = moment}}),
            1 + round, watch);
        CHECK(injected(report, FaultKind::kill) == 1);
        CHECK(report.rounds_least > 80);
        CHECK(noticed <= 2 * kSecond);
        // And back again: in step, with all of its mass.
        const SimulatedSitesReport back = play(plan_of(4, {{.kind = FaultKind::kill,
                                                            .sites = {site},
                                                            .round = round,
                                                            .moment = moment,
                                                            .lasting = 2 * kSecond}}),
                                               1 + round);
        CHECK(back.rounds_least > 60);
        CHECK(back.resets == 0);
      }
    }
  }
}

TEST_CASE("faults: a peer that dies before its first message") {
  for (const SimTime at : {SimTime{0}, kMillisecond, 5 * kMillisecond, 100 * kMillisecond}) {
    const SimulatedSitesReport report =
        play(plan_of(4, {{.kind = FaultKind::kill, .sites = {1}, .at = at}}));
    CHECK(report.rounds_least > 60);
  }
}

TEST_CASE("faults: SIGSTOP, later SIGCONT: short ones go unnoticed, long ones rejoin") {
  for (const SimTime lasting : {kSecond, 10 * kSecond}) {
    std::set<Rank> noticed;
    const SimulatedSitesReport report = play(
        plan_of(4,
                {{.kind = FaultKind::stop, .sites = {2}, .at = 5 * kSecond, .lasting = lasting}}),
        1, [&](const SimulatedSiteEvent& event) {
          if (event.kind == Kind::down && event.peer == 2) {
            noticed.insert(event.site);
            CHECK(event.time <= 5 * kSecond + 3 * kSecond + kSecond);
          }
        });
    CHECK(noticed.size() == (lasting == kSecond ? 0 : 2));
    CHECK(report.resets == 0);
    CHECK(report.worst_recovery <= 2 * 3 * kSecond);
  }
}

TEST_CASE("faults: a process that was replaced while it stood still is fenced") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    std::size_t ended = 0;
    const SimulatedSitesReport report = play(
        plan_of(4, {{.kind = FaultKind::replace,
                     .sites = {2},
                     .at = 5 * kSecond,
                     .lasting = static_cast<SimTime>(seed) * kSecond / 2}}),
        seed, [&](const SimulatedSiteEvent& event) { ended += event.kind == Kind::ended ? 1 : 0; });
    CHECK(ended >= 1);
    CHECK(injected(report, FaultKind::replace) == 1);
  }
}

TEST_CASE("faults: TCP resets at random offsets lose nothing") {
  std::vector<PlannedFault> faults;
  for (int i = 0; i < 40; ++i) {
    faults.push_back({.kind = FaultKind::reset,
                      .sites = {static_cast<Rank>(i % 4)},
                      .peers = {static_cast<Rank>((i + 1) % 4)},
                      .at = kSecond + i * (kSecond / 2),
                      .bytes = static_cast<std::uint64_t>(37 * i)});
  }
  const SimulatedSitesReport report = play(plan_of(4, faults));
  CHECK(injected(report, FaultKind::reset) >= 30);
  CHECK(std::abs(report.lost) <= 1e-9);
  CHECK(report.minted == 4);
}

TEST_CASE("faults: one-way loss on each edge, and recovery within two deadlines of the heal") {
  for (Rank site = 0; site < 4; ++site) {
    for (const Rank step : {1, 3}) {
      for (const SimTime lasting : {kSecond, 7 * kSecond}) {
        const SimulatedSitesReport report = play(plan_of(4, {{.kind = FaultKind::one_way,
                                                              .sites = {site},
                                                              .peers = {(site + step) % 4},
                                                              .at = 5 * kSecond,
                                                              .lasting = lasting}}));
        CHECK(report.worst_recovery <= 2 * 3 * kSecond);
        CHECK(std::abs(report.lost) <= 1e-9);
        CHECK(report.resets == 0);
      }
    }
  }
}

TEST_CASE("faults: a partition, and its heal") {
  const SimulatedSitesReport report = play(plan_of(6, {{.kind = FaultKind::partition,
                                                        .sites = {0, 1, 2},
                                                        .peers = {3, 4, 5},
                                                        .at = 5 * kSecond,
                                                        .lasting = 9 * kSecond}}));
  CHECK(injected(report, FaultKind::partition) == 1);
  CHECK(report.worst_recovery <= 2 * 3 * kSecond);
  CHECK(std::abs(report.lost) <= 1e-9);
  CHECK(report.rounds_least > 60);
}

TEST_CASE("faults: a large message on a slow link never looks like death") {
  // A parcel takes nine seconds, three times the silence that means death.
  FaultPlan plan = plan_of(3, {}, 60 * kSecond);
  plan.link = {.bytes_per_s = 10, .latency = 10 * kMillisecond};
  std::size_t downs = 0;
  const SimulatedSitesReport report = play(
      plan, 1, [&](const SimulatedSiteEvent& event) { downs += event.kind == Kind::down ? 1 : 0; });
  CHECK(downs == 0);
  CHECK(report.rounds_least > 10);
}

TEST_CASE("faults: crash at every write of the state") {
  for (const FaultMoment moment : {FaultMoment::before_commit, FaultMoment::before_release}) {
    std::vector<PlannedFault> faults;
    for (Round round = 0; round < 20; ++round) {
      faults.push_back({.kind = FaultKind::kill,
                        .sites = {static_cast<Rank>(round % 4)},
                        .round = round,
                        .moment = moment,
                        .lasting = kSecond / 5});
    }
    const SimulatedSitesReport report = play(plan_of(4, faults));
    CHECK(injected(report, FaultKind::kill) == 20);
    CHECK(report.minted == 4);
    CHECK(std::abs(report.lost) <= 1e-9);
  }
}

TEST_CASE("faults: a flipped bit in a state means that it is gone, never a wrong model") {
  const SimulatedSitesReport report = play(plan_of(
      4, {{.kind = FaultKind::corrupt, .sites = {1}, .at = 5 * kSecond, .lasting = kSecond}}));
  CHECK(injected(report, FaultKind::corrupt) == 1);
  CHECK(report.minted == 5);
  CHECK(report.lost > 0);
}

TEST_CASE("faults: an old state restored while peers run is given up") {
  for (std::uint64_t back = 1; back <= 6; ++back) {
    const SimulatedSitesReport report = play(plan_of(4, {{.kind = FaultKind::restore,
                                                          .sites = {1},
                                                          .at = 5 * kSecond,
                                                          .lasting = kSecond,
                                                          .back = back}}));
    CHECK(injected(report, FaultKind::restore) == 1);
    CHECK(report.resets == 1);
    CHECK(report.minted == 5);
  }
}

TEST_CASE("faults: the state is gone, and a neighbour's model taken over") {
  const SimulatedSitesReport report = play(
      plan_of(4, {{.kind = FaultKind::lose, .sites = {1}, .at = 5 * kSecond, .lasting = kSecond}}));
  CHECK(report.minted == 5);
  // It goes on where the others are.
  CHECK(report.rounds_most - report.rounds_least <= 2);
}

TEST_CASE("faults: a revoked peer gets nothing, and one that is trusted again comes back") {
  const SimulatedSitesReport report = play(
      plan_of(4, {{.kind = FaultKind::forget,
                   .sites = {1},
                   .peers = {2},
                   .at = 5 * kSecond,
                   .lasting = 6 * kSecond}}),
      1, [](const SimulatedSiteEvent& event) {
        if (event.kind == Kind::sent && event.time > 5 * kSecond && event.time < 11 * kSecond) {
          CHECK_FALSE((event.site == 1 && event.peer == 2));
        }
      });
  CHECK(report.rounds_least > 60);
}

TEST_CASE("faults: who sums in secret keeps as many peers on its list as it begins with") {
  for (const int sites : {4, 5}) {
    CAPTURE(sites);
    FaultPlan plan = plan_of(
        sites, {{.kind = FaultKind::forget,
                 .sites = {1},
                 .peers = {2},
                 .at = 5 * kSecond,
                 .lasting = 9 * kSecond},
                {.kind = FaultKind::kill, .sites = {1}, .at = 7 * kSecond, .lasting = kSecond}});
    plan.graph = "complete";
    plan.exchange = sites::MixingKind::secure_mean;
    plan.window = sites::usual_window(plan.exchange);
    const SimulatedSitesReport report = play(plan);
    CHECK(injected(report, FaultKind::forget) == (sites > 4 ? 1U : 0U));
    CHECK(injected(report, FaultKind::kill) == 1);
  }
}

TEST_CASE("faults: a clock jump of an hour changes nothing") {
  const auto hash = [](std::vector<PlannedFault> faults) {
    std::vector<std::string> trace;
    play(plan_of(3, std::move(faults)), 7, [&](const SimulatedSiteEvent& event) {
      if (event.kind != Kind::fault) {
        trace.push_back(to_string(event));
      }
    });
    return trace;
  };
  CHECK(hash({}) == hash({{.kind = FaultKind::clock, .sites = {1}, .at = 5 * kSecond}}));
}

TEST_CASE("faults: sites join late, leave, and come back") {
  const SimulatedSitesReport report = play(plan_of(
      5, {{.kind = FaultKind::join, .sites = {3}, .at = 6 * kSecond},
          {.kind = FaultKind::leave, .sites = {0}, .at = 9 * kSecond, .lasting = 6 * kSecond},
          {.kind = FaultKind::leave, .sites = {4}, .at = 20 * kSecond}}));
  CHECK(report.minted == 5);
  CHECK(report.resets == 0);
  CHECK(std::abs(report.lost) <= 1e-9);
}

TEST_CASE("faults: all sites die at once, and come back") {
  const SimulatedSitesReport report = play(plan_of(
      4,
      {{.kind = FaultKind::kill, .sites = {0, 1, 2, 3}, .at = 5 * kSecond, .lasting = kSecond}}));
  CHECK(injected(report, FaultKind::kill) == 4);
  CHECK(report.minted == 4);
  CHECK(std::abs(report.lost) <= 1e-9);
}

TEST_CASE("faults: spawn and kill at random: memory stays flat") {
  const SimulatedSitesReport brief = play(soak(5, "ring", 20, 60 * kSecond));
  const SimulatedSitesReport lengthy = play(soak(5, "ring", 400, 1200 * kSecond));
  CHECK(lengthy.most_pending <= 3);
  // Names, streams, and eight incarnations remembered of each neighbour.
  CHECK(lengthy.largest_state <= brief.largest_state + 3 * 8 * 12 + 64);
}

TEST_CASE("faults: 3,300 seeds of random faults") {
#ifdef SOTTO_SANITIZED
  constexpr std::uint64_t kPart = 10;  // a tenth of them where all is ten times slower
#else
  constexpr std::uint64_t kPart = 1;
#endif
  const std::vector<FaultKind> kWithReplace = {
      FaultKind::kill,    FaultKind::stop,      FaultKind::replace, FaultKind::reset,
      FaultKind::one_way, FaultKind::partition, FaultKind::slow,    FaultKind::leave};
  struct Soak {
    FaultPlan plan;
    std::uint64_t seeds;
  };
  std::vector<Soak> soaks = {{soak(4, "ring", 12, 40 * kSecond), 1200},
                             {soak(6, "exponential", 12, 40 * kSecond), 400},
                             {soak(3, "complete", 12, 40 * kSecond), 400},
                             {soak(5, "ring", 30, 60 * kSecond), 400},
                             {soak(4, "ring", 12, 40 * kSecond, kWithReplace), 400},
                             {soak(4, "ring", 12, 40 * kSecond), 400},
                             {soak(5, "complete", 12, 40 * kSecond), 100}};
  soaks[1].plan.compressor = "quant:4";
  soaks[2].plan.compressor = "topk:0.3";
  soaks[5].plan.exchange = sites::MixingKind::gossip;
  soaks[5].plan.compressor = "quant:8";
  soaks[6].plan.exchange = sites::MixingKind::secure_mean;
  soaks[6].plan.window = sites::usual_window(sites::MixingKind::secure_mean);
  soaks[3].plan.interval = 2;
  soaks[3].plan.slack = 1;
  soaks[3].plan.window = 3;
  std::vector<std::uint64_t> times(fault_kinds().size());
  for (const Soak& each : soaks) {
    for (std::uint64_t seed = 1; seed <= each.seeds / kPart; ++seed) {
      const SimulatedSitesReport report = play(each.plan, seed);
      REQUIRE_FALSE(report.violation);
      for (std::size_t i = 0; i < times.size(); ++i) {
        times[i] += report.injected[i];
      }
    }
  }
  for (const FaultKindInfo& kind : fault_kinds()) {
    if (kind.random) {
      CHECK_MESSAGE(times[static_cast<std::size_t>(kind.kind)] > 100 / kPart, kind.name);
    }
  }
}

TEST_CASE("faults: the same seed replays exactly, another does not") {
  const FaultPlan plan = soak(5, "ring", 30, 60 * kSecond);
  std::set<std::string> hashes;
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    std::vector<std::string> trace;
    const auto keep = [&](const SimulatedSiteEvent& event) { trace.push_back(to_string(event)); };
    const SimulatedSitesReport first = play(plan, seed, keep);
    const std::vector<std::string> before = std::exchange(trace, {});
    const SimulatedSitesReport again = play(plan, seed, keep);
    CHECK(first.trace_sha256 == again.trace_sha256);
    CHECK(first.events == again.events);
    CHECK(before == trace);
    hashes.insert(first.trace_sha256);
  }
  CHECK(hashes.size() == 5);
}

}  // namespace sotto::test::faults_test
