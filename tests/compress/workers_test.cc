// With workers every compressor does what it does without.
#include <atomic>
#include <memory>
#include <stdexcept>

#include <sotto/base/workers.h>

#include "cases.h"

namespace sotto::test::workers_test {

using namespace sotto_test;

namespace {

/// Long enough for shares, and no multiple of anything.
constexpr std::size_t kLong = 65536 * 5 + 4099;

struct Outcome {
  std::vector<std::byte> plain;
  std::vector<std::byte> made;  ///< piece by piece, in room that may be written again
  std::vector<std::byte> with_feedback;
  std::vector<float> residual;
  std::vector<float> mixed;
  std::vector<float> summed;
  std::size_t saturated = 0;

  bool operator==(const Outcome& other) const = default;
};

/// Two rounds, as encoders may remember the first.
Outcome outcome_of(const std::string& spec, const std::vector<float>& x, int threads) {
  const auto compressor = make_compressor(spec);
  if (threads > 0) {
    compressor->set_workers(std::make_shared<Workers>(threads));
  }
  Outcome result;
  result.residual.assign(x.size(), 0.25F);
  result.mixed = x;
  std::vector<float> room(x.size());
  for (Round round = 0; round < 2; ++round) {
    result.plain = encoded(*compressor, x, key_of(round));
    const auto put = [&](std::size_t first, std::span<float> piece) {
      std::ranges::copy(std::span(x).subspan(first, piece.size()), piece.begin());
      return true;
    };
    result.made.resize(compressor->max_bytes(x.size()));
    result.made.resize(*compressor->encode_prepared(
        {.make = put, .reads = {x}, .residual = false, .add_to = result.mixed}, room, key_of(round),
        result.made));
    CHECK(result.made == result.plain);
    const auto add = [&](std::size_t first, std::span<float> piece) {
      host_ops().axpy(1, std::span(x).subspan(first, piece.size()), piece);
      return true;
    };
    result.with_feedback.resize(compressor->max_bytes(x.size()));
    result.with_feedback.resize(*compressor->encode_prepared({add, {x}}, result.residual,
                                                             key_of(round), result.with_feedback));
    result.saturated += compressor->saturated();
    REQUIRE(compressor->decode_add(result.with_feedback, 0.3F, result.mixed).ok());
    result.summed.resize(x.size());
    const auto visit = [&](std::size_t first, std::span<const float> piece) {
      std::ranges::copy(piece, result.summed.begin() + static_cast<std::ptrdiff_t>(first));
    };
    const std::array<Compressor::Term, 2> terms = {
        {{result.plain, 0.3F}, {result.with_feedback, 0.7F}}};
    std::vector<float> scratch(x.size());
    std::size_t refused = 0;
    REQUIRE(compressor->decode_sum(terms, scratch, visit, refused).ok());
  }
  return result;
}

}  // namespace

TEST_CASE("any number of threads gives the same bytes") {
  const auto x = gaussian(kLong);
  for (const std::string& spec : all_specs()) {
    CAPTURE(spec);
    const Outcome alone = outcome_of(spec, x, 0);
    for (const int threads : {1, 2, 3, 7}) {
      CAPTURE(threads);
      CHECK(outcome_of(spec, x, threads) == alone);
    }
  }
}

TEST_CASE("what a thread throws while it makes a vector reaches the caller") {
  for (const std::string& spec : all_specs()) {
    CAPTURE(spec);
    const auto compressor = make_compressor(spec);
    compressor->set_workers(std::make_shared<Workers>(3));
    std::vector<float> v(kLong, 1.0F);
    std::vector<std::byte> out(compressor->max_bytes(kLong));
    const auto fail = [&](std::size_t first, std::span<float> piece) {
      if (first + piece.size() == kLong) {
        throw std::runtime_error("the last piece");
      }
      return true;
    };
    CHECK_THROWS_WITH(compressor->encode_prepared({fail}, v, key_of(1), out), "the last piece");
    const auto stop = [&](std::size_t first, std::span<float> piece) {
      return first + piece.size() < kLong;
    };
    CHECK_FALSE(compressor->encode_prepared({stop}, v, key_of(1), out).has_value());
    v.assign(kLong, 1.0F);
    CHECK(compressor->encode(v, key_of(1), out) <= out.size());
  }
}

TEST_CASE("what is malformed is refused by threads too, and leaves y untouched") {
  for (const char* spec : {"none", "fp16", "bf16"}) {
    CAPTURE(spec);
    const auto compressor = make_compressor(spec);
    auto bytes = encoded(*compressor, gaussian(kLong), key_of(1));
    std::fill(bytes.end() - 4, bytes.end(), std::byte{0xFF});
    const auto before = gaussian(kLong, 1, 2);
    std::string message;
    for (const int threads : {1, 2, 3, 7}) {
      compressor->set_workers(std::make_shared<Workers>(threads));
      auto y = before;
      const Status status = compressor->decode_add(bytes, 1, y);
      CHECK(status.fault() == Fault::non_finite);
      CHECK(same_bits(y, before));
      CHECK((message.empty() || message == status.message()));
      message = status.message();
    }
  }
}

TEST_CASE("a clone works alone and alike") {
  const auto x = gaussian(kLong);
  const auto compressor = make_compressor("quant:4");
  compressor->set_workers(std::make_shared<Workers>(2));
  CHECK(encoded(*compressor->clone(), x, key_of(1)) == encoded(*compressor, x, key_of(1)));
}

}  // namespace sotto::test::workers_test
