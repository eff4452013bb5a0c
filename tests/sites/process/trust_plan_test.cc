// Plans of a federation and checks of its lists, against an oracle that knows only a matrix.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/comm/trust/peers_file.h>
#include <sotto/sites/process/trust/peers_lists.h>
#include <sotto/sites/process/trust/site_hosts.h>
#include <sotto/sites/process/trust/trust_check.h>
#include <sotto/sites/process/trust/trust_plan.h>

#include "support/seed.h"

namespace sotto::test::trust_plan_test {

namespace {

using Matrix = std::vector<std::vector<bool>>;

std::vector<SiteView> views_of(const TrustPlan& plan) {
  std::vector<PublicKey> keys;
  for (std::size_t i = 0; i < plan.sites.size(); ++i) {
    keys.push_back(make_key_pair().public_key);
  }
  const auto lists = peers_lists(plan, "sites.csv", keys);
  std::vector<SiteView> views;
  for (std::size_t i = 0; i < lists.size(); ++i) {
    const std::string& name = plan.sites[i].name;
    views.push_back({.name = name,
                     .lines = parse_peers_file("peers.csv", lists[i], PeerNumbers::of_names),
                     .observer = plan.sites[i].observer,
                     .settings = {{"lr", "0.1", name + "/site.toml:9"}},
                     .file = name + "/site.toml",
                     .peers_file = name + "/peers.csv"});
  }
  return views;
}

TrustPlan plan_of(std::size_t sites) {
  std::string text = "name,address\n";
  for (std::size_t i = 0; i < sites; ++i) {
    text += fmt::format("s{},10.0.0.1:{}\n", i, 9000 + i);
  }
  return parse_trust_plan("sites.csv", text);
}

/// Warshall's closure.
Matrix closure(Matrix reach) {
  for (std::size_t k = 0; k < reach.size(); ++k) {
    for (std::size_t i = 0; i < reach.size(); ++i) {
      for (std::size_t j = 0; j < reach.size(); ++j) {
        reach[i][j] = reach[i][j] || (reach[i][k] && reach[k][j]);
      }
    }
  }
  return reach;
}

using Kind = TrustFinding::Kind;

std::size_t count_of(const TrustReport& report, Kind kind) {
  return static_cast<std::size_t>(std::count_if(report.findings.begin(), report.findings.end(),
                                                [&](const auto& one) { return one.kind == kind; }));
}

}  // namespace

TEST_CASE("trust plan: lists made of random matrices agree, and what cannot be reached is found") {
  const std::uint64_t seed = drawn_seed();
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  for (int trial = 0; trial < 200; ++trial) {
    CAPTURE(trial);
    const std::size_t n = 2 + random() % 9;
    Matrix sends(n, std::vector<bool>(n, false));
    std::string text = "from,to\n";
    std::size_t edges = 0;
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t j = 0; j < n; ++j) {
        if (i != j && random() % 4 == 0) {
          sends[i][j] = true;
          ++edges;
          text += random() % 2 == 0 ? fmt::format("{},{}\n", i, j) : fmt::format("s{},s{}\n", i, j);
        }
      }
    }
    TrustPlan plan = plan_of(n);
    take_trust_edges(plan, "trust.csv", text);
    const TrustReport report = check_trust(views_of(plan));
    CHECK(report.edges == plan.edges);
    CHECK(report.edges.size() == edges);
    const Matrix reach = closure(sends);
    std::size_t cut = 0;
    for (std::size_t i = 1; i < n; ++i) {
      cut += (reach[0][i] ? 0U : 1U) + (reach[i][0] ? 0U : 1U);
    }
    CHECK(count_of(report, Kind::reach) == cut);
    for (const Kind kind : {Kind::edge, Kind::key, Kind::address, Kind::missing, Kind::settings}) {
      CHECK(count_of(report, kind) == 0);
    }
  }
}

