#include <sotto/compress/error_feedback.h>

#include "cases.h"

namespace sotto::test::error_feedback_test {

using namespace sotto_test;

TEST_CASE("what goes in is what came out plus the residual") {
  for (const std::string& spec : all_specs()) {
    CAPTURE(spec);
    constexpr std::size_t n = 200;
    if (!make_compressor(spec, ContractKind::contraction)
             ->contract(n)
             .meets(ContractKind::contraction)) {
      continue;
    }
    ErrorFeedback feedback(make_compressor(spec, ContractKind::contraction), n, host_ops());
    std::vector<std::byte> out(feedback.compressor().max_bytes(n));
    std::vector<double> sent_in(n);
    std::vector<double> came_out(n);
    for (Round round = 0; round < 50; ++round) {
      const auto x = gaussian(n, 1.0, round);
      const std::size_t used = feedback.encode(x, key_of(round), out);
      const auto c = decoded(feedback.compressor(), std::span(out).first(used), n);
      for (std::size_t i = 0; i < n; ++i) {
        sent_in[i] += static_cast<double>(x[i]);
        came_out[i] += static_cast<double>(c[i]);
      }
    }
    double worst = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const double left = static_cast<double>(feedback.residual()[i]);
      worst = std::max(worst, std::abs(sent_in[i] - came_out[i] - left));
    }
    // Two float32 roundings a round, of sums that stay below a few hundred.
    CHECK(worst <= 50 * 2 * 256 * 0x1p-24);
  }
}

TEST_CASE("the residual stays within what the contraction allows") {
  for (const std::string& spec : all_specs()) {
    CAPTURE(spec);
    constexpr std::size_t n = 64;
    const auto compressor = make_compressor(spec, ContractKind::contraction);
    const double delta = compressor->contract(n).delta;
    // Random-k contracts in expectation only, so a single path may pass the bound.
    if (delta == 0 || spec.starts_with("randk")) {
      continue;
    }
    ErrorFeedback feedback(compressor->clone(), n, host_ops());
    std::vector<std::byte> out(compressor->max_bytes(n));
    double largest_input = 0;
    double largest_residual = 0;
    for (Round round = 0; round < 1000; ++round) {
      const auto x = gaussian(n, 1.0, round);
      feedback.encode(x, key_of(round), out);
      largest_input = std::max(largest_input, std::sqrt(squared_norm(x)));
      largest_residual = std::max(largest_residual, std::sqrt(squared_norm(feedback.residual())));
    }
    // ‖e‖ ≤ q (‖e‖ + ‖x‖) with q² = 1 − δ.
    const double q = std::sqrt(1 - delta);
    CHECK(largest_residual <= q / (1 - q) * largest_input * (1 + 1e-5));
  }
}

TEST_CASE("random-k's residual stays bounded over a thousand rounds") {
  constexpr std::size_t n = 64;
  ErrorFeedback feedback(make_compressor("randk:0.25", ContractKind::contraction), n, host_ops());
  std::vector<std::byte> out(feedback.compressor().max_bytes(n));
  double mean = 0;
  for (Round round = 0; round < 1000; ++round) {
    feedback.encode(gaussian(n, 1.0, round), key_of(round), out);
    mean += squared_norm(feedback.residual()) / 1000;
  }
  // In the long run E e² = (1 − k/d)(E e² + 1) an element: E e² = (d − k)/k = 3.
  CHECK(mean == doctest::Approx(3.0 * n).epsilon(0.1));
}

TEST_CASE("a residual that is put back continues where it was taken") {
  constexpr std::size_t n = 300;
  ErrorFeedback first(make_compressor("sign"), n, host_ops());
  ErrorFeedback second(make_compressor("sign"), n, host_ops());
  std::vector<std::byte> out(first.compressor().max_bytes(n));
  first.encode(gaussian(n), key_of(0), out);
  std::ranges::copy(first.residual(), second.residual().begin());
  std::vector<std::byte> other(out.size());
  CHECK(first.encode(gaussian(n, 1, 1), key_of(1), out) ==
        second.encode(gaussian(n, 1, 1), key_of(1), other));
  CHECK(out == other);
  CHECK(same_bits(first.residual(), second.residual()));
}

}  // namespace sotto::test::error_feedback_test
