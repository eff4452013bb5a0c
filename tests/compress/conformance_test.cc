// What every compressor must do, whatever its contract.
#include "cases.h"

namespace sotto::test::conformance_test {

using namespace sotto_test;

namespace {

template <typename Visit>
void for_each_case(Visit&& visit) {
  for (const std::string& spec : all_specs()) {
    CAPTURE(spec);
    const auto compressor = make_compressor(spec);
    for (const std::size_t n : kLengths) {
      CAPTURE(n);
      for (const NamedVector& vector : vectors(n)) {
        CAPTURE(vector.name);
        visit(*compressor, vector.values);
      }
    }
  }
}

}  // namespace

TEST_CASE("what is encoded fits max_bytes and decodes to finite values") {
  for_each_case([](Compressor& compressor, const std::vector<float>& x) {
    const auto bytes = encoded(compressor, x, key_of(1));
    CHECK(compressor.saturated() <= x.size());
    CHECK(all_finite(decoded(compressor, bytes, x.size())));
  });
}

TEST_CASE("equal inputs give equal bytes, also from a clone and from the reference kernels") {
  for_each_case([](Compressor& compressor, const std::vector<float>& x) {
    const auto bytes = encoded(compressor, x, key_of(1));
    CHECK(encoded(compressor, x, key_of(1)) == bytes);
    CHECK(encoded(*compressor.clone(), x, key_of(1)) == bytes);
    const auto reference = make_compressor(compressor.spec(), ContractKind::any, reference_ops());
    CHECK(encoded(*reference, x, key_of(1)) == bytes);
    CHECK(same_bits(decoded(*reference, bytes, x.size()), decoded(compressor, bytes, x.size())));
  });
}

TEST_CASE("decode_add is decoding, scaling and adding, bit for bit") {
  for (const std::string& spec : all_specs()) {
    CAPTURE(spec);
    const auto compressor = make_compressor(spec);
    for (const std::size_t n : kLengths) {
      CAPTURE(n);
      const auto bytes = encoded(*compressor, gaussian(n), key_of(2));
      const auto c = decoded(*compressor, bytes, n);
      for (const float scale : {1.0F, -1.0F, 1.0F / 3.0F, 0.0F, 17.3F}) {
        CAPTURE(scale);
        const auto start = uniform(n, 5.0);
        std::vector<float> expected = start;
        for (std::size_t i = 0; i < n; ++i) {
          const float product = scale * c[i];
          expected[i] = start[i] + product;
        }
        std::vector<float> y = start;
        REQUIRE(compressor->decode_add(bytes, scale, y).ok());
        CHECK(same_bits(y, expected));
      }
    }
  }
}

TEST_CASE(
    "decode_sum is decode_add of each term onto zeros, bit for bit, in pieces that cover it") {
  for (const std::string& spec : all_specs()) {
    CAPTURE(spec);
    const auto compressor = make_compressor(spec);
    for (const std::size_t n : {std::size_t{0}, std::size_t{1}, std::size_t{1000},
                                std::size_t{4096}, std::size_t{9001}, std::size_t{40000}}) {
      CAPTURE(n);
      std::vector<std::vector<std::byte>> encodings;
      std::vector<Compressor::Term> terms;
      std::vector<float> expected(n, 0.0F);
      for (const float scale : {1.0F, -0.625F, 1.0F / 3.0F}) {
        encodings.push_back(encoded(*compressor, gaussian(n), key_of(encodings.size())));
        REQUIRE(compressor->decode_add(encodings.back(), scale, expected).ok());
        terms.push_back({.bytes = {}, .scale = scale});
      }
      for (std::size_t k = 0; k < terms.size(); ++k) {
        terms[k].bytes = encodings[k];
      }
      std::vector<float> scratch(n, std::numeric_limits<float>::quiet_NaN());
      std::vector<float> sum(n, std::numeric_limits<float>::quiet_NaN());
      std::size_t visited = 0;
      const auto visit = [&](std::size_t first, std::span<const float> piece) {
        CHECK(first == visited);
        visited += piece.size();
        std::ranges::copy(piece, sum.begin() + static_cast<std::ptrdiff_t>(first));
      };
      std::size_t refused = 0;
      REQUIRE(compressor->decode_sum(terms, scratch, visit, refused).ok());
      CHECK(visited == n);
      CHECK(same_bits(sum, expected));

      encodings[1].push_back(std::byte{1});
      terms[1].bytes = encodings[1];
      visited = 0;
      CHECK_FALSE(compressor->decode_sum(terms, scratch, visit, refused).ok());
      CHECK(refused == 1);
      CHECK(visited == 0);
    }
  }
}

TEST_CASE("encode_residual is encode followed by subtracting what was sent, bit for bit") {
  for_each_case([](Compressor& compressor, const std::vector<float>& x) {
    const auto bytes = encoded(compressor, x, key_of(3));
    std::vector<float> expected = x;
    REQUIRE(compressor.decode_add(bytes, -1.0F, expected).ok());
    std::vector<float> v = x;
    std::vector<std::byte> out(compressor.max_bytes(x.size()));
    const std::size_t used = compressor.encode_residual(v, key_of(3), out);
    CHECK(std::ranges::equal(std::span(out).first(used), bytes));
    CHECK(same_bits(v, expected));
  });
}

TEST_CASE("what is prepared piece by piece is what is encoded, and may be called off") {
  for_each_case([](Compressor& compressor, const std::vector<float>& x) {
    const auto bytes = encoded(compressor, x, key_of(3));
    std::vector<float> expected = x;
    REQUIRE(compressor.decode_add(bytes, -1.0F, expected).ok());
    std::vector<float> v(x.size(), std::numeric_limits<float>::quiet_NaN());
    std::vector<std::byte> out(compressor.max_bytes(x.size()));
    std::size_t prepared = 0;
    const auto prepare = [&](std::size_t first, std::span<float> piece) {
      CHECK(first == prepared);
      prepared += piece.size();
      std::ranges::copy(std::span(x).subspan(first, piece.size()), piece.begin());
      return true;
    };
    const auto used = compressor.encode_prepared({prepare, {x}}, v, key_of(3), out);
    REQUIRE(used.has_value());
    CHECK(prepared == x.size());
    CHECK(std::ranges::equal(std::span(out).first(*used), bytes));
    CHECK(same_bits(v, expected));

    ByteBuffer before;
    compressor.save(before);
    const auto stop = [&](std::size_t first, std::span<float> piece) {
      return first + piece.size() < x.size();
    };
    if (!x.empty()) {
      v = x;
      CHECK_FALSE(compressor.encode_prepared({stop}, v, key_of(4), out).has_value());
    }
    ByteBuffer after;
    compressor.save(after);
    CHECK(std::move(before).take() == std::move(after).take());
  });
}

TEST_CASE("what is encoded is added to a vector from which it is made, bit for bit") {
  for_each_case([](Compressor& compressor, const std::vector<float>& x) {
    const auto bytes = encoded(compressor, x, key_of(3));
    for (const bool residual : {false, true}) {
      CAPTURE(residual);
      // As DCD has it: a movement from a model that then moves by what was sent of it.
      std::vector<float> model = x;
      std::vector<float> expected = x;
      REQUIRE(compressor.decode_add(bytes, 1, expected).ok());
      std::vector<float> v(x.size());
      std::vector<std::byte> out(compressor.max_bytes(x.size()));
      const auto make = [&](std::size_t first, std::span<float> piece) {
        std::ranges::copy(std::span(model).subspan(first, piece.size()), piece.begin());
        return true;
      };
      const auto used = compressor.encode_prepared(
          {.make = make, .reads = {model}, .residual = residual, .add_to = model}, v, key_of(3),
          out);
      REQUIRE(used.has_value());
      CHECK(std::ranges::equal(std::span(out).first(*used), bytes));
      CHECK(same_bits(model, expected));
    }
  });
}

TEST_CASE("payloads may start at any address") {
  for (const std::string& spec : all_specs()) {
    CAPTURE(spec);
    const auto compressor = make_compressor(spec);
    const auto x = gaussian(1000);
    const auto bytes = encoded(*compressor, x, key_of(4));
    const auto expected = decoded(*compressor, bytes, x.size());
    for (std::size_t offset = 1; offset < 8; ++offset) {
      std::vector<std::byte> moved(offset + compressor->max_bytes(x.size()));
      const std::size_t used = compressor->encode(x, key_of(4), std::span(moved).subspan(offset));
      const auto view = std::span<const std::byte>(moved).subspan(offset, used);
      CHECK(std::ranges::equal(view, bytes));
      CHECK(same_bits(decoded(*compressor, view, x.size()), expected));
    }
  }
}

}  // namespace sotto::test::conformance_test
