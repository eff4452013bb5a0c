// The parts of gossip on their own: a public copy, its payloads, and the average by a robust rule.
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/bytes.h>
#include <sotto/base/error.h>
#include <sotto/kernels/ops.h>
#include <sotto/sites/core/message.h>
#include <sotto/sites/core/mixing/public_copy.h>
#include <sotto/sites/core/mixing/robust_average.h>
#include <sotto/sites/core/places.h>

namespace sotto::test::gossip_parts_test {

using namespace sotto::sites;

namespace {

constexpr std::size_t kDimension = 3;
constexpr std::size_t kMostBytes = CopyHeader::kBytes + kDimension * sizeof(float);

PublicCopy copy_of(const std::vector<float>& model) {
  PublicCopy copy;
  copy.model = model;
  copy.begin();
  return copy;
}

std::vector<std::byte> payload_of(const CopyHeader& header, std::size_t more) {
  std::vector<std::byte> payload(CopyHeader::kBytes + more);
  write_copy_header(header, payload);
  return payload;
}

Fault fault_of(const std::vector<std::byte>& payload) {
  return check_copy_payload(payload, kDimension, kMostBytes).fault();
}

Status load(const std::vector<std::byte>& state, PublicCopy& copy) {
  ByteReader in(state);
  return copy.load(in, kDimension);
}

}  // namespace

TEST_CASE("a copy that came whole goes on as the one that it was made of") {
  PublicCopy there = copy_of({1, 2, 3});
  const std::vector<std::byte> change(5, std::byte{7});
  there.changed(there.before(), change);
  const Payload payload = there.whole();
  REQUIRE(fault_of(*payload) == Fault::none);
  ByteReader in(*payload);
  const CopyHeader header = read_copy_header(in);
  CHECK(header.whole);
  CHECK(header.changes == 1);
  PublicCopy here;
  CHECK_FALSE(here.held());
  here.model.resize(kDimension);
  REQUIRE(in.read_into(std::span(here.model)));
  here.came(header);
  CHECK(here.model == there.model);
  CHECK(here.version() == there.version());
  CHECK(here.before() == there.before());
  here.changed(here.before(), change);
  CHECK(here.before() != there.before());
}

TEST_CASE("a copy is saved with its version, and one that is not held as that") {
  PublicCopy copy = copy_of({1, 2, 3});
  copy.changed(copy.before(), std::vector<std::byte>(2));
  ByteBuffer out;
  copy.save(out);
  std::vector<std::byte> state = std::move(out).take();
  PublicCopy loaded;
  REQUIRE(load(state, loaded).ok());
  CHECK(loaded.model == copy.model);
  CHECK(loaded.before() == copy.before());
  state.pop_back();
  CHECK(load(state, loaded).fault() == Fault::malformed);

  ByteBuffer none;
  PublicCopy().save(none);
  REQUIRE(load(std::move(none).take(), loaded).ok());
  CHECK_FALSE(loaded.held());
  CHECK(load({}, loaded).fault() == Fault::malformed);
  CHECK(load({std::byte{2}}, loaded).fault() == Fault::malformed);
}

TEST_CASE("payloads of gossip are refused that no site sends") {
  CHECK(fault_of(payload_of({}, 1)) == Fault::none);
  CHECK(fault_of(payload_of({.whole = true}, kDimension * sizeof(float))) == Fault::none);
  CHECK(fault_of(payload_of({.whole = true}, 4)) == Fault::malformed);
  CHECK(fault_of(payload_of({}, kMostBytes)) == Fault::malformed);
  CHECK(fault_of(payload_of({.changes = kMostCount + 1}, 1)) == Fault::malformed);
  CHECK(fault_of(std::vector<std::byte>(CopyHeader::kBytes - 1)) == Fault::malformed);
}

TEST_CASE("the average by a rule counts copies whole or as far as they may pull") {
  const std::vector<float> x = {0, 0, 0};
  RobustAverage average("median", x, host_ops());
  std::vector<float> room(kDimension);
  std::vector<float> next(kDimension);
  average.expect(2);
  average.begin_round();
  average.add(0, std::vector<float>{1, 1, 1}, 1, 0.25F);
  average.add(1, std::vector<float>{8, 8, 8}, 0.25, 0.25F);  // as 2
  average.average(room, next);
  CHECK(next == std::vector<float>{1, 1, 1});  // of 0, 1 and 2
  average.average(room, next);                 // nothing of the round before is left
  CHECK(next == x);
  average.expect(4);
  for (std::size_t k = 0; k < 4; ++k) {
    average.add(k, std::vector<float>(kDimension, k < 3 ? 2.0F : -9.0F), 1, 0.2F);
  }
  average.average(room, next);
  CHECK(next == std::vector<float>{2, 2, 2});
  CHECK_THROWS_AS(RobustAverage("none-such", x, host_ops()), Error);
}

TEST_CASE("what is kept of peers by their places follows a new list") {
  std::vector<int> kept = {10, 11, 12};
  follow_list(kept, std::vector<std::size_t>{2, kNobody, 0, 7});
  CHECK(kept == std::vector<int>{12, 0, 10, 0});
  follow_list(kept, {});
  CHECK(kept.empty());
}

}  // namespace sotto::test::gossip_parts_test
