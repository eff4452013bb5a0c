// A site with a model of the caller's own, through sotto.h.
#include <atomic>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include <sotto/comm/trust/key_file.h>
#include <sotto/comm/trust/keys.h>

#include "bindings/c_node.h"
#include "support/free_port.h"
#include "support/scratch.h"

namespace sotto::test::c_site_test {

namespace {

constexpr std::size_t kDimension = 12;
using CSite = std::unique_ptr<sotto_site, Destroy<sotto_site, sotto_site_destroy>>;

/// Keys and lists of the sites a and b.
class Two {
 public:
  Two() {
    const int port = sotto::test::free_ports(2);
    std::string list = "name,key,address\n";
    for (int k = 0; k < 2; ++k) {
      const sotto::KeyPair keys = sotto::make_key_pair();
      sotto::write_key_file(path(name(k) + ".key"), name(k), keys);
      list += fmt::format("{},{},127.0.0.1:{}\n", name(k), keys.public_key.text(), port + k);
    }
    std::ofstream(path("peers.csv")) << list;
  }
  static std::string name(int k) { return k == 0 ? "a" : "b"; }
  std::string path(const std::string& file) const { return (scratch_.path() / file).string(); }

  Words settings(int k, const Words& more = {}) const {
    Words words = {"name",  name(k),
                   "key",   path(name(k) + ".key"),
                   "peers", path("peers.csv"),
                   "state", path("state-" + name(k)),
                   "lr",    "0.1"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }

 private:
  Scratch scratch_;
};

/// Null, with sotto_last_error, when it is refused.
CSite c_site(const Words& words, std::vector<float>& x) {
  sotto_site* made = nullptr;
  const auto settings = as_settings(words);
  const sotto_status status =
      sotto_site_create(settings.data(), x.data(), x.size(), nullptr, &made);
  CHECK((status == SOTTO_OK) == (made != nullptr));
  return CSite(made);
}

int step(sotto_site* site, const std::vector<float>& x, float centre) {
  std::vector<float> gradient(x);
  for (float& g : gradient) {
    g -= centre;
  }
  int outcome = -1;
  CHECK(sotto_site_step(site, gradient.data(), gradient.size(), NAN, &outcome) == SOTTO_OK);
  return outcome;
}

int over(sotto_site* site) {
  int over = -1;
  CHECK(sotto_site_over(site, &over) == SOTTO_OK);
  return over;
}

}  // namespace

TEST_CASE("C: two sites with models of their own train together") {
  const Two two;
  std::vector<std::vector<float>> x(2, std::vector<float>(kDimension));
  std::vector<std::thread> threads;
  for (int k = 0; k < 2; ++k) {
    threads.emplace_back([&, k] {
      std::vector<float>& own = x[static_cast<std::size_t>(k)];
      const CSite site = c_site(two.settings(k, {"rounds", "80", "found-after", "10"}), own);
      CHECK_MESSAGE(site != nullptr, std::string(sotto_last_error()));
      if (site == nullptr) {
        return;
      }
      CHECK(sotto_site_connect(site.get()) == SOTTO_OK);
      while (over(site.get()) == 0) {
        CHECK(step(site.get(), own, static_cast<float>(k + 1)) == SOTTO_SITE_EXCHANGED);
      }
      CHECK(sotto_site_evaluated(site.get(), 0.5, NAN) == SOTTO_OK);
      CHECK(sotto_site_finish(site.get()) == SOTTO_OK);
      char* text = nullptr;
      CHECK(sotto_site_report(site.get(), &text) == SOTTO_OK);
      const auto report = c_json(text);
      CHECK(report["name"] == Two::name(k));
      CHECK(report["phase"] == "done");
      CHECK(report["evaluation"]["loss"] == 0.5);
      CHECK(sotto_site_events(site.get(), &text) == SOTTO_OK);
      CHECK(c_json(text).size() >= 3);
      CHECK(sotto_site_events(site.get(), &text) == SOTTO_OK);
      CHECK(c_json(text).empty());
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  CHECK(std::abs((x[0][0] + x[1][0]) / 2 - 1.5F) < 0.2F);
}

namespace {

/// A node of a run whose nodes come and go, and all hold a mass of one a node.
CSite c_run_node(int k, const std::string& seed, const char* leave_within, std::vector<float>& x) {
  CSite site = c_site({"nodes", "2", "seeds", seed, "name", Two::name(k), "lr", "0.1", "algorithm",
                       "pushsum", "mass-return", "0", "leave-within", leave_within},
                      x);
  CHECK_MESSAGE(site != nullptr, std::string(sotto_last_error()));
  return site;
}

uint64_t round_of(sotto_site* site) {
  uint64_t round = 0;
  CHECK(sotto_site_round(site, &round) == SOTTO_OK);
  return round;
}

nlohmann::json report_of(sotto_site* site) {
  char* text = nullptr;
  CHECK(sotto_site_report(site, &text) == SOTTO_OK);
  return c_json(text);
}

}  // namespace

TEST_CASE("C: a node that leaves before the end of a run gives what it holds to another") {
  const std::string seed = "127.0.0.1:" + std::to_string(free_port());
  std::vector<std::vector<float>> x(2, std::vector<float>(kDimension));
  std::atomic<bool> gone{false};
  std::thread stays([&] {
    const CSite site = c_run_node(0, seed, "60", x[0]);
    CHECK(sotto_site_connect(site.get()) == SOTTO_OK);
    while (!gone) {
      step(site.get(), x[0], 1);
    }
    for (int round = 0; round < 5; ++round) {
      step(site.get(), x[0], 1);
    }
    CHECK(report_of(site.get())["mass"].get<double>() == doctest::Approx(2));
    CHECK(sotto_site_finish(site.get()) == SOTTO_OK);
  });
  std::thread goes([&] {
    const CSite site = c_run_node(1, seed, "60", x[1]);
    CHECK(sotto_site_connect(site.get()) == SOTTO_OK);
    while (round_of(site.get()) < 40) {
      step(site.get(), x[1], 2);
    }
    CHECK(sotto_site_leave(site.get()) == SOTTO_OK);
    gone = true;
    CHECK(report_of(site.get())["phase"] == "done");
  });
  stays.join();
  goes.join();
  CHECK(x[1][0] > 1);  // b had some of a's model
  CHECK(x[1][0] < 2);
}

TEST_CASE("C: a second stop ends what a node that leaves waits for") {
  const std::string seed = "127.0.0.1:" + std::to_string(free_port());
  std::vector<std::vector<float>> x(2, std::vector<float>(kDimension));
  std::vector<CSite> sites;
  sites.push_back(c_run_node(0, seed, "3600", x[0]));
  sites.push_back(c_run_node(1, seed, "3600", x[1]));
  c_play(2, [&](int k) {
    const auto i = static_cast<std::size_t>(k);
    CHECK(sotto_site_connect(sites[i].get()) == SOTTO_OK);
    step(sites[i].get(), x[i], static_cast<float>(k + 1));
  });
  sotto_site* leaver = sites[0].get();  // the other one says no more
  CHECK(sotto_site_stop(leaver) == SOTTO_OK);
  CHECK(over(leaver) == 1);
  CHECK(sotto_site_stop(leaver) == SOTTO_OK);
  CHECK(sotto_site_leave(leaver) == SOTTO_OK);
  CHECK(report_of(leaver)["phase"] == "done");
}

TEST_CASE("C: what a site is refused for") {
  const Two two;
  std::vector<float> x(kDimension);
  const auto refused = [&](const Words& words) {
    const CSite site = c_site(words, x);
    return site == nullptr ? std::string(sotto_last_error()) : "";
  };
  CHECK(refused({"name", "a"}).starts_with("key: it is missing"));
  CHECK(refused({"nodes", "2"}).starts_with("seeds: "));
  CHECK(refused({"nodes", "2", "seeds", "127.0.0.1:1", "state", "s"}).starts_with("state: "));
  CHECK(refused({"nodes", "2", "seeds", "127.0.0.1:1", "observer", "true"})
            .starts_with("observer: "));
  CHECK(refused(two.settings(0, {"no-such", "1"})).starts_with("no_such: there is no such"));
  CHECK(refused(two.settings(0, {"name", "a"})) == "name: it is given twice");
  CHECK(refused(two.settings(0, {"compressor", "quant:99"})).find("quant") != std::string::npos);
  CHECK(refused(two.settings(0, {"algorithm", "dpsgd", "observer", "true"})).find("observer") !=
        std::string::npos);
  CHECK(refused(two.settings(0, {"schedule", "cosine"})).find("it needs an end") !=
        std::string::npos);
  CHECK(sotto_site_connect(nullptr) == SOTTO_REFUSED);
  const CSite site = c_site(two.settings(0, {"found-after", "0.01"}), x);
  REQUIRE(site != nullptr);
  CHECK(sotto_site_stop(site.get()) == SOTTO_OK);
  CHECK(over(site.get()) == 1);
  uint64_t round = 1;
  CHECK(sotto_site_round(site.get(), &round) == SOTTO_OK);
  CHECK(round == 0);
  CHECK(sotto_site_next_step(site.get(), &round) == SOTTO_OK);
  CHECK(round == 0);
}

}  // namespace sotto::test::c_site_test
