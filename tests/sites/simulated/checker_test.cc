// The checker of sites under faults (docs/faults.md) against sites that are broken on purpose, in
// one way each.
#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/sites/simulated/simulated_sites.h>

#include "sites/simulated/fault_plans.h"

namespace sotto::test::checker_test {

using sites::Site;

namespace {

constexpr std::size_t kDimension = 6;

template <typename T>
std::optional<T> holds(std::span<const std::byte> message) {
  const auto parsed = sites::parse(message, kDimension);
  if (parsed.ok() && std::holds_alternative<T>(parsed.value())) {
    return std::get<T>(parsed.value());
  }
  return std::nullopt;
}

/// Takes every tenth parcel in twice.
class Doubler : public SiteAccess {
 public:
  using SiteAccess::SiteAccess;

  Status receive(std::size_t peer, std::span<const std::byte> message) override {
    Status status = SiteAccess::receive(peer, message);
    if (auto parcel = holds<sites::Parcel>(message); parcel && parcel->sequence % 10 == 0) {
      ++parcel->sequence;
      ++parcel->round;
      again_[peer] = encode(*parcel);
    } else if (holds<sites::Receipt>(message) && again_.contains(peer)) {
      // After the receipt of the round, which would be older than the parcel.
      (void)SiteAccess::receive(peer, again_.extract(peer).mapped());
    }
    return status;
  }

 private:
  std::map<std::size_t, std::vector<std::byte>> again_;
};

/// Loses a parcel, and numbers those after it anew.
class Loser : public SiteAccess {
 public:
  using SiteAccess::SiteAccess;

  Status receive(std::size_t peer, std::span<const std::byte> message) override {
    auto parcel = holds<sites::Parcel>(message);
    if (parcel && parcel->sequence == 10) {
      return {};
    }
    if (parcel && parcel->sequence > 10) {
      --parcel->sequence;
      return SiteAccess::receive(peer, encode(*parcel));
    }
    return SiteAccess::receive(peer, message);
  }
};

/// Sends no parcel a second time.
class Once : public SiteAccess {
 public:
  using SiteAccess::SiteAccess;

  std::vector<sites::Released> released() override {
    std::vector<sites::Released> all = SiteAccess::released();
    std::erase_if(all, [&](const sites::Released& one) {
      const auto parcel = holds<sites::Parcel>(one.message);
      return parcel && !sent_.insert({one.peer, parcel->incarnation, parcel->sequence}).second;
    });
    return all;
  }

 private:
  std::set<std::tuple<std::size_t, sites::Incarnation, sites::Sequence>> sent_;
};

/// Does not see that its state is old.
class Stubborn : public SiteAccess {
 public:
  using SiteAccess::SiteAccess;

  Status receive(std::size_t peer, std::span<const std::byte> message) override {
    if (auto hello = holds<sites::Hello>(message)) {
      hello->applied = std::min(hello->applied, site().peers()[peer].sent);
      return SiteAccess::receive(peer, encode(*hello));
    }
    if (holds<sites::Refusal>(message)) {
      return {};
    }
    return SiteAccess::receive(peer, message);
  }
};

/// Writes what it was a round ago.
class Forgetful : public SiteAccess {
 public:
  using SiteAccess::SiteAccess;

  void save(ByteBuffer& out) override {
    ByteBuffer now;
    SiteAccess::save(now);
    out.append(before_.empty() ? now.bytes() : before_);
    before_.assign(now.bytes().begin(), now.bytes().end());
  }

 private:
  std::vector<std::byte> before_;
};

/// Gives a receipt for what it has not got.
class Flatterer : public SiteAccess {
 public:
  using SiteAccess::SiteAccess;

  std::vector<sites::Released> released() override {
    std::vector<sites::Released> all = SiteAccess::released();
    for (sites::Released& one : all) {
      if (auto receipt = holds<sites::Receipt>(one.message); receipt && receipt->round > 9) {
        ++receipt->applied;
        one.message = encode(*receipt);
      }
    }
    return all;
  }
};

/// Waits for ever.
class Waiter : public SiteAccess {
 public:
  using SiteAccess::SiteAccess;

  bool try_begin(bool waited) override {
    return SiteAccess::try_begin(waited) && site().round() < 20;
  }
};

/// Gives nothing any more to one of its peers, with which it stays in touch and in step.
class Miser : public SiteAccess {
 public:
  using SiteAccess::SiteAccess;

  bool try_begin(bool waited) override {
    if (site().round() == 20) {
      site().set_draining({{.name = site().peers()[0].name}});
    }
    return SiteAccess::try_begin(waited);
  }
};

/// What is found wrong when site 1 is reached through a T.
template <typename T>
std::string caught(const FaultPlan& plan) {
  const SimulatedSitesReport report = simulate_sites(
      plan, {.seed = 1,
             .dimension = kDimension,
             .access = [](Rank number, Site& site) -> std::unique_ptr<SiteAccess> {
               return number == 1 ? std::make_unique<T>(site) : std::make_unique<SiteAccess>(site);
             }});
  return report.violation ? report.violation->what : "";
}

bool says(const std::string& text, const std::string& part) {
  CAPTURE(text);
  const bool found = text.find(part) != std::string::npos;
  CHECK(found);
  return found;
}

}  // namespace

TEST_CASE("the checker finds sites that are broken on purpose") {
  const FaultPlan calm = plan_of(4, {});
  const FaultPlan resets = soak(4, "ring", 60, 40 * kSecond, {FaultKind::reset});
  const FaultPlan restored = plan_of(4, {{.kind = FaultKind::restore,
                                          .sites = {1},
                                          .at = 5 * kSecond,
                                          .lasting = kSecond,
                                          .back = 4}});
  const FaultPlan killed =
      plan_of(4, {{.kind = FaultKind::kill, .sites = {1}, .at = 5 * kSecond, .lasting = kSecond}});
  CHECK(caught<SiteAccess>(calm).empty());
  CHECK(says(caught<Doubler>(calm), "which never came"));
  CHECK(says(caught<Loser>(calm), "which never came"));
  CHECK(says(caught<Once>(resets), "accuses site 1"));
  CHECK(says(caught<Stubborn>(restored), "not in touch"));
  CHECK(says(caught<Forgetful>(killed), "than it wrote"));
  CHECK(says(caught<Flatterer>(calm), "gives a receipt"));
  CHECK_FALSE(caught<Waiter>(calm).empty());
  CHECK(says(caught<Miser>(calm), "parcels of site 1, and no more for"));
}

}  // namespace sotto::test::checker_test
