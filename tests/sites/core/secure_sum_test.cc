// Secure sums: what is summed, what is shown and to whom, and what a site is not told.
#include <sotto/sites/core/secure_sum.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <sotto/base/philox.h>
#include <sotto/sites/core/message.h>

using namespace sotto;
using sites::Bytes32;
using sites::RevealedMask;
using sites::SecureSum;
using sites::SecureSumRule;
using sites::SumOutcome;

namespace {

Bytes32 secret_of(std::uint64_t seed, std::uint64_t number) {
  const std::array<std::uint64_t, 2> words = {seed, number};
  return sites::derived_scalar({}, words);
}

/// Sites that all know each other, and what one hands to another, under the test's control.
class Group {
 public:
  Group(std::size_t sites, std::size_t dimension, SecureSumRule rule, std::uint64_t seed)
      : random_({.seed = seed, .purpose = Purpose::initialize}), models_(sites) {
    for (std::size_t i = 0; i < sites; ++i) {
      names_.push_back(fmt::format("site-{}", i));
      sums_.push_back(std::make_unique<SecureSum>(rule, names_[i], secret_of(seed, i), dimension));
    }
    for (std::size_t i = 0; i < sites; ++i) {
      sums_[i]->know(names_without(i));
      for (std::size_t j = 0; j < sites; ++j) {
        if (j != i) {
          CHECK(sums_[i]->take_key(place(i, j), sums_[j]->public_key()));
        }
      }
      models_[i].resize(dimension);
      for (float& value : models_[i]) {
        value = static_cast<float>(3 * random_.normal());
      }
    }
  }

  std::size_t size() const { return sums_.size(); }
  SecureSum& at(std::size_t i) { return *sums_[i]; }
  const std::vector<float>& model(std::size_t i) const { return models_[i]; }
  RandomStream& random() { return random_; }
  std::vector<std::string> names_without(std::size_t i) const {
    std::vector<std::string> names = names_;
    names.erase(names.begin() + static_cast<std::ptrdiff_t>(i));
    return names;
  }
  std::size_t place(std::size_t i, std::size_t j) const { return j < i ? j : j - 1; }
  std::size_t site_at(std::size_t i, std::size_t place) const {
    return place < i ? place : place + 1;
  }

  void open(Round round) {
    for (std::size_t i = 0; i < size(); ++i) {
      sums_[i]->open(round, models_[i]);
    }
  }
  sites::Payload payload(std::size_t from, std::size_t to) {
    return sums_[from]->payload_for(place(from, to));
  }
  /// `from` sends its parcel to `to`, which hands on what is due to others.
  void send(std::size_t from, std::size_t to) {
    const sites::Payload parcel = payload(from, to);
    REQUIRE(parcel != nullptr);
    REQUIRE(sums_[to]->check_payload(*parcel).ok());
    for (const auto& [asker, answer] : sums_[to]->arrived(place(to, from), *parcel)) {
      const std::size_t who = site_at(to, asker);
      sums_[who]->take(place(who, to), answer);
    }
    parcels_[{from, to}] = parcel;
  }
  /// Fixes the sum of `i`, without `without`.
  std::optional<sites::Unmask> close(std::size_t i, const std::vector<std::size_t>& without = {}) {
    std::vector<std::size_t> places;
    for (const std::size_t j : without) {
      places.push_back(place(i, j));
    }
    auto question = sums_[i]->close(places);
    for (const auto& [ends, parcel] : parcels_) {
      if (ends.second == i) {
        sums_[i]->add(place(i, ends.first), *parcel);
      }
    }
    return question;
  }
  std::vector<RevealedMask> ask(std::size_t i, std::size_t k, const sites::Unmask& question) {
    auto revealed = sums_[k]->answer(place(k, i), question);
    REQUIRE(revealed.ok());
    sums_[i]->take(place(i, k), {.round = question.round, .revealed = *revealed});
    return std::move(*revealed);
  }

