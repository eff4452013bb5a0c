// What a node's operator is told of the others: each change once, and what stays as it is never.
#include <sotto/sites/nodes/roster_news.h>

#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

namespace sotto::test::roster_news_test {

namespace {

using Kind = SiteEvent::Kind;
using sites::NodePhase;
using sites::RosterMember;
using sites::RosterStanding;
using sites::RosterView;

RosterMember member_of(const std::string& name, NodePhase phase = NodePhase::up,
                       sites::Incarnation incarnation = 1) {
  RosterMember member{.heard = true};
  member.entry.name = name;
  member.entry.incarnation = incarnation;
  member.entry.phase = phase;
  return member;
}

RosterView view_of(std::vector<RosterMember> members) {
  return {.standing = RosterStanding::up, .members = std::move(members), .up = 1};
}

/// The kind of each event, and the node that it is about.
std::vector<std::pair<Kind, std::string>> told(RosterNews& news) {
  std::vector<std::pair<Kind, std::string>> all;
  for (const SiteEvent& event : news.take()) {
    all.emplace_back(event.kind, event.peer);
  }
  return all;
}

using Told = std::vector<std::pair<Kind, std::string>>;

/// What is told of one node that goes from view to view.
Told told_of(RosterNews& news, const RosterMember& member) {
  news.follow(view_of({member_of("self"), member}));
  return told(news);
}

}  // namespace

TEST_CASE("roster news: who comes, is lost, leaves or has another's name is told once") {
  RosterNews news("self", 2);
  CHECK(told_of(news, member_of("b")) == Told{{Kind::node_came, "b"}});
  CHECK(told_of(news, member_of("b")).empty());
  RosterMember silent = member_of("b");
  silent.suspected = true;
  CHECK(told_of(news, silent) == Told{{Kind::node_lost, "b"}});
  news.follow(view_of({member_of("b")}));
  const auto again = news.take();
  REQUIRE(again.size() == 1);
  CHECK(again[0].kind == Kind::node_came);
  CHECK(again[0].text == "answers again");
  CHECK(told_of(news, member_of("b", NodePhase::up, 2)) == Told{{Kind::node_came, "b"}});
  RosterMember second = member_of("b", NodePhase::up, 2);
  second.conflict = true;
  CHECK(told_of(news, second) == Told{{Kind::node_conflict, "b"}});
  CHECK(told_of(news, member_of("b", NodePhase::leaving, 2)) == Told{{Kind::node_left, "b"}});
  CHECK(told_of(news, member_of("b", NodePhase::gone, 2)) == Told{{Kind::node_left, "b"}});
  CHECK(told_of(news, member_of("b", NodePhase::ended, 2)).empty());
}

TEST_CASE("roster news: what others list and what had gone before is not told") {
  RosterNews news("self", 2);
  RosterMember listed = member_of("b");
  listed.heard = false;
  CHECK(told_of(news, listed).empty());
  CHECK(told_of(news, member_of("c", NodePhase::gone)).empty());
  // Where a name has two entries the one that is up counts, wherever it stands.
  news.follow(view_of({member_of("d", NodePhase::gone), member_of("d", NodePhase::up, 2)}));
  CHECK(told(news) == Told{{Kind::node_came, "d"}});
  news.follow(view_of({member_of("d", NodePhase::up, 2), member_of("d", NodePhase::gone)}));
  CHECK(told(news).empty());
}

TEST_CASE("roster news: whether enough nodes are up is told as it changes") {
  RosterNews news("self", 2);
  const auto with = [&](std::size_t up, RosterStanding standing) {
    news.follow({.standing = standing, .up = up});
    return told(news);
  };
  CHECK(with(1, RosterStanding::up).empty());
  CHECK(with(2, RosterStanding::joining).empty());
  CHECK(with(2, RosterStanding::up) == Told{{Kind::nodes_enough, ""}});
  CHECK(with(3, RosterStanding::up).empty());
  CHECK(with(1, RosterStanding::up) == Told{{Kind::nodes_few, ""}});
}

TEST_CASE("roster news: other runs are told once, by what differs") {
  RosterNews news("self", 1);
  RosterView view{.standing = RosterStanding::up, .up = 1};
  news.follow(view);
  CHECK(told(news) == Told{{Kind::nodes_enough, ""}});
  view.other = {.address = "10.0.0.1:9000", .line = "seed=7"};
  news.follow(view);
  const auto events = news.take();
  REQUIRE(events.size() == 1);
  CHECK(events[0].text == "the run at 10.0.0.1:9000 has other settings: seed is 7 here");
  CHECK(words_of(sites::OtherRun{.address = "x"}).find("compare the command lines") !=
        std::string::npos);
  news.follow(view);
  CHECK(told(news).empty());
  view.strangers = {{.address = "10.0.0.2:9000", .line = "seed=7"}};
  news.follow(view);
  CHECK(told(news) == Told{{Kind::other_settings, ""}});
  news.follow(view);
  CHECK(told(news).empty());
  view.strangers.clear();
  news.follow(view);
  view.strangers = {{.address = "10.0.0.2:9000", .line = "seed=7"}};
  news.follow(view);
  CHECK(told(news) == Told{{Kind::other_settings, ""}});
  // A node that such a run has refused says so by its end.
  view.standing = RosterStanding::other;
  view.other->line = "seed=8";
  news.follow(view);
  CHECK(told(news).empty());
}

TEST_CASE("roster news: events that nobody takes are dropped, and no memory grows") {
  RosterNews news("self", 1);
  for (std::size_t k = 0; k < RosterNews::kMost + 10; ++k) {
    news.add({{.kind = Kind::store_silent, .text = std::to_string(k)}});
  }
  const auto events = news.take();
  REQUIRE(events.size() == RosterNews::kMost);
  CHECK(events.front().text == "0");
  CHECK(news.take().empty());
}

}  // namespace sotto::test::roster_news_test
