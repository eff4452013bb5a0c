// Secure sums: what is summed, what is shown and to whom, and what a site is not told.
#include <sotto/sites/core/sums/secure_sum.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <numeric>
#include <set>
#include <string>
#include <type_traits>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <sotto/base/philox.h>
#include <sotto/sites/core/message.h>
#include <sotto/sites/core/site_setup.h>

namespace sotto::test::secure_sum_test {

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
    hand_over(from, to, *parcel);
  }
  /// A parcel as `from` may have changed it.
  void hand_over(std::size_t from, std::size_t to, const std::vector<std::byte>& parcel) {
    REQUIRE(sums_[to]->check_payload(parcel).ok());
    for (const auto& [asker, answer] : sums_[to]->arrived(place(to, from), parcel)) {
      const std::size_t who = site_at(to, asker);
      sums_[who]->take(place(who, to), answer);
    }
    parcels_[{from, to}] = std::make_shared<const std::vector<std::byte>>(parcel);
  }
  /// Site `i` fixes its sum, and answers those who have asked.
  std::optional<sites::Unmask> close(std::size_t i) {
    auto question = sums_[i]->close();
    for (const auto& [asker, answer] : sums_[i]->answers_due()) {
      const std::size_t who = site_at(i, asker);
      sums_[who]->take(place(who, i), answer);
    }
    for (const auto& [ends, parcel] : parcels_) {
      if (ends.second == i) {
        sums_[i]->add(place(i, ends.first), *parcel);
      }
    }
    return question;
  }
  /// The answer of k to i; empty where it does not say anything.
  std::vector<RevealedMask> ask(std::size_t i, std::size_t k, const sites::Unmask& question) {
    auto revealed = sums_[k]->answer(place(k, i), question);
    REQUIRE(revealed.ok());
    if (!*revealed) {
      return {};
    }
    sums_[i]->take(place(i, k), {.round = question.round, .revealed = **revealed});
    return std::move(**revealed);
  }
  /// All sites in `from` send to all others.
  void exchange(const std::vector<std::size_t>& from) {
    for (const std::size_t j : from) {
      for (std::size_t to = 0; to < size(); ++to) {
        if (to != j) {
          send(j, to);
        }
      }
    }
  }
  std::vector<std::size_t> all() const {
    std::vector<std::size_t> sites(size());
    std::iota(sites.begin(), sites.end(), std::size_t{0});
    return sites;
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

/// Another tag of the parcel's mask with this site, if there is one.
void change_tag(std::vector<std::byte>& parcel, std::size_t site) {
  constexpr std::size_t kEntry = 2 * sizeof(std::uint64_t) + 32;  // id, tag and share
  for (std::size_t at = sizeof(std::uint64_t) + sizeof(std::uint16_t); at + kEntry <= parcel.size();
       at += kEntry) {
    std::uint64_t id = 0;
    std::memcpy(&id, parcel.data() + at, sizeof id);
    if (id == sites::site_id(fmt::format("site-{}", site))) {
      parcel[at + sizeof id] ^= std::byte{1};
      return;
    }
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
    std::vector<sites::Secret32> coefficients;
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

TEST_CASE("secure sum: what is secret is gone with its object") {
  alignas(sites::Secret32) std::array<unsigned char, sizeof(sites::Secret32)> place{};
  const auto is_gone = [&] {
    return std::ranges::all_of(place, [](unsigned char byte) { return byte == 0; });
  };
  const Bytes32 bytes = secret_of(1, 1);
  auto* const secret = std::construct_at(reinterpret_cast<sites::Secret32*>(place.data()), bytes);
  CHECK(*secret == bytes);
  CHECK_FALSE(is_gone());
  std::destroy_at(secret);
  CHECK(is_gone());
  // What is derived of a secret, and held of others', is of this kind.
  static_assert(std::is_same_v<decltype(sites::mask_seed(bytes, 1, 1)), sites::Secret32>);
  static_assert(std::is_same_v<decltype(sites::derived_scalar(bytes, {})), sites::Secret32>);
  static_assert(std::is_same_v<decltype(sites::join_secret({}))::value_type, sites::Secret32>);
  static_assert(std::is_same_v<decltype(sites::SecretShare::value), sites::Secret32>);
  static_assert(std::is_same_v<decltype(RevealedMask::value), sites::Secret32>);
  static_assert(std::is_same_v<decltype(sites::SiteSetup::secret), sites::Secret32>);
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
    const std::size_t spare = clients.size() - group.at(0).least_members();
    const bool before = random.below(2) == 0;
    const std::size_t gone = random.below(spare + 1);
    std::vector<std::size_t> there = clients;
    if (before) {
      there.resize(clients.size() - gone);
    }
    group.exchange(there);
    const auto question = group.close(receiver);
    REQUIRE(question.has_value());
    CHECK(question->sites.size() == there.size());
    std::vector<std::size_t> answering = there;
    if (!before) {
      answering.resize(there.size() - gone);
    }
    // Some have closed the round before they are asked, some only after.
    for (const std::size_t k : answering) {
      const bool before_asked = random.below(2) == 0;
      if (before_asked) {
        group.close(k);
      }
      group.ask(receiver, k, *question);
      if (!before_asked) {
        group.close(k);
      }
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
    group.exchange(group.all());
    // All receivers but site 0 collude, and ask it for what they like, again and again.
    std::map<std::uint64_t, std::set<bool>> told;
    for (int ask = 0; ask < 50; ++ask) {
      const std::size_t asker = 1 + random.below(sites - 1);
      sites::Unmask question;
      question.round = 3;
      for (std::size_t j = 0; j < sites; ++j) {
        if (j != asker && (j == 0 || random.below(8) != 0)) {
          question.sites.push_back(sites::site_id(fmt::format("site-{}", j)));
        }
      }
      std::ranges::sort(question.sites);
      const auto revealed = group.ask(asker, 0, question);
      CHECK((ask >= 25 || revealed.empty()));  // before its own choice is made it says nothing
      for (const RevealedMask& mask : revealed) {
        told[mask.site].insert(mask.is_share);
      }
      if (ask == 24) {
        CHECK(group.close(0).has_value());
      }
    }
    for (const auto& [site, kinds] : told) {
      CHECK(kinds.size() == 1);
    }
    sites::Unmask without;
    without.round = 3;
    without.sites = {sites::site_id("site-2")};
    CHECK_FALSE(group.at(0).answer(group.place(0, 1), without).ok());  // not about the one it asks
  }
}

namespace {

/// Whether a receiver and its colluders, who know all that they were told and made themselves, see
/// the model of `victim`, where each honest site h was led to take choice[h] for the missing ones.
/// They need the victim's masks with all honest sites, and t shares of its own.
bool sees(std::size_t sites, std::size_t colluders, std::size_t victim,
          const std::vector<std::set<std::size_t>>& choice, std::size_t least) {
  const std::size_t threshold = sites + colluders - least;
  std::size_t shares = colluders;
  bool masks = true;
  // Site 0 receives, 1 … colluders collude.
  for (std::size_t w = colluders + 1; w < sites; ++w) {
    if (w != victim) {
      masks = masks && (choice[w].contains(victim) || choice[victim].contains(w));
      shares += choice[w].contains(victim) ? 0U : 1U;
    }
  }
  return masks && shares >= threshold;
}

}  // namespace

TEST_CASE("secure sum: whatever choices the clients are led to, no single model is seen") {
  for (std::size_t sites = 3; sites <= 9; ++sites) {
    for (std::size_t colluders = 0; colluders + 3 <= sites; ++colluders) {
      SecureSum sum({.colluders = colluders}, "a", secret_of(1, 1), 1);
      std::vector<std::string> names;
      for (std::size_t k = 1; k < sites; ++k) {
        names.push_back(fmt::format("site-{}", k));
      }
      sum.know(names);
      const std::size_t least = sum.least_members();
      CHECK(least >= colluders + 2);
      CHECK(least + 1 <= sites);
      RandomStream random({.seed = drawn_seed(static_cast<int>(100 * sites + colluders)),
                           .purpose = Purpose::initialize});
      const std::size_t honest = sites - 1 - colluders;
      for (int draw = 0; draw < 5'000; ++draw) {
        std::vector<std::set<std::size_t>> choice(sites);
        for (std::size_t h = colluders + 1; h < sites; ++h) {
          for (std::uint64_t k = random.below(sites - least); k > 0; --k) {
            const std::size_t out = colluders + 1 + random.below(honest);
            if (out != h) {
              choice[h].insert(out);
            }
          }
        }
        REQUIRE_FALSE(sees(sites, colluders, colluders + 1, choice, least));
      }
      // The rule is no stricter than it must be where it is stricter than c + 2.
      if (least > colluders + 2 && honest > 2) {
        std::vector<std::set<std::size_t>> choice(sites);
        const std::size_t victim = colluders + 1;
        for (std::size_t w = victim + 1; w < sites; ++w) {
          if (choice[victim].size() < sites - least) {  // one more than may be missing
            choice[victim].insert(w);
          } else {
            choice[w].insert(victim);
          }
        }
        CHECK(sees(sites, colluders, victim, choice, least));
      }
    }
  }
}

TEST_CASE("secure sum: two receivers that collude get no two sums that differ by one site") {
  Group group(7, 16, {.colluders = 2}, drawn_seed(5000));
  group.open(1);
  group.exchange(group.all());
  const auto all = group.close(0);
  REQUIRE(all.has_value());
  sites::Unmask without;
  without.round = 1;
  for (const std::size_t j : {0U, 2U, 3U, 4U, 6U}) {
    without.sites.push_back(sites::site_id(fmt::format("site-{}", j)));
  }
  std::ranges::sort(without.sites);
  for (std::size_t k = 2; k < 7; ++k) {
    group.close(k);
    if (k != 5) {
      CHECK(group.ask(1, k, without).empty());
    }
    CHECK_FALSE(group.ask(0, k, *all).empty());
  }
}

TEST_CASE("secure sum: a key that another site has repeats no masks, and accuses nobody") {
  const sites::MaskKeys v(secret_of(1, 1));
  const sites::MaskKeys w(secret_of(1, 2));
  const auto with_w = v.shared_with(10, 20, w.public_key());
  CHECK(with_w == w.shared_with(20, 10, v.public_key()));
  CHECK(with_w != v.shared_with(10, 15, w.public_key()));  // a third site that says it is its key
  SecureSum sum({.colluders = 1}, "v", secret_of(1, 1), 4);
  sum.know(std::vector<std::string>{"m", "w", "x"});
  CHECK(sum.take_key(1, w.public_key()));
  // The key's owner is not refused for it, also where another site has said it first.
  CHECK(sum.take_key(0, w.public_key()));
  CHECK(sum.take_key(1, w.public_key()));
}

TEST_CASE("secure sum: a site that gives its state up masks a repeated round anew") {
  Group group(4, 64, {.colluders = 0}, drawn_seed(5500));
  group.open(9);
  const auto before = group.payload(1, 0);
  group.at(1).begin_anew();
  for (const std::size_t j : {0U, 2U, 3U}) {
    CHECK(group.at(1).take_key(group.place(1, j), group.at(j).public_key()));
  }
  group.at(1).open(9, group.model(1));
  const auto after = group.payload(1, 0);
  std::size_t equal = 0;
  for (std::size_t k = before->size() - 256; k < before->size(); ++k) {
    equal += (*before)[k] == (*after)[k] ? 1U : 0U;
  }
  CHECK(equal < 16);  // by chance, 1 of 256 bytes
}

TEST_CASE("secure sum: wrong shares are left out, and wrong masks found out") {
  for (int number = 0; number < 20; ++number) {
    const std::uint64_t seed = drawn_seed(6000 + number);
    CAPTURE(seed);
    const bool lies_about_shares = number % 2 == 0;
    // Another site is missing where the liar lies about its mask with that one.
    Group group(7, 64, {.colluders = 1}, seed);
    group.open(1);
    group.exchange(lies_about_shares ? std::vector<std::size_t>{1, 2, 3, 4, 5, 6}
                                     : std::vector<std::size_t>{1, 2, 3, 4, 5});
    const std::size_t liar = 1 + group.random().below(5);
    const auto question = group.close(0);
    REQUIRE(question.has_value());
    for (std::size_t k = 1; k < (lies_about_shares ? 7U : 6U); ++k) {
      group.close(k);
      auto revealed = group.at(k).answer(group.place(k, 0), *question);
      REQUIRE((revealed.ok() && revealed->has_value()));
      for (RevealedMask& mask : **revealed) {
        if (k == liar && mask.is_share == lies_about_shares) {
          mask.value = secret_of(seed, 99);
        }
      }
      group.at(0).take(group.place(0, k), {.round = 1, .revealed = **revealed});
    }
    std::vector<float> mean(64);
    CHECK(group.at(0).finish(mean) ==
          (lies_about_shares ? SumOutcome::summed : SumOutcome::unequal));
    if (lies_about_shares) {
      check_mean(group, mean, {0, 1, 2, 3, 4, 5, 6}, 16);
    }
  }
}

TEST_CASE("secure sum: one that says another tag than a site is left out with it, and no other") {
  // 6 says to all others another tag of its mask with 2.
  constexpr std::size_t kLiar = 6;
  constexpr std::size_t kVictim = 2;
  const std::vector<std::size_t> others = {0, 1, 3, 4, 5};
  Group group(7, 8, {.colluders = 0}, drawn_seed(6100));
  for (Round round = 1; round <= 5; ++round) {
    CAPTURE(round);
    group.open(round);
    for (std::size_t from = 0; from < group.size(); ++from) {
      for (std::size_t to = 0; to < group.size(); ++to) {
        if (from != to) {
          std::vector<std::byte> parcel = *group.payload(from, to);
          if (from == kLiar) {
            change_tag(parcel, kVictim);
          }
          group.hand_over(from, to, parcel);
        }
      }
    }
    std::map<std::size_t, sites::Unmask> questions;
    for (std::size_t i = 0; i < group.size(); ++i) {
      if (auto question = group.close(i)) {
        questions.emplace(i, std::move(*question));
      }
    }
    for (const std::size_t i : others) {
      CAPTURE(i);
      REQUIRE(questions.contains(i));
      CHECK(questions.at(i).sites.size() == 4);
      for (const std::size_t k : others) {
        if (k != i) {
          (void)group.ask(i, k, questions.at(i));
        }
      }
      std::vector<float> mean(8);
      CHECK(group.at(i).finish(mean) == SumOutcome::summed);
      check_mean(group, mean, others, 16);
    }
  }
}

TEST_CASE("secure sum: a site whose process began anew is left out, and too few ask nobody") {
  Group group(6, 8, {.colluders = 1}, drawn_seed(7000));
  group.open(1);
  SecureSum again({.colluders = 1}, "site-5", secret_of(1, 2), 8);
  again.know(group.names_without(5));
  for (std::size_t j = 0; j < 5; ++j) {
    CHECK(again.take_key(j, group.at(j).public_key()));
  }
  again.open(1, group.model(5));
  for (std::size_t j = 1; j < 5; ++j) {
    group.send(j, 0);
  }
  CHECK(group.at(0).arrived(group.place(0, 5), *again.payload_for(0)).empty());
  const auto question = group.close(0);
  REQUIRE(question.has_value());
  CHECK(question->sites.size() == 4);
  CHECK_FALSE(std::ranges::binary_search(question->sites, sites::site_id("site-5")));
  group.send(1, 2);
  group.send(3, 2);
  CHECK_FALSE(group.close(2).has_value());  // two sites, and four are needed
  std::vector<float> mean(8);
  CHECK(group.at(2).finish(mean) == SumOutcome::none);
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

}  // namespace sotto::test::secure_sum_test
