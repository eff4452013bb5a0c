// Every operation of host_ops(), on every instruction set, leaves the reference's bytes.
#include "kernels/conformance.h"

#include <limits>

using namespace sotto;
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
    ops.axpby(0.9F, x, -1.1F, y);
  });
}

TEST_CASE("elementwise operations work in place") {
  conform([](const Ops& ops, const Case& test, Arena& arena) {
    const auto same = arena.copy_of(test.x);
    ops.axpy(0.5F, same, same);
    ops.axpby(0.5F, same, -0.3F, same);
    ops.copy(same, same);
    const auto minuend = arena.copy_of(test.x);
    const auto subtrahend = arena.copy_of(test.y);
    ops.subtract(minuend, subtrahend, minuend);
    ops.subtract(minuend, subtrahend, subtrahend);
  });
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

TEST_CASE("half precision conforms") {
  conform([](const Ops& ops, const Case& test, Arena& arena) {
    const auto x = arena.copy_of(test.x);
    const auto fp16 = arena.take<std::uint16_t>(x.size());
    const auto bf16 = arena.take<std::uint16_t>(x.size());
    arena.record(ops.to_fp16(x, fp16));
    arena.record(ops.to_bf16(x, bf16));
    ops.fp16_axpy(0.3F, fp16, arena.copy_of(test.y));
    ops.bf16_axpy(-0.7F, bf16, arena.copy_of(test.y));
  });
}

TEST_CASE("half precision conforms on infinities, NaNs and random bits") {
  RandomStream stream({.seed = 6});
  std::vector<float> any(kLongest);
  std::ranges::generate(any, [&stream] { return std::bit_cast<float>(stream.next_u32()); });
  any[0] = std::numeric_limits<float>::infinity();
  any[1] = -std::numeric_limits<float>::infinity();
  conform_on({any, any, 0}, [](const Ops& ops, const Case& test, Arena& arena) {
    const auto half = arena.take<std::uint16_t>(test.x.size());
    arena.record(ops.to_fp16(test.x, half));
    ops.fp16_axpy(1.0F, half, arena.copy_of<float>(std::vector<float>(half.size())));
    arena.record(ops.to_bf16(test.x, half));
    ops.bf16_axpy(1.0F, half, arena.copy_of<float>(std::vector<float>(half.size())));
  });
}

TEST_CASE("signs conform") {
  conform([](const Ops& ops, const Case& test, Arena& arena) {
    const auto x = arena.copy_of(test.x);
    const auto signs = arena.take<std::byte>(packed_bytes(x.size(), 1));
    ops.sign_pack(x, signs);
    ops.sign_axpy(0.3F, signs, arena.copy_of(test.y));
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
