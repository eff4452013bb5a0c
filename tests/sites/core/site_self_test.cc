// What a site writes down of itself, and what it does not take back.
#include <cstddef>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/bytes.h>
#include <sotto/sites/core/site_self.h>

namespace sotto::test::site_self_test {

using namespace sotto::sites;

namespace {

SiteSelf saved_and_loaded(const SiteSelf& self) {
  ByteBuffer out;
  self.save(out);
  const std::vector<std::byte> state = std::move(out).take();
  ByteReader in(state);
  SiteSelf loaded;
  REQUIRE(loaded.load(in).ok());
  CHECK(in.finished());
  return loaded;
}

Fault fault_of(const SiteSelf& self) {
  ByteBuffer out;
  self.save(out);
  const std::vector<std::byte> state = std::move(out).take();
  ByteReader in(state);
  return SiteSelf().load(in).fault();
}

SiteSelf begun() {
  return {.incarnation = 7,
          .round = 3,
          .offered = 3,
          .trained = true,
          .minted = 1,
          .written_off = 0.5,
          .resets = 2,
          .phase = RoundPhase::training};
}

}  // namespace

TEST_CASE("a round that was offered counts as ended in the saved state") {
  SiteSelf self = begun();
  self.offered = 4;
  self.phase = RoundPhase::offered;
  const SiteSelf loaded = saved_and_loaded(self);
  CHECK(loaded.incarnation == 7);
  CHECK(loaded.round == 4);
  CHECK(loaded.offered == 4);
  CHECK(loaded.reached() == 4);
  CHECK(loaded.trained);
  CHECK(loaded.written_off == 0.5);
  CHECK(loaded.resets == 2);
  CHECK(loaded.phase == RoundPhase::training);
}

TEST_CASE("a site that has not begun has no model in its saved state") {
  SiteSelf self = begun();
  self.phase = RoundPhase::waiting;
  const SiteSelf loaded = saved_and_loaded(self);
  CHECK(loaded.phase == RoundPhase::waiting);
  CHECK_FALSE(loaded.trained);
}

TEST_CASE("a saved site is refused that cannot be") {
  SiteSelf self = begun();
  self.incarnation = 0;
  CHECK(fault_of(self) == Fault::malformed);
  self = begun();
  self.offered = 5;  // later than the rounds that are over
  CHECK(fault_of(self) == Fault::malformed);
  self = begun();
  self.minted = -1;
  CHECK(fault_of(self) == Fault::malformed);
}

}  // namespace sotto::test::site_self_test
