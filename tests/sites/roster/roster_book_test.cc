// Books of entries: two become one whatever the order, and neither what conflicts nor what is
// forgotten grows without end.
#include <doctest/doctest.h>

#include <sotto/sites/roster/roster_book.h>

#include "sites/roster/random_entries.h"

namespace sotto::test::roster_book_test {

using namespace sotto::sites;
using Outcome = RosterBook::Outcome;

namespace {

RosterEntry an_entry(const std::string& name, Incarnation incarnation, std::uint32_t version = 1) {
  return {.name = name, .incarnation = incarnation, .life = 1, .version = version};
}

}  // namespace

TEST_CASE("roster: books merge in any order, any grouping and any number of times") {
  for (std::uint64_t seed = 0; seed < 3'000; ++seed) {
    CAPTURE(seed);
    RandomStream random({.seed = seed});
    const auto all = random_entries(random);
    const RosterBook a = book_of(some_of(all, random));
    const RosterBook b = book_of(some_of(all, random));
    const RosterBook c = book_of(some_of(all, random));
    RosterBook ab = a;
    ab.merge(b);
    RosterBook ba = b;
    ba.merge(a);
    CHECK(ab.entries() == ba.entries());
    CHECK(ab.digest() == ba.digest());
    RosterBook ab_c = ab;
    ab_c.merge(c);
    RosterBook bc = b;
    bc.merge(c);
    RosterBook a_bc = a;
    a_bc.merge(bc);
    CHECK(ab_c.entries() == a_bc.entries());
    const auto revision = ab.revision();
    ab.merge(ab_c);
    ab.merge(ab_c);
    CHECK(ab.entries() == ab_c.entries());
    RosterBook again = a;
    again.merge(a);
    CHECK(again.digest() == a.digest());
    CHECK(again.revision() == a.revision());
    CHECK(ab.revision() >= revision);
  }
}

TEST_CASE("roster: the differences of two books, by marks, make them equal") {
  for (std::uint64_t seed = 0; seed < 1'000; ++seed) {
    CAPTURE(seed);
    RandomStream random({.seed = seed, .round = 1});
    const auto all = random_entries(random);
    RosterBook a = book_of(some_of(all, random));
    RosterBook b = book_of(some_of(all, random));
    const bool lacks = a.lacks_any(b.marks());
    const auto for_a = b.newer_than(a.marks(), 0, ~std::uint64_t{0});
    const auto for_b = a.newer_than(b.marks(), 0, ~std::uint64_t{0});
    CHECK(lacks == !for_a.empty());
    for (const RosterEntry& entry : for_a) {
      a.merge(entry);
    }
    for (const RosterEntry& entry : for_b) {
      b.merge(entry);
    }
    CHECK(a.entries() == b.entries());
  }
}

TEST_CASE("roster: an entry that replaces another wins, and two that do not are a conflict") {
  RosterBook book;
  CHECK(book.merge(an_entry("a", 7)) == Outcome::news);
  CHECK(book.merge(an_entry("a", 7)) == Outcome::known);
  CHECK(book.merge(an_entry("a", 7, 2)) == Outcome::news);
  CHECK(book.merge(an_entry("a", 7, 1)) == Outcome::known);
  CHECK(book.merge(an_entry("a", 3)) == Outcome::news);
  CHECK(book.find("a").size() == 2);
  RosterEntry newest = an_entry("a", 5);
  newest.replaces = {7, 3};
  CHECK(book.merge(newest) == Outcome::news);
  CHECK(book.entries() == std::vector{newest});
  CHECK(book.merge(an_entry("a", 7, 9)) == Outcome::known);
  // Two that name each other: neither wins.
  RosterEntry liar = an_entry("a", 9);
  liar.replaces = {5};
  RosterEntry other = newest;
  other.version = 2;
  other.replaces = {9};
  RosterBook liars;
  liars.merge(liar);
  liars.merge(other);
  CHECK(liars.find("a").size() == 2);
}

TEST_CASE("roster: of many that conflict, the smaller incarnations are kept") {
  RandomStream random({.seed = 4});
  RosterBook book;
  std::vector<Incarnation> drawn;
  for (int k = 0; k < 100; ++k) {
    drawn.push_back(1 + random.below(1'000'000'000));
    book.merge(an_entry("a", drawn.back()));
    CHECK(book.size() <= RosterBook::kMostConflicting);
  }
  std::ranges::sort(drawn);
  const auto kept = book.find("a");
  REQUIRE(kept.size() == RosterBook::kMostConflicting);
  for (std::size_t k = 0; k < kept.size(); ++k) {
    CHECK(kept[k].incarnation == drawn[k]);
  }
}

TEST_CASE("roster: what is forgotten comes back only newer, or by itself") {
  RosterBook book;
  book.merge(an_entry("a", 1, 5));
  book.forget("a", 1);
  CHECK(book.size() == 0);
  CHECK(book.forgotten() == 1);
  CHECK(book.merge(an_entry("a", 1, 5)) == Outcome::forgotten);
  CHECK_FALSE(book.lacks_any(book_of({an_entry("a", 1, 5)}).marks()));
  CHECK(book.merge(an_entry("a", 1, 5), true) == Outcome::recalled);
  CHECK(book.forgotten() == 0);
  book.forget("a", 1);
  CHECK(book.lacks_any(book_of({an_entry("a", 1, 6)}).marks()));
  CHECK(book.merge(an_entry("a", 1, 6)) == Outcome::recalled);
  for (Incarnation k = 1; k <= 3 * RosterBook::kMostForgotten; ++k) {
    book.merge(an_entry("b", k));
    book.forget("b", k);
    CHECK(book.forgotten() <= RosterBook::kMostForgotten);
  }
}

}  // namespace sotto::test::roster_book_test
