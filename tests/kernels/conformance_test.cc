// Every operation of host_ops(), on every instruction set, leaves the reference's bytes.
#include "kernels/conformance.h"
#include "kernels/every_operation.h"

#include <limits>

namespace sotto::test::conformance_test {

using namespace sotto::testing;

TEST_CASE("every instruction set of this machine has a name of its own") {
  std::vector<std::string_view> names;
  for (const std::int64_t target : host_targets()) {
    use_host_target(target);
    CHECK(std::ranges::count(names, host_ops().name()) == 0);
    names.push_back(host_ops().name());
    MESSAGE(host_ops().name());
  }
  use_host_target(0);
  CHECK(host_ops().name() == names.front());
}

TEST_CASE("elementwise operations conform") {
  conform([](const Ops& ops, const Case& test, Arena& arena) {
    const auto x = arena.copy_of(test.x);
    ops.fill(0.3F, arena.take<float>(x.size()));
    ops.copy(x, arena.take<float>(x.size()));
    ops.scale(1.7F, arena.copy_of(test.y));
    ops.axpy(-0.3F, x, arena.copy_of(test.y));
  });
  conform([](const Ops& ops, const Case& test, Arena& arena) {
    const auto x = arena.copy_of(test.x);
    const auto y = arena.copy_of(test.y);
    ops.subtract(x, y, arena.take<float>(x.size()));
    arena.record(ops.combine({{0.9F, x}, {-1.1F, y}}, arena.take<float>(x.size())) ? 1.0F : 0.0F);
  });
}

TEST_CASE("elementwise operations work in place") {
  conform([](const Ops& ops, const Case& test, Arena& arena) {
    const auto same = arena.copy_of(test.x);
    ops.axpy(0.5F, same, same);
    ops.combine({{-0.3F, same}, {0.5F, same}}, same);
    ops.copy(same, same);
    const auto minuend = arena.copy_of(test.x);
    const auto subtrahend = arena.copy_of(test.y);
    ops.subtract(minuend, subtrahend, minuend);
    ops.subtract(minuend, subtrahend, subtrahend);
  });
}

TEST_CASE("combinations conform, in place, of any number of summands") {
  conform(every_combination);
}

TEST_CASE("a combination is added from the left, each sum rounded") {
  const std::array<float, 1> large = {1e8F};
  const std::array<float, 1> one = {1.0F};
  for (const Ops* ops : {&reference_ops(), &host_ops()}) {
    std::array<float, 1> out{};
    CHECK(ops->combine({{1, large}, {1, one}, {-1, large}}, out));
    CHECK(out[0] == 0);  // 1e8 + 1 is 1e8
    CHECK(ops->combine({{1, large}, {-1, large}, {0.5F, one}}, out));
    CHECK(out[0] == 0.5F);
  }
}

TEST_CASE("a combination says whether all of it is finite, wherever it is not") {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const std::vector<float> ones(100, 1);
  for (std::size_t place = 0; place < ones.size(); ++place) {
    INFO("place ", place);
    for (const float bad : {kInfinity, -kInfinity, std::numeric_limits<float>::quiet_NaN()}) {
      conform_on({ones, ones, place % kMisalignments},
                 [&](const Ops& ops, const Case& test, Arena& arena) {
                   const auto x = arena.copy_of(test.x);
                   REQUIRE(ops.combine({{2, x}, {1, x}}, arena.take<float>(x.size())));
                   x[place] = bad;
                   REQUIRE(!ops.combine({{2, x}}, x));
                   const std::vector<Summand> many(9, {0.5F, test.y});
                   REQUIRE(ops.combine(many, arena.take<float>(x.size())));
                   auto spoilt = many;
                   spoilt[place % many.size()].x = x;
                   REQUIRE(!ops.combine(spoilt, arena.take<float>(x.size())));
                 });
    }
  }
  std::vector<float> out(ones.size());
  const std::vector<float> largest(ones.size(), std::numeric_limits<float>::max());
  CHECK(!host_ops().combine({{1, largest}, {1, largest}, {-1, largest}}, out));  // ∞ − max
}

TEST_CASE("Adam conforms, in place too") {
  for (const float epsilon : {1e-8F, 0.0F}) {
    conform([epsilon](const Ops& ops, const Case& test, Arena& arena) {
      const auto m = arena.copy_of(test.y);
      const auto v = arena.copy_of(test.y);
      for (float& value : v) {
        value = std::abs(value);
      }
      const auto gradient = arena.copy_of(test.x);
      ops.adam(gradient, 0.9F, 0.999F, 1e-3F, 1.5F, epsilon, m, v, arena.take<float>(m.size()));
      ops.adam(gradient, 0.9F, 0.999F, 1e-3F, 1.1F, epsilon, m, v, gradient);
    });
  }
}

TEST_CASE("reductions conform") {
  conform([](const Ops& ops, const Case& test, Arena& arena) {
    const auto x = arena.copy_of(test.x);
    const auto y = arena.copy_of(test.y);
    arena.record(ops.sum(x));
    arena.record(ops.sum_abs(x));
    arena.record(ops.sum_squares(x));
    arena.record(ops.dot(x, y));
    const MinMax range = ops.min_max(x);
    arena.record(range.min);
    arena.record(range.max);
  });
}

TEST_CASE("minimum and maximum are found at any place") {
  const std::vector<float> zeros(kLongest);
  for (std::size_t place = 0; place < 200; ++place) {
    INFO("place ", place);
    conform_on({std::span(zeros).first(200), {}, 1},
               [place](const Ops& ops, const Case& test, Arena& arena) {
                 const auto x = arena.copy_of(test.x);
                 x[place] = -2.0F;
                 x[199 - place] += 3.0F;
                 const MinMax range = ops.min_max(x);
                 REQUIRE(range.min == -2.0F);
                 REQUIRE(range.max == 3.0F);
               });
  }
}

TEST_CASE("non-finite elements are counted and the first one found") {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  for (const std::size_t stride : {1U, 2U, 17U, 64U, 5000U, 20000U}) {
    conform([stride](const Ops& ops, const Case& test, Arena& arena) {
      const auto x = arena.copy_of(test.x);
      std::size_t placed = 0;
      for (std::size_t i = stride / 2; i < x.size(); i += stride) {
        x[i] = std::array{kInfinity, -kInfinity, kNan}[placed++ % 3];
      }
      const NonFinite found = ops.count_non_finite(x);
      REQUIRE(found.count == placed);
      REQUIRE(found.first == (placed > 0 ? stride / 2 : 0));
    });
  }
}

namespace {

/// Every operation on half precision.
void try_halves(const Ops& ops, const Case& test, Arena& arena) {
  const auto fp16 = arena.take<std::byte>(2 * test.x.size());
  const auto bf16 = arena.take<std::byte>(2 * test.x.size());
  const auto again = arena.take<std::byte>(2 * test.x.size());
  arena.record(ops.to_fp16(test.x, fp16));
  arena.record(ops.to_bf16(test.x, bf16));
  ops.fp16_axpy(0.3F, fp16, arena.copy_of(test.y));
  ops.bf16_axpy(-0.7F, bf16, arena.copy_of(test.y));
  const Soon soon = {.from = {test.y.data(), nullptr, test.x.data()}, .count = test.x.size()};
  arena.record(ops.fp16_residual(arena.copy_of(test.x), again, soon));
  REQUIRE(std::ranges::equal(again, fp16));
  arena.record(ops.bf16_residual(arena.copy_of(test.x), again, soon));
  REQUIRE(std::ranges::equal(again, bf16));
}

template <typename T>
void expect_non_finite(NonFinite found, std::span<const std::byte> bytes, T infinity) {
  NonFinite expected;
  for (std::size_t i = 0; i < bytes.size() / sizeof(T); ++i) {
    T bits{};
    std::memcpy(&bits, &bytes[i * sizeof(T)], sizeof(T));
    if ((bits & infinity) == infinity) {
      expected.first = expected.count++ == 0 ? i : expected.first;
    }
  }
  REQUIRE(found.count == expected.count);
  REQUIRE(found.first == expected.first);
}

}  // namespace

TEST_CASE("half precision conforms") { conform(try_halves); }

TEST_CASE("half precision conforms on infinities, NaNs and random bits") {
  RandomStream stream({.seed = 6});
  std::vector<float> any(kLongest);
  std::ranges::generate(any, [&stream] { return std::bit_cast<float>(stream.next_u32()); });
  any[0] = std::numeric_limits<float>::infinity();
  any[1] = -std::numeric_limits<float>::infinity();
  conform_on({any, any, 0}, [](const Ops& ops, const Case& test, Arena& arena) {
    const auto half = arena.take<std::byte>(2 * test.x.size());
    arena.record(ops.to_fp16(test.x, half));
    ops.fp16_axpy(1.0F, half, arena.copy_of<float>(std::vector<float>(test.x.size())));
    arena.record(ops.to_bf16(test.x, half));
    ops.bf16_axpy(1.0F, half, arena.copy_of<float>(std::vector<float>(test.x.size())));
  });
}

TEST_CASE("floats in bytes are added and looked through at any address") {
  conform([](const Ops& ops, const Case& test, Arena& arena) {
    for (const std::size_t shift : {0U, 1U, 3U}) {
      const auto room = arena.take<std::byte>(shift + 4 * test.x.size());
      const auto bytes = room.subspan(shift);
      std::ranges::copy(std::as_bytes(std::span(test.x)), bytes.begin());
      ops.fp32_axpy(0.3F, bytes, arena.copy_of(test.y));
      for (std::size_t i = 0; i + 1 < bytes.size(); i += 1009) {
        bytes[i] = bytes[i + 1] = std::byte{0xFF};
      }
      expect_non_finite<std::uint32_t>(ops.fp32_non_finite(bytes), bytes, 0x7F800000);
      expect_non_finite<std::uint16_t>(ops.fp16_non_finite(bytes), bytes, 0x7C00);
      expect_non_finite<std::uint16_t>(ops.bf16_non_finite(bytes), bytes, 0x7F80);
    }
  });
}

TEST_CASE("signs conform") {
  conform([](const Ops& ops, const Case& test, Arena& arena) {
    const auto x = arena.copy_of(test.x);
    const auto signs = arena.take<std::byte>(packed_bytes(x.size(), 1));
    ops.sign_pack(x, signs);
    ops.sign_axpy(0.3F, signs, arena.copy_of(test.y));
    const auto again = arena.take<std::byte>(signs.size());
    const Soon soon = {.from = {test.y.data(), nullptr, test.x.data()}, .count = test.x.size()};
    ops.sign_residual(arena.copy_of(test.x), 0.3F, again, soon);
  });
}

TEST_CASE("the largest elements conform") {
  for (const std::size_t divisor : {1U, 2U, 10U, 100U, 20000U}) {
    conform([divisor](const Ops& ops, const Case& test, Arena& arena) {
      const auto x = arena.copy_of(test.x);
      if (x.empty()) {
        return;
      }
      const std::size_t k = (x.size() + divisor - 1) / divisor;
      const TopK top = ops.top_k(x, k);
      arena.record(top.threshold);
      arena.record(top.ties);
      ops.top_k_gather(x, top, arena.take<std::uint32_t>(k), arena.take<float>(k));
      // Room for all that is above the threshold, and for one less.
      const std::size_t above = k - top.ties;
      for (const std::size_t room : {k, above - std::min<std::size_t>(above, 1)}) {
        std::vector<std::uint32_t> indices(room);
        std::vector<float> values(room);
        const std::size_t found = ops.gather_above(x, top.threshold, indices, values);
        REQUIRE(found == above);
        const std::size_t held = std::min(found, room);
        arena.copy_of<std::uint32_t>(std::span<const std::uint32_t>(indices).first(held));
        arena.copy_of<float>(std::span<const float>(values).first(held));
      }
    });
  }
}

}  // namespace sotto::test::conformance_test