TEST_CASE("trust check: one changed list is found, by kind") {
  const TrustPlan plan = plan_of(4);
  const auto whole = views_of(plan);
  CHECK(check_trust(whole).findings.empty());
  const auto changed = [&](auto change) {
    auto views = whole;
    change(views);
    return check_trust(views);
  };
  CHECK(count_of(changed([](auto& v) { v[1].lines[1].send_to = false; }), Kind::edge) == 1);
  CHECK(count_of(changed([](auto& v) { v[1].lines[1].may_send = false; }), Kind::edge) == 1);
  CHECK(count_of(changed([](auto& v) { v[1].lines[1].address = "10.0.0.2:1"; }), Kind::address) ==
        1);
  CHECK(count_of(changed([](auto& v) { v[1].lines[1].key = make_key_pair().public_key; }),
                 Kind::key) == 1);
  CHECK(count_of(changed([](auto& v) { v[1].lines.pop_back(); }), Kind::missing) == 1);
  const auto other = changed([](auto& v) {
    v[2].settings = {{"lr", "0.2", "s2/site.toml:7"}, {"scaling", "ab", "s2/site.toml:3"}};
    v[3].settings[0] = {"lr", "0.01", ""};
  });
  REQUIRE(count_of(other, Kind::settings) == 3);
  CHECK(other.findings[0].text ==
        "lr is 0.1 (s0/site.toml:9) at s0 and 0.2 (s2/site.toml:7) at s2");
  CHECK(other.findings[1].text ==
        "scaling is none (s0/site.toml) at s0 and ab (s2/site.toml:3) at s2");
  CHECK(other.findings[2].text ==
        "lr is 0.1 (s0/site.toml:9) at s0 and 0.01 (by default, s3/site.toml) at s3");
  CHECK_THROWS_AS(changed([](auto& v) { v[1].name = v[0].name; }), Error);
  // The text says whose file lacks what.
  const auto text = [&](auto change) { return changed(change).findings.front().text; };
  CHECK(text([](auto& v) { v[1].lines[1].send_to = false; }) ==
        "s1's list (s1/peers.csv) has send_to = no for s0, and s0's list (s0/peers.csv) has "
        "may_send = yes for s1: s1 sends nothing to s0");
  CHECK(text([](auto& v) { v[1].lines[1].may_send = false; }) ==
        "s0's list (s0/peers.csv) has send_to = yes for s1, and s1's list (s1/peers.csv) has "
        "may_send = no for s0: s0 sends nothing to s1");
  CHECK(text([](auto& v) { v[1].lines.pop_back(); }) ==
        "s1's list (s1/peers.csv) has no line for s3");
  const auto in_secret = [](auto& v) {
    for (SiteView& view : v) {
      view.secure_sum = true;
    }
  };
  CHECK(changed(in_secret).findings.empty());
  const auto many = changed([&](auto& v) {
    in_secret(v);
    v[3].colluders = 2;  // of four sites
  });
  CHECK(count_of(many, Kind::sum) == 1);
  // An edge that neither end wants is none, but masks do not cancel without it.
  const auto partial = changed([&](auto& v) {
    in_secret(v);
    v[1].lines[2].send_to = v[1].lines[2].may_send = false;
    v[2].lines[2].send_to = v[2].lines[2].may_send = false;
  });
  CHECK(count_of(partial, Kind::sum) == 2);
}

TEST_CASE("trust check: sites that give and get nothing back, or little, are found") {
  TrustPlan plan = plan_of(4);
  const auto found = [&](const std::string& edges) {
    take_trust_edges(plan, "trust.csv", "from,to\n" + edges);
    auto views = views_of(plan);
    const TrustReport report = check_trust(views);
    std::string kinds;
    for (const TrustFinding& one : report.findings) {
      kinds += one.kind == Kind::reach ? "" : fmt::format("{} {};", one.site, name_of(one.kind));
    }
    for (SiteView& view : views) {
      view.settings.push_back({"exchange", "gossip", ""});
    }
    CHECK(count_of(check_trust(views), Kind::drained) == 0);
    return kinds;
  };
  CHECK(found("0,1\n1,2\n2,3\n3,0\n").empty());
  CHECK(found("0,1\n1,0\n1,2\n2,1\n0,2\n2,0\n3,0\n") == "s3 gives;");
  CHECK(found("0,1\n1,0\n1,2\n2,1\n0,2\n2,0\n0,3\n") ==
        "s3 takes;s0 drained;s1 drained;s2 drained;");
  // Three shares of four go out, and one of two comes back, of a site that little comes to.
  CHECK(found("0,1\n0,2\n0,3\n1,2\n2,1\n2,3\n3,2\n1,3\n3,1\n1,0\n") == "s0 drained;");
  CHECK_FALSE(is_remark(Kind::gives));
  CHECK(is_remark(Kind::drained));
}

