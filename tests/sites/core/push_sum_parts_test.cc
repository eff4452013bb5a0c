// The parts of push-sum among sites: payloads, the model, and what counts of a parcel.
#include <cstddef>
#include <limits>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/bytes.h>
#include <sotto/compress/registry.h>
#include <sotto/kernels/ops.h>
#include <sotto/sites/core/mixing/push_sum_giving.h>
#include <sotto/sites/core/mixing/push_sum_model.h>
#include <sotto/sites/core/mixing/push_sum_share.h>
#include <sotto/sites/core/mixing/push_sum_taking.h>

namespace sotto::test::push_sum_parts_test {

using namespace sotto::sites;

namespace {

constexpr ShareLimits kLimits = {.dimension = 2, .most_bytes = 64, .most_mass = 1024};

std::vector<std::byte> payload_of(const ShareHeader& header, const std::vector<float>& values) {
  ByteBuffer out;
  header.write(out);
  out.write_span(std::span<const float>(values));
  return std::move(out).take();
}

Fault fault_of(const ShareHeader& header, const std::vector<float>& values = {1, 2}) {
  return check_share(payload_of(header, values), kLimits).fault();
}

/// A site with this model and mass 1, of parcels of floats, which took no step yet.
struct Site {
  std::vector<float> z = {2, 4};
  std::unique_ptr<Compressor> compressor = make_compressor("none");
  PullBound bound{{}, {}};
  PushSumModel model{z, host_ops()};
  PushSumTaking taking{model, bound, *compressor, {}, 1};

