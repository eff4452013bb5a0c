// A donor's copy of the state, counted in bytes: nothing is copied when it begins, a slice at each
// tick, each byte once, and the state may change right after finish().
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/byte_window.h>
#include <sotto/base/xxh3.h>
#include <sotto/optim/step_rule.h>
#include <sotto/sites/epochs/epoch_model.h>
#include <sotto/sites/epochs/state_copy.h>

#include "sites/epochs/epoch_world.h"
#include "support/seed.h"

namespace sotto::test::state_copy_test {

using namespace sotto::sites;

namespace {

constexpr std::size_t kMegabyte = std::size_t{1} << 20;

/// A state whose bytes follow from their places, and what is read of it.
struct Source {
  std::vector<std::byte> bytes;
  std::size_t read = 0;

  explicit Source(std::size_t count) : bytes(count) {
    for (std::size_t k = 0; k < count; ++k) {
      bytes[k] = static_cast<std::byte>(k % 251);
    }
  }
  LiveState state(Round step) {
    return {.step = step,
            .bytes = bytes.size(),
            .root = {1, 2},
            .part = [this](std::size_t first, std::size_t count, std::vector<std::byte>& part) {
              read += count;
              const auto from = std::span(bytes).subspan(first, count);
              part.insert(part.end(), from.begin(), from.end());
            }};
  }
};

}  // namespace

TEST_CASE("epochs: a copy is made in slices, each byte once, and outlives its state") {
  Source source(9 * kMegabyte + 77);
  const std::vector<std::byte> before = source.bytes;
  StateCopy copy;
  CHECK_FALSE(copy.copies());
  copy.begin(source.state(7), kMegabyte / 4, EpochTime(0));
  CHECK(copy.copies());
  CHECK(source.read == 0);
  // A newcomer's pieces cost themselves, once.
  REQUIRE(copy.piece({7, 20}, EpochTime(1)));
  REQUIRE(copy.piece({7, 20}, EpochTime(2)));
  CHECK(source.read == kMegabyte / 4);
  for (int slice = 1; slice <= 3; ++slice) {
    const std::size_t so_far = source.read;
    copy.copy_slice();
    CHECK(source.read > so_far);
    CHECK(source.read - so_far <= StateCopy::kSlice);
  }
  CHECK(source.read == 6 * kMegabyte + kMegabyte / 4);
  copy.finish();
  CHECK(source.read == before.size());
  CHECK(copy.copied() == before.size());
  CHECK_FALSE(copy.copies());
  std::ranges::fill(source.bytes, std::byte{0});
  copy.copy_slice();
  copy.finish();
  std::vector<std::byte> whole;
  for (std::uint32_t k = 0; k < 37; ++k) {
    const auto piece = copy.piece({7, k}, EpochTime(3));
    REQUIRE(piece);
    CHECK(piece->count == 37);
    whole.insert(whole.end(), piece->bytes.begin(), piece->bytes.end());
  }
  CHECK_FALSE(copy.piece({7, 37}, EpochTime(3)));
  CHECK(whole == before);
  CHECK(source.read == before.size());
}

TEST_CASE("epochs: a copy is finished at once, whatever its last piece is long") {
  for (std::size_t bytes = 0; bytes < 40; ++bytes) {
    CAPTURE(bytes);
    Source source(bytes);
    StateCopy copy;
    copy.begin(source.state(7), 10, EpochTime(0));
    copy.finish();
    CHECK_FALSE(copy.copies());
    CHECK(source.read == bytes);
    copy.begin(source.state(8), 10, EpochTime(0));  // in place of the one before
    CHECK(copy.copied() == 0);
    CHECK_FALSE(copy.piece({7, 0}, EpochTime(0)));
  }
}

TEST_CASE("epochs: a part of a snapshot is that part of the whole, with every step rule") {
  const std::uint64_t seed = drawn_seed();
  CAPTURE(seed);
  RandomStream draw({.seed = seed});
  for (const std::string rule :
       {"sgd", "adam", "adamw", "lamb", "lars", "muon", "muon; head.*=adamw; 1d=adamw"}) {
    CAPTURE(rule);
    ParameterLayout layout;
    append_block(layout, "body.weight", {6, 5});
    append_block(layout, "body.bias", {7});
    append_block(layout, "head.w", {4, 2});
    std::vector<float> x(dimension_of(layout));
    std::ranges::generate(x, [&] { return static_cast<float>(draw.normal()); });
    EpochModel model(x, layout, make_step_rule({.rule = rule, .learning_rate = 0.01}));
    std::vector<float> mean(x.size());
    for (int step = 0; step < 3; ++step) {
      std::ranges::generate(mean, [&] { return static_cast<float>(draw.normal()); });
      REQUIRE(model.apply(mean).ok());
    }
    const std::vector<std::byte> whole = model.snapshot();
    REQUIRE(model.snapshot_bytes() == whole.size());
    for (int play = 0; play < 50; ++play) {
      const std::size_t first = draw.below(whole.size() + 1);
      const std::size_t count = draw.below(whole.size() - first + 9);
      std::vector<std::byte> part;
      model.copy_part(first, count, part);
      const auto wanted = std::span(whole).subspan(first, std::min(count, whole.size() - first));
      CHECK(std::ranges::equal(part, wanted));
    }
  }
}

TEST_CASE("epochs: the digest of a model is made anew where it moves, and where it is taken over") {
  std::vector<float> x{1, 2, 3};
  EpochModel model(x, {}, make_step_rule({.rule = "sgd", .learning_rate = 0.5}));
  const ModelClaim first = model.claim();
  CHECK(first == model.claim());
  CHECK(first.step == 0);
  CHECK(first.digest == xxh3_128(std::as_bytes(std::span(std::as_const(x)))));
  const std::vector<std::byte> snapshot = model.snapshot();
  REQUIRE(model.apply(std::vector<float>{1, 0, 0}).ok());
  CHECK(model.claim().step == 1);
  CHECK(model.claim().digest != first.digest);
  REQUIRE(model.restore(0, snapshot).ok());
  CHECK(model.claim() == first);
}

TEST_CASE("epochs: a step beside a newcomer copies what no tick has copied, and the next nothing") {
  constexpr std::size_t kFloats = 1'500'000;  // 12 MB with the velocity
  EpochWorld world({.seed = 5,
                    .dimension = kFloats,
                    .founders = {"a", "b"},
                    .join_memory = 1 << 26,
                    .piece_bytes = std::size_t{256} << 10,
                    .newcomer_rate = 100'000});
  world.start("a");
  world.start("b");
  world.run(EpochTime(20'000), [&] { return world.committed() >= 2; });
  world.start("p");
  const EpochMember& a = *world.at("a").member;
  const auto newcomer_asks = [&] { return a.copy().step().has_value(); };
  for (int k = 0; k < 40 && !newcomer_asks(); ++k) {
    world.pass(EpochTime(50));
    for (EpochWorld::Process* process : world.all()) {
      world.tick(*process);
    }
    world.settle();
  }
  REQUIRE(newcomer_asks());  // the run pauses, and the present step is copied
  const std::size_t bytes = a.copy().bytes();
  CHECK(bytes > 2 * sizeof(float) * kFloats);
  CHECK(a.copy().copied() <= StateCopy::kSlice);
  REQUIRE(a.copies());
  const std::size_t before = a.copy().copied();
  world.tick(world.at("a"));
  const std::size_t sliced = a.copy().copied() - before;
  CHECK(sliced > 0);
  CHECK(sliced <= StateCopy::kSlice);
  const std::optional<Round> step = a.copy().step();
  const auto take_step = [&] {
    for (EpochWorld::Process* process : world.all()) {
      world.offer(*process);
    }
    world.settle();
  };
  take_step();
  REQUIRE(a.step() == *step + 1);
  CHECK_FALSE(a.copies());
  CHECK(a.copy().copied() == bytes);  // each byte once, whoever has asked for what
  take_step();
  REQUIRE(a.step() == *step + 2);
  CHECK(a.copy().copied() == bytes);
  CHECK(a.copy().step() == step);
}

TEST_CASE("epochs: a copy for a file is made beside the training, and is that of its step") {
  constexpr std::size_t kFloats = 1'500'000;
  EpochWorld world({.seed = 6, .dimension = kFloats, .founders = {"a"}});
  EpochWorld::Process& a = world.start("a");
  world.run(EpochTime(20'000), [&] { return world.committed() >= 2; });
  ByteBuffer whole;
  a.member->save(whole);
  std::vector<std::byte> room;
  room.reserve(whole.bytes().size());
  const std::byte* const memory = room.data();
  a.member->begin_copy(std::move(room));
  WholeCopy& copy = a.member->file_copy();
  CHECK(copy.copied() == 0);
  CHECK(a.member->copies());
  CHECK_FALSE(copy.take());
  world.tick(a);
  CHECK(copy.copied() == StateCopy::kSlice);
  world.offer(a);
  REQUIRE(a.member->step() == 3);
  CHECK_FALSE(a.member->copies());
  CHECK(copy.holds());
  const auto copied = copy.take();
  REQUIRE(copied);
  CHECK(copied->step == 2);
  CHECK(std::ranges::equal(copied->bytes, whole.bytes()));
  CHECK(copied->bytes.data() == memory);
  CHECK_FALSE(copy.holds());
  CHECK_FALSE(copy.take());
}

}  // namespace sotto::test::state_copy_test