TEST_CASE("trust check: monitors of one host that have one port are found") {
  auto views = views_of(plan_of(3));  // all on 10.0.0.1
  views[0].monitor = views[2].monitor = "127.0.0.1:9100";
  views[1].monitor = "127.0.0.1:9101";
  const auto found = check_trust(views);
  REQUIRE(found.findings.size() == 1);
  CHECK(found.findings[0].kind == Kind::monitor);
  CHECK(found.findings[0].text ==
        "monitor = \"127.0.0.1:9100\" in s0/site.toml and in s2/site.toml, and both sites have "
        "addresses on 10.0.0.1: give one of the two monitors another port");
  views[2].listens_elsewhere = true;  // its line is a forwarder's
  CHECK(check_trust(views).findings.empty());
  for (SiteView& view : views) {
    for (TrustedPeer& line : view.lines) {
      line.address = fmt::format("127.0.0.1:{}", line.name == "s1" ? 9100 : 9000);
    }
  }
  const auto taken = check_trust(views);
  CHECK(count_of(taken, Kind::monitor) == 1);
}

TEST_CASE(
    "trust plan: monitors of one host get ports of their own, and keep those that they have") {
  const auto ports = [](const std::string& rows, std::vector<std::optional<int>> present) {
    const TrustPlan plan = parse_trust_plan("s.csv", "name,address\n" + rows);
    present.resize(plan.sites.size());
    return monitor_ports(plan, 9100, present);
  };
  using Ports = std::vector<int>;
  CHECK(ports("a,10.0.0.1:1\nb,10.0.0.2:1\nc,\n", {}) == Ports{9100, 9100, 9100});
  CHECK(ports("a,10.0.0.1:1\nb,10.0.0.1:2\nc,10.0.0.2:1\n", {}) == Ports{9100, 9101, 9100});
  // One of them listens at a port that a monitor would have.
  CHECK(ports("a,127.0.0.1:9100\nb,localhost:9101 10.0.0.2:9102\nc,\n", {}) ==
        Ports{9103, 9104, 9105});
  CHECK(ports("a,h:1\nb,h:2\nc,h:3\n", {{}, 9100, {}}) == Ports{9101, 9100, 9102});
  CHECK(ports("a,[::1]:1\nb,127.0.0.9:2\n", {}) == Ports{9100, 9101});
}