  Site() {
    model.begin();
    taking.rearrange(std::vector<std::size_t>{kNobody});
  }
  TakenIn take(const ShareHeader& header, Credit credit = Credit::whole) {
    const auto taken = taking.take_in(0, payload_of(header, {2, 4}), {.credit = credit});
    REQUIRE(taken.ok());
    return *taken;
  }
  /// Gives a parcel with these floats, which is not taken from the model.
  void give(const ShareHeader& header, const std::vector<float>& values) {
    const auto payload = std::make_shared<const std::vector<std::byte>>(payload_of(header, values));
    const std::vector<Addressee> to = {{.peer = 0}};
    taking.note_given(payload, header.mass, to);
  }
};

}  // namespace

TEST_CASE("a share is refused that no site makes") {
  CHECK(check_share(payload_of({.share = 0.5, .mass = 0.5}, {1, 2}), kLimits).ok());
  CHECK(check_share(payload_of(ShareHeader::of_last(2), {1, 2}), kLimits).ok());
  CHECK(check_share({}, kLimits).fault() == Fault::malformed);
  CHECK(fault_of({.share = std::numeric_limits<double>::quiet_NaN(), .mass = 1}) ==
        Fault::non_finite);
  CHECK(fault_of({.share = 1.5, .mass = 1}) == Fault::malformed);
  CHECK(fault_of({.share = 0.5, .mass = 0}) == Fault::malformed);
  CHECK(fault_of({.share = 0.5, .mass = 1025}) == Fault::malformed);
  CHECK(fault_of(ShareHeader::of_last(1), {1}) == Fault::malformed);
}

TEST_CASE("a model is where it was, whatever becomes of its mass") {
  Site site;
  REQUIRE(site.model.rescale(2).ok());
  CHECK(site.model.mass() == 2);
  CHECK(site.z == std::vector<float>{2, 4});
  REQUIRE(site.model.fill_up(4, std::vector<float>{4, 8}).ok());
  CHECK(site.z == std::vector<float>{3, 6});
  site.model.clear();
  CHECK(site.model.mass() == 0);
  CHECK(site.z == std::vector<float>{3, 6});
}

TEST_CASE("what is given away and taken in again is the model of before") {
  Site site;
  PushSumGiving giving(site.model, *site.compressor);
  const auto payload = giving.make({}, {.share = 0.5, .mass = 0.5}, 0.5);
  REQUIRE(payload.ok());
  site.model.gave(0.5);
  CHECK(site.model.mass() == 0.5);
  REQUIRE(site.taking.take_in(0, **payload, {}).ok());
  REQUIRE(site.model.fold().ok());
  CHECK(site.model.mass() == 1);
  CHECK(site.z == std::vector<float>{2, 4});
}

TEST_CASE("all parcels of a peer in one round count as one") {
  Site site;
  CHECK(site.take({.share = 0.75, .mass = 0.75}).counted == 0.75);
  CHECK(site.take({.share = 0.75, .mass = 0.75}).counted == 0.25);
  CHECK(site.model.mass() == 2);
  site.taking.end_round();
  CHECK(site.take({.share = 0.75, .mass = 0.75}).counted == 0.75);
}

TEST_CASE("a last parcel counts once for each process of its sender") {
  Site site;
  CHECK(site.take(ShareHeader::of_last(1)).counted == 1);
  CHECK(site.take(ShareHeader::of_last(1)).counted == 0);
  site.taking.comes_back(0);
  CHECK(site.take(ShareHeader::of_last(1)).counted == 1);
}

TEST_CASE("minted mass counts as what this site gave") {
  Site site;
  CHECK(site.take({.share = 1, .mass = 4}).counted == 0);  // nothing was given
  site.give({.share = 0.5, .mass = 0.25}, {8, 16});
  const TakenIn minted = site.take({.share = 1, .mass = 4});
  CHECK(minted.mass == 4);
  CHECK(minted.counted == 0.25);
  CHECK(minted.influence.excess == 3.75);
  CHECK(site.take({.share = 0.5, .mass = 0.5}, Credit::nothing).counted == 0);
  CHECK(site.model.mass() == 1.25);
  REQUIRE(site.model.fold().ok());
  CHECK(site.z[0] == doctest::Approx((2 + 0.5 * 8) / 1.25));  // as it was given, whatever it was
}

TEST_CASE("parcels whose mass does not count move the model as far as those whose mass does") {
  constexpr std::size_t kPeers = 30;
  std::vector<float> with_mass;
  for (const Credit credit : {Credit::whole, Credit::pull}) {
    Site site;
    site.taking.rearrange(std::vector<std::size_t>(kPeers, kNobody));
    REQUIRE(site.model.move_by(1, std::vector<float>{2, 4}, std::vector<float>{1, 1}).ok());
    for (std::size_t peer = 0; peer < kPeers; ++peer) {
      const auto taken = site.taking.take_in(peer, payload_of({.share = 0.5, .mass = 0.5}, {2, 4}),
                                             {.credit = credit});
      REQUIRE(taken.ok());
      CHECK(taken->counted == (credit == Credit::whole ? 0.5 : 0));
    }
    REQUIRE(site.model.fold().ok());
    CHECK(site.model.mass() == 16);
    const double massless = site.taking.end_round();
    CHECK(massless == (credit == Credit::whole ? 0 : 15));
    REQUIRE(site.model.rescale(16 - massless).ok());
    with_mass = with_mass.empty() ? site.z : with_mass;
    CHECK(site.z[0] == doctest::Approx(with_mass[0]));
    CHECK(site.z[1] == doctest::Approx(with_mass[1]));
  }
}

TEST_CASE("what a barred peer was given comes back once") {
  Site site;
  site.give({.share = 0.25, .mass = 0.25}, {2, 4});
  CHECK(site.take({.share = 0.5, .mass = 0.2}, Credit::own_model).counted == 0.2);
  CHECK(site.take(ShareHeader::of_last(1), Credit::own_model).counted == doctest::Approx(0.05));
  CHECK(site.take({.share = 0.5, .mass = 0.5}, Credit::own_model).counted == doctest::Approx(0));
  site.taking.end_round();
  site.taking.note_given({}, 0, {});  // what it kept from earlier rounds is an old model
  CHECK(site.take({.share = 0.5, .mass = 0.5}, Credit::own_model).counted == 0);
}

TEST_CASE("a parcel and a minted one in the same round count as one") {
  Site site;
  site.give({.share = 0.25, .mass = 0.25}, {2, 4});
  CHECK(site.take({.share = 0.5, .mass = 1}).counted == 1);
  CHECK(site.take({.share = 0.5, .mass = 7}).counted == 0);
}

TEST_CASE("the pull of an old parcel is damped, and its mass counts whole") {
  Site site;
  REQUIRE(site.model.move_by(1, std::vector<float>{2, 4}, std::vector<float>{1, 1}).ok());
  const float before = site.z[0];
  const auto taken =
      site.taking.take_in(0, payload_of({.share = 0.5, .mass = 0.5}, {2, 4}), {.part = 0.125});
  REQUIRE(taken.ok());
  REQUIRE(site.model.fold().ok());
  CHECK(site.model.mass() == 1.5);
  const float model = 2;
  CHECK(site.z[0] == doctest::Approx(before + 0.125F * (model - before) / 3));
}

}  // namespace sotto::test::push_sum_parts_test
