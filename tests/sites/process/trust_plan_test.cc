// Plans of a federation and checks of its lists, against an oracle that knows only a matrix.
#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/comm/peers_file.h>
#include <sotto/sites/process/trust_check.h>
#include <sotto/sites/process/trust_plan.h>

using namespace sotto;

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
    views.push_back({plan.sites[i].name,
                     parse_peers_file("peers.csv", lists[i], PeerNumbers::of_names),
                     plan.sites[i].observer, false, 0, "lr=0.1\n"});
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

std::size_t count_of(const TrustReport& report, const std::string& kind) {
  return static_cast<std::size_t>(std::count_if(report.findings.begin(), report.findings.end(),
                                                [&](const auto& one) { return one.kind == kind; }));
}

}  // namespace

TEST_CASE("trust plan: lists made of random matrices agree, and what cannot be reached is found") {
  const auto seed = std::random_device{}();
  CAPTURE(seed);
  std::mt19937 random(seed);
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
    CHECK(count_of(report, "reach") == cut);
    for (const char* kind : {"edge", "key", "address", "missing", "settings"}) {
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
  CHECK(count_of(changed([](auto& v) { v[1].lines[1].send_to = false; }), "edge") == 1);
  CHECK(count_of(changed([](auto& v) { v[1].lines[1].may_send = false; }), "edge") == 1);
  CHECK(count_of(changed([](auto& v) { v[1].lines[1].address = "10.0.0.2:1"; }), "address") == 1);
  CHECK(count_of(changed([](auto& v) { v[1].lines[1].key = make_key_pair().public_key; }), "key") ==
        1);
  CHECK(count_of(changed([](auto& v) { v[1].lines.pop_back(); }), "missing") == 1);
  const auto other = changed([](auto& v) { v[2].settings = "lr=0.2\n"; });
  REQUIRE(count_of(other, "settings") == 1);
  CHECK(other.findings.front().text == "lr is 0.1 here and 0.2 there");
  CHECK_THROWS_AS(changed([](auto& v) { v[1].name = v[0].name; }), Error);
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
  CHECK(count_of(many, "sum") == 1);
  // An edge that neither end wants is none, but masks do not cancel without it.
  const auto partial = changed([&](auto& v) {
    in_secret(v);
    v[1].lines[2].send_to = v[1].lines[2].may_send = false;
    v[2].lines[2].send_to = v[2].lines[2].may_send = false;
  });
  CHECK(count_of(partial, "sum") == 2);
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