TEST_CASE("trust plan: lists that are there keep every byte, and get lines of new sites") {
  TrustPlan plan =
      parse_trust_plan("s.csv", "name,address\na,10.0.0.1:1\nb,10.0.0.2:1\nc,10.0.0.3:1\nd,\n");
  std::vector<PublicKey> keys;
  for (int k = 0; k < 5; ++k) {
    keys.push_back(make_key_pair().public_key);
  }
  const auto line = [&](std::size_t key, const std::string& name, const std::string& rest) {
    return fmt::format("{},{},{}\n", keys[key].text(), name, rest);
  };
  // The list of site a: it has two keys, columns in another order, and trust that was taken back.
  const std::string of_a = "# asked Dr. Meyer\nkey,name,address,until,may_send,send_to\n" +
                           line(4, "a", "10.0.0.1:1,,yes,yes") +
                           line(0, "a", "10.0.0.1:1,2036-12-31,yes,yes") +
                           line(1, "b", "10.0.0.2:1,,yes,no");
  const std::string of_b =
      "key,name,address\n" + line(1, "b", "10.0.0.2:1") +
      line(4, "a", "10.0.0.1:1").substr(0, line(4, "a", "10.0.0.1:1").size() - 1);
  std::vector<std::optional<PresentList>> present = {
      PresentList{"a/peers.csv", of_a}, PresentList{"b/peers.csv", of_b}, {}, {}};
  const auto grown = grown_lists(plan, "s.csv", present, keys);
  CHECK(grown[0] == of_a + line(2, "c", "10.0.0.3:1,,yes,yes") + line(3, "d", ",,yes,yes"));
  CHECK(grown[1] == of_b + "\n" + line(2, "c", "10.0.0.3:1") + line(3, "d", ""));
  const auto of_d = parse_peers_file("d/peers.csv", grown[3], PeerNumbers::of_names);
  REQUIRE(of_d.size() == 4);
  CHECK(of_d[1].name == "a");
  CHECK(of_d[1].keys() == parse_peers_file("a", of_a, PeerNumbers::of_names)[0].keys());
  // Once more, with what is there now: nothing changes, but for one that is new again.
  for (std::size_t k = 0; k < 3; ++k) {
    present[k] = PresentList{"x/peers.csv", grown[k]};
  }
  CHECK(grown_lists(plan, "s.csv", present, keys) == grown);
  // No edge, no line.
  take_trust_edges(plan, "t.csv", "from,to\na,c\nd,c\na,b\nb,a\n");
  const auto few = grown_lists(
      plan, "s.csv", {PresentList{"a/peers.csv", of_a}, PresentList{"b/peers.csv", of_b}, {}, {}},
      keys);
  CHECK(few[0] == of_a + line(2, "c", "10.0.0.3:1,,no,yes"));
  CHECK(few[1] == of_b);
  const auto fault = [&](const std::string& list) {
    try {
      (void)grown_lists(plan, "s.csv", {PresentList{"a/peers.csv", list}, {}, {}, {}}, keys);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK(fault("name,key\nb," + keys[1].text() + "\n") ==
        "a/peers.csv: it has no line for its own site, a");
  CHECK(fault("name,key,address\na," + keys[0].text() + ",10.0.0.9:1\n") ==
        "a/peers.csv: the address of a is '10.0.0.9:1', and '10.0.0.1:1' in s.csv; they must be "
        "equal");
  CHECK(fault("name,key,address\na," + keys[0].text() + ",10.0.0.1:1\n") ==
        "a/peers.csv: the line of c needs the column 'may_send': add it to the first line, and a "
        "cell to each other one");
  CHECK(fault("name,key,address,may_send\na," + keys[2].text() + ",10.0.0.1:1,yes\n")
            .starts_with("s.csv:4: this key"));
}

TEST_CASE("trust plan: observers send to nobody, and are no fault") {
  TrustPlan plan = parse_trust_plan(
      "sites.csv", "name,address,observer\na,10.0.0.1:1,\nb,10.0.0.2:1,no\nc,,yes\n");
  CHECK(plan.edges.size() == 4);
  CHECK(check_trust(views_of(plan)).findings.empty());
  CHECK_THROWS_WITH_AS(take_trust_edges(plan, "t.csv", "from,to\nc,a\n"),
                       "t.csv:2: c is an observer, which sends to nobody", Error);
}

TEST_CASE("trust plan: what no folder or list takes is refused") {
  for (const char* name :
       {"a/b", "..", "-x", "#x", "\"a,b\"", "a\\b", "overview.csv", "A", "a\x01", "\xFF"}) {
    CAPTURE(name);
    CHECK_THROWS_AS(parse_trust_plan("s.csv", fmt::format("name\na\n{}\n", name)), Error);
  }
  CHECK_THROWS_AS(parse_trust_plan("s.csv", ""), Error);
  CHECK_THROWS_AS(parse_trust_plan("s.csv", "name\nalone\n"), Error);
  CHECK_THROWS_AS(parse_trust_plan("s.csv", "address\n1\n"), Error);
  CHECK_THROWS_AS(views_of(parse_trust_plan("s.csv", "name,address\na,nowhere\nb,\n")), Error);
  CHECK_THROWS_AS(views_of(parse_trust_plan("s.csv", "name\na\nb\n")), Error);
}

}  // namespace sotto::test::trust_plan_test