 private:
  RandomStream random_;
  std::vector<std::string> names_;
  std::vector<std::unique_ptr<SecureSum>> sums_;
  std::vector<std::vector<float>> models_;
  std::map<std::pair<std::size_t, std::size_t>, sites::Payload> parcels_;
};

/// The mean of these models, computed openly, and how far the grid may be off it.
void check_mean(Group& group, std::span<const float> mean, const std::vector<std::size_t>& of,
                double range) {
  const double step = range * static_cast<double>(group.size()) / std::pow(2.0, 31);
  for (std::size_t k = 0; k < mean.size(); ++k) {
    double sum = 0;
    for (const std::size_t i : of) {
      sum += std::clamp<double>(group.model(i)[k], -range, range);
    }
    const double expected = sum / static_cast<double>(of.size());
    CHECK(static_cast<double>(mean[k]) ==
          doctest::Approx(expected).epsilon(1e-6).scale(1 + step * 1e6));
  }
}

std::uint64_t drawn_seed(int number) { return 0x5EC0DE00 + static_cast<std::uint64_t>(number); }

}  // namespace

TEST_CASE("secure sum: any shares as many as the threshold give the secret, fewer give another") {
  for (int number = 0; number < 40; ++number) {
    const std::uint64_t seed = drawn_seed(number);
    CAPTURE(seed);
    RandomStream random({.seed = seed, .purpose = Purpose::initialize});
    const std::size_t holders = 1 + random.below(9);
    const std::size_t threshold = 1 + random.below(holders);
    const Bytes32 secret = secret_of(seed, 0);
    std::vector<Bytes32> coefficients;
    for (std::size_t power = 1; power < threshold; ++power) {
      coefficients.push_back(secret_of(seed, power));
    }
    std::vector<std::uint64_t> points(holders);
    std::iota(points.begin(), points.end(), random.next_u64() | 1);
    auto shares = sites::split_secret(secret, coefficients, points);
    std::ranges::rotate(shares,
                        shares.begin() + static_cast<std::ptrdiff_t>(random.below(holders)));
    CHECK(sites::join_secret(std::span(shares).first(threshold)) == secret);
    CHECK(sites::join_secret(shares) == secret);
    if (threshold > 1) {
      CHECK(sites::join_secret(std::span(shares).first(threshold - 1)) != secret);
    }
    shares[0].value.fill(0xFF);  // beyond the order of the field
    CHECK_FALSE(sites::join_secret(shares).has_value());
  }
}

TEST_CASE("secure sum: drawn groups get the mean, whoever is missing before or after its parcel") {
  for (int number = 0; number < 60; ++number) {
    const std::uint64_t seed = drawn_seed(1000 + number);
    CAPTURE(seed);
    RandomStream random({.seed = seed, .purpose = Purpose::initialize});
    const std::size_t sites = 3 + random.below(7);
    const SecureSumRule rule = {.colluders = random.below(sites - 2), .range = 16};
    Group group(sites, 1 + random.below(5000), rule, seed);
    const Round round = 1 + random.next_u64() % 1000;
    group.open(round);
    const std::size_t receiver = random.below(sites);
    // Either one or more clients are gone before their parcels, or some give no answer.
    std::vector<std::size_t> clients;
    for (std::size_t j = 0; j < sites; ++j) {
      if (j != receiver) {
        clients.push_back(j);
      }
    }
    for (std::size_t k = clients.size(); k > 1; --k) {
      std::swap(clients[k - 1], clients[random.below(k)]);
    }
    const std::size_t spare = clients.size() - (rule.colluders + 2);
    const bool before = random.below(2) == 0;
    const std::size_t gone = random.below(spare + 1);
    std::vector<std::size_t> there = clients;
    if (before) {
      there.resize(clients.size() - gone);
    }
    for (const std::size_t j : there) {
      for (std::size_t to = 0; to < sites; ++to) {
        if (to != j) {
          group.send(j, to);
        }
      }
    }
    const auto question = group.close(receiver);
    REQUIRE(question.has_value());
    CHECK(question->sites.size() == there.size());
    std::vector<std::size_t> answering = there;
    if (!before) {
      answering.resize(there.size() - gone);
    }
    for (const std::size_t k : answering) {
      group.ask(receiver, k, *question);
    }
    CHECK(group.at(receiver).owed().empty());
    std::vector<float> mean(group.model(0).size());
    REQUIRE(group.at(receiver).finish(mean) == SumOutcome::summed);
    there.push_back(receiver);
    check_mean(group, mean, there, rule.range);
  }
}

