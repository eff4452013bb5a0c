// A schedule of faults over a target that only writes down what is asked of it.
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/sites/faults/fault_schedule.h>

namespace sotto::test::fault_schedule_test {

using namespace sotto::sites;

namespace {

constexpr int kSites = 4;

/// Sites that always have a process, and let every fault have its effect.
struct WrittenDown final : FaultTarget {
  std::map<std::pair<Rank, Rank>, int> blocked;
  std::map<std::pair<Rank, Rank>, bool> slow;
  std::vector<std::vector<Rank>> lists = {{1, 2, 3}, {0, 2, 3}, {0, 1, 3}, {0, 1, 2}};
  std::set<Rank> stopped;
  std::set<Rank> gone;
  int injected = 0;
  int over = 0;
  std::vector<std::size_t> ends;

  std::optional<std::uint64_t> process_of(Rank site) const override {
    return gone.contains(site) ? std::nullopt : std::optional<std::uint64_t>(7);
  }
  bool kill(const PlannedFault& /*fault*/, Rank site) override { return gone.insert(site).second; }
  bool stop(const PlannedFault& /*fault*/, Rank site) override {
    return stopped.insert(site).second;
  }
  void resume(Rank site, std::uint64_t process) override {
    CHECK(process == 7);
    stopped.erase(site);
  }
  bool leave(Rank site) override { return gone.insert(site).second; }
  bool set_clock(Rank /*site*/) override { return true; }
  void begin_process(Rank site) override { gone.erase(site); }
  void bring_back(Rank site) override { gone.erase(site); }
  bool reset(Rank /*site*/, Rank /*peer*/, std::uint64_t /*bytes*/) override { return true; }
  void block(Rank from, Rank to) override { ++blocked[{from, to}]; }
  void unblock(Rank from, Rank to) override { --blocked[{from, to}]; }
  void set_link(Rank from, Rank to, const std::optional<LinkSpec>& link) override {
    slow[{from, to}] = link.has_value();
  }
  const std::vector<Rank>& listed(Rank site) const override {
    return lists[static_cast<std::size_t>(site)];
  }
  void relist(Rank site, std::vector<Rank> listed) override {
    lists[static_cast<std::size_t>(site)] = std::move(listed);
  }
  void on_injected(const PlannedFault& /*fault*/, Rank /*site*/,
                   const std::vector<Rank>& /*peers*/) override {
    ++injected;
  }
  void on_over(const PlannedFault& /*fault*/, Rank /*site*/) override { ++over; }
  void disturb(Rank /*site*/) override {}
  void end_after(SimTime /*lasting*/, std::size_t number) override { ends.push_back(number); }
};

FaultPlan plan_of(std::vector<PlannedFault> faults) {
  FaultPlan plan;
  plan.sites = kSites;
  plan.duration = 1'000'000'000;
  plan.faults = std::move(faults);
  return plan;
}

}  // namespace

TEST_CASE("once every fault that ends is over, sites, links and lists are as they were") {
  for (const FaultKindInfo& kind : fault_kinds()) {
    if (!kind.lasts) {
      continue;
    }
    CAPTURE(kind.name);
    WrittenDown target;
    const auto lists = target.lists;
    // Two that overlap, at the same site.
    const PlannedFault fault = {.kind = kind.kind, .sites = {0, 1}, .peers = {2}, .lasting = 10};
    FaultSchedule schedule(plan_of({fault, fault}), 1, target);
    schedule.begin(0);
    schedule.begin(1);
    CHECK(target.injected > 0);
    CHECK(target.ends.size() == static_cast<std::size_t>(target.injected));
    for (const std::size_t number : std::vector<std::size_t>(target.ends)) {
      schedule.end(number);
    }
    CHECK(target.over == target.injected);
    CHECK(target.stopped.empty());
    CHECK(target.gone.empty());
    for (const auto& [way, times] : target.blocked) {
      CHECK(times == 0);
    }
    for (const auto& [way, is_slow] : target.slow) {
      CHECK_FALSE(is_slow);
    }
    for (std::size_t site = 0; site < lists.size(); ++site) {
      CHECK(std::set<Rank>(lists[site].begin(), lists[site].end()) ==
            std::set<Rank>(target.lists[site].begin(), target.lists[site].end()));
    }
  }
}

TEST_CASE("a fault waits for its site's round and moment, and is injected once") {
  WrittenDown target;
  const PlannedFault fault = {
      .kind = FaultKind::kill, .sites = {2}, .round = 5, .moment = FaultMoment::before_commit};
  FaultSchedule schedule(plan_of({fault}), 1, target);
  CHECK_FALSE(schedule.inject_due(2, 9, FaultMoment::before_commit));  // not begun
  schedule.begin(0);
  CHECK(target.injected == 0);
  CHECK_FALSE(schedule.inject_due(2, 4, FaultMoment::before_commit));
  CHECK_FALSE(schedule.inject_due(2, 5, FaultMoment::before_release));
  CHECK_FALSE(schedule.inject_due(1, 5, FaultMoment::before_commit));
  CHECK(schedule.inject_due(2, 6, FaultMoment::before_commit));
  CHECK_FALSE(schedule.inject_due(2, 6, FaultMoment::before_commit));
  CHECK(target.gone == std::set<Rank>{2});
  CHECK(schedule.injected()[static_cast<std::size_t>(FaultKind::kill)] == 1);
}

TEST_CASE("a partition counts once, and what has no effect does not count") {
  WrittenDown target;
  FaultSchedule schedule(
      plan_of({{.kind = FaultKind::partition, .sites = {0, 1}, .peers = {2, 3}, .lasting = 5},
               {.kind = FaultKind::join, .sites = {3}, .at = 1}}),
      1, target);
  CHECK(schedule.last_end() == 5);
  CHECK(schedule.joins_later(3));
  CHECK_FALSE(schedule.joins_later(0));
  schedule.begin(0);
  CHECK(schedule.injected()[static_cast<std::size_t>(FaultKind::partition)] == 1);
  CHECK(target.blocked.size() == 8);
  schedule.begin(1);  // the site is there
  CHECK(schedule.injected()[static_cast<std::size_t>(FaultKind::join)] == 0);
}

}  // namespace sotto::test::fault_schedule_test