TEST_CASE("secure sum: a parcel says nothing of its model") {
  const std::uint64_t seed = drawn_seed(2000);
  Group group(5, 20'000, {.colluders = 1}, seed);
  group.open(7);
  const auto words_of = [&](std::size_t from, std::size_t to) {
    const auto parcel = group.payload(from, to);
    std::vector<std::uint32_t> words(20'000);
    const std::size_t start = parcel->size() - (words.size() + 4) * sizeof(std::uint32_t);
    std::memcpy(words.data(), parcel->data() + start, words.size() * sizeof(std::uint32_t));
    return words;
  };
  const auto one = words_of(0, 1);
  const auto other = words_of(0, 2);
  // Uniform words have as many bits set as not, and two receivers' differ by uniform words, too.
  for (const bool difference : {false, true}) {
    double set = 0;
    for (std::size_t k = 0; k < one.size(); ++k) {
      set += std::popcount(difference ? one[k] - other[k] : one[k]);
    }
    const double bits = 32.0 * static_cast<double>(one.size());
    CHECK(std::abs(set - bits / 2) < 5 * std::sqrt(bits) / 2);
  }
}

TEST_CASE("secure sum: a client tells a share or a mask of another site, never both") {
  for (int number = 0; number < 40; ++number) {
    const std::uint64_t seed = drawn_seed(3000 + number);
    CAPTURE(seed);
    RandomStream random({.seed = seed, .purpose = Purpose::initialize});
    const std::size_t sites = 4 + random.below(5);
    const std::size_t colluders = random.below(sites - 3);
    Group group(sites, 8, {.colluders = colluders}, seed);
    group.open(3);
    for (std::size_t j = 0; j < sites; ++j) {
      for (std::size_t to = 0; to < sites; ++to) {
        if (to != j) {
          group.send(j, to);
        }
      }
    }
    // All receivers but site 0 collude, and ask it for what they like, again and again.
    std::map<std::uint64_t, std::set<bool>> told;
    std::set<std::vector<std::uint64_t>> choices;
    for (int ask = 0; ask < 50; ++ask) {
      const std::size_t asker = 1 + random.below(sites - 1);
      sites::Unmask question;
      question.round = 3;
      for (std::size_t j = 0; j < sites; ++j) {
        if (j != asker && (j == 0 || random.below(4) != 0)) {
          question.sites.push_back(sites::site_id(fmt::format("site-{}", j)));
        }
      }
      std::ranges::sort(question.sites);
      const auto revealed = group.at(0).answer(group.place(0, asker), question);
      if (question.sites.size() < colluders + 2) {
        CHECK_FALSE(revealed.ok());
        continue;
      }
      REQUIRE(revealed.ok());
      for (const RevealedMask& mask : *revealed) {
        told[mask.site].insert(mask.is_share);
      }
    }
    for (const auto& [site, kinds] : told) {
      CHECK(kinds.size() == 1);
    }
  }
}

TEST_CASE("secure sum: a receiver that lies about what came lacks a mask") {
  for (int number = 0; number < 20; ++number) {
    const std::uint64_t seed = drawn_seed(4000 + number);
    CAPTURE(seed);
    Group group(6, 16, {.colluders = 1}, seed);
    group.open(1);
    for (std::size_t j = 1; j < 6; ++j) {
      for (std::size_t to = 0; to < 6; ++to) {
        if (to != j) {
          group.send(j, to);
        }
      }
    }
    // To learn the model of site 1, site 0 says to some that it came and to the others that it did
    // not. Site 2 colludes and tells everything; 3, 4 and 5 are honest.
    const auto all = group.close(0);
    REQUIRE(all.has_value());
    sites::Unmask without = *all;
    std::erase(without.sites, sites::site_id("site-1"));
    std::size_t masks = 0;
    std::size_t shares = 0;
    for (std::size_t k = 3; k < 6; ++k) {
      const bool lie = group.random().below(2) == 0;
      const auto revealed = group.ask(0, k, lie ? without : *all);
      for (const RevealedMask& mask : revealed) {
        if (mask.site == sites::site_id("site-1")) {
          ++(mask.is_share ? shares : masks);
        }
      }
      // Asked again, they do not change their minds.
      CHECK(group.ask(0, k, lie ? *all : without).empty());
    }
    CHECK(masks + shares == 3);
    const bool has_own_mask = shares + 1 >= 2;  // with that of site 2
    const bool has_pair_masks = masks == 3;
    CHECK_FALSE((has_own_mask && has_pair_masks));
  }
}

TEST_CASE("secure sum: two receivers that collude get no two sums that differ by one site") {
  Group group(7, 16, {.colluders = 2}, drawn_seed(5000));
  group.open(1);
  for (std::size_t j = 0; j < 7; ++j) {
    for (std::size_t to = 0; to < 7; ++to) {
      if (to != j) {
        group.send(j, to);
      }
    }
  }
  const auto all = group.close(0);
  const auto without = group.close(1, {5});
  REQUIRE((all && without));
  for (std::size_t k = 2; k < 7; ++k) {
    CHECK_FALSE(group.ask(0, k, *all).empty());
    if (k != 5) {
      CHECK(group.ask(1, k, *without).empty());
    }
  }
  std::vector<float> mean(16);
  CHECK(group.at(1).finish(mean) == SumOutcome::unanswered);
}

TEST_CASE("secure sum: wrong shares are left out, and wrong masks found out") {
  for (int number = 0; number < 20; ++number) {
    const std::uint64_t seed = drawn_seed(6000 + number);
    CAPTURE(seed);
    Group group(6, 64, {.colluders = 1}, seed);
    group.open(1);
    for (std::size_t j = 1; j < 6; ++j) {
      for (std::size_t to = 0; to < 6; ++to) {
        if (to != j) {
          group.send(j, to);
        }
      }
    }
    const bool lies_about_shares = number % 2 == 0;
    const std::size_t liar = 1 + group.random().below(5);
    const auto question =
        group.close(0, lies_about_shares ? std::vector<std::size_t>{} : std::vector{liar % 5 + 1});
    REQUIRE(question.has_value());
    for (std::size_t k = 1; k < 6; ++k) {
      if (!std::ranges::binary_search(question->sites, sites::site_id(fmt::format("site-{}", k)))) {
        continue;
      }
      auto revealed = group.at(k).answer(group.place(k, 0), *question);
      REQUIRE(revealed.ok());
      for (RevealedMask& mask : *revealed) {
        if (k == liar && mask.is_share == lies_about_shares) {
          mask.value = secret_of(seed, 99);
        }
      }
      group.at(0).take(group.place(0, k), {.round = 1, .revealed = *revealed});
    }
    std::vector<float> mean(64);
    CHECK(group.at(0).finish(mean) ==
          (lies_about_shares ? SumOutcome::summed : SumOutcome::unequal));
    if (lies_about_shares) {
      check_mean(group, mean, {0, 1, 2, 3, 4, 5}, 16);
    }
  }
}

TEST_CASE(
    "secure sum: a site whose process began anew is left out, and none is asked for too few") {
  Group group(5, 8, {.colluders = 1}, drawn_seed(7000));
  group.open(1);
  SecureSum again({.colluders = 1}, "site-4", secret_of(1, 2), 8);
  again.know(group.names_without(4));
  for (std::size_t j = 0; j < 4; ++j) {
    CHECK(again.take_key(j, group.at(j).public_key()));
  }
  again.open(1, group.model(4));
  for (std::size_t j = 1; j < 4; ++j) {
    for (std::size_t to = 0; to < 5; ++to) {
      if (to != j) {
        group.send(j, to);
      }
    }
  }
  CHECK(group.at(0).arrived(group.place(0, 4), *again.payload_for(0)).empty());
  const auto question = group.close(0);
  REQUIRE(question.has_value());
  CHECK(question->sites.size() == 3);
  CHECK_FALSE(std::ranges::binary_search(question->sites, sites::site_id("site-4")));
  CHECK_FALSE(group.close(0, {1}).has_value());  // two sites, and three are needed
  std::vector<float> mean(8);
  CHECK(group.at(0).finish(mean) == SumOutcome::none);
}

TEST_CASE("secure sum: what is beyond the range is cut, and counted") {
  Group group(3, 4, {.colluders = 0, .range = 2}, drawn_seed(8000));
  const std::vector<float> model = {-5, 1, 2, 1e30F};
  group.at(0).open(1, model);
  CHECK(group.at(0).clipped() == 2);
}

TEST_CASE("secure sum: without a second site's key nothing is sent") {
  SecureSum sum({.colluders = 1}, "a", secret_of(1, 1), 4);
  sum.know(std::vector<std::string>{"b", "c", "d"});
  sum.open(1, std::vector<float>(4));
  CHECK(sum.payload_for(0) == nullptr);
  const sites::MaskKeys b(secret_of(1, 2));
  CHECK(sum.take_key(0, b.public_key()));
  CHECK_FALSE(sum.take_key(1, Bytes32{}));  // all zeros: of low order
  sum.open(2, std::vector<float>(4));
  CHECK(sum.payload_for(0) == nullptr);
  CHECK(sum.payload_for(1) == nullptr);  // one mask, of a site that may collude
}

TEST_CASE("secure sum: messages of sums come back as they were, and nothing else is read") {
  RandomStream random({.seed = drawn_seed(9000), .purpose = Purpose::initialize});
  for (int number = 0; number < 100; ++number) {
    sites::Unmask question{
        .incarnation = random.next_u64() | 1, .round = random.below(1000), .sites = {}};
    std::uint64_t id = 0;
    for (std::uint64_t k = random.below(sites::kMostSummed); k > 0; --k) {
      question.sites.push_back(id += 1 + random.below(1000));
    }
    sites::Masks answer{
        .incarnation = question.incarnation, .round = question.round, .revealed = {}};
    for (const std::uint64_t site : question.sites) {
      answer.revealed.push_back({site, random.below(2) == 0, secret_of(1, site)});
    }
    const auto asked = sites::encode(question);
    const auto told = sites::encode(answer);
    const auto question_back = sites::parse(asked, 4);
    const auto answer_back = sites::parse(told, 4);
    REQUIRE((question_back.ok() && answer_back.ok()));
    CHECK(std::get<sites::Unmask>(*question_back).sites == question.sites);
    CHECK(std::get<sites::Masks>(*answer_back).revealed.size() == answer.revealed.size());
    for (std::size_t cut = 0; cut < asked.size(); ++cut) {
      CHECK_FALSE(sites::parse(std::span(asked).first(cut), 4).ok());
    }
    for (std::size_t cut = 0; cut < told.size(); ++cut) {
      CHECK_FALSE(sites::parse(std::span(told).first(cut), 4).ok());
    }
  }
}
