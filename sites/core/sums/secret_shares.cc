#include <sotto/sites/core/sums/secret_shares.h>

#include <sodium.h>

#include <algorithm>
#include <cstring>

#include <sotto/base/check.h>

namespace sotto::sites {
namespace {

static_assert(sizeof(Bytes32) == crypto_core_ristretto255_SCALARBYTES);

Secret32 scalar_of(std::uint64_t number) {
  Secret32 scalar;
  std::memcpy(scalar.data(), &number, sizeof number);
  return scalar;
}

Secret32 product(const Bytes32& x, const Bytes32& y) {
  Secret32 out;
  crypto_core_ristretto255_scalar_mul(out.data(), x.data(), y.data());
  return out;
}

Secret32 sum(const Bytes32& x, const Bytes32& y) {
  Secret32 out;
  crypto_core_ristretto255_scalar_add(out.data(), x.data(), y.data());
  return out;
}

Secret32 difference(const Bytes32& x, const Bytes32& y) {
  Secret32 out;
  crypto_core_ristretto255_scalar_sub(out.data(), x.data(), y.data());
  return out;
}

/// Whether this is how the field's operations write the number: below the order.
bool reduced(const Bytes32& scalar) { return sum(scalar, Bytes32{}) == scalar; }

/// Horner's rule.
Secret32 polynomial_at(const Bytes32& constant, std::span<const Secret32> coefficients,
                       const Bytes32& point) {
  Secret32 value;
  for (std::size_t power = coefficients.size(); power-- > 0;) {
    value = product(sum(value, coefficients[power]), point);
  }
  return sum(value, constant);
}

}  // namespace

Secret32::~Secret32() { sodium_memzero(data(), size()); }

Secret32 derived_scalar(const Bytes32& key, std::span<const std::uint64_t> words) {
  std::array<unsigned char, crypto_core_ristretto255_NONREDUCEDSCALARBYTES> wide{};
  crypto_generichash(wide.data(), wide.size(), reinterpret_cast<const unsigned char*>(words.data()),
                     words.size_bytes(), key.data(), key.size());
  Secret32 scalar;
  crypto_core_ristretto255_scalar_reduce(scalar.data(), wide.data());
  sodium_memzero(wide.data(), wide.size());
  return scalar;
}

std::vector<SecretShare> split_secret(const Bytes32& secret, std::span<const Secret32> coefficients,
                                      std::span<const std::uint64_t> points) {
  std::vector<SecretShare> shares;
  shares.reserve(points.size());
  for (const std::uint64_t point : points) {
    check(point != 0, "the polynomial at 0 is the secret itself");
    shares.push_back({point, polynomial_at(secret, coefficients, scalar_of(point))});
  }
  return shares;
}

std::optional<Secret32> join_secret(std::span<const SecretShare> shares) {
  Secret32 secret;
  for (const SecretShare& share : shares) {
    if (!reduced(share.value)) {
      return std::nullopt;
    }
    // Lagrange's polynomial of this point at 0.
    Secret32 above = scalar_of(1);
    Secret32 below = scalar_of(1);
    const Bytes32 own = scalar_of(share.point);
    for (const SecretShare& other : shares) {
      if (other.point != share.point) {
        const Bytes32 there = scalar_of(other.point);
        above = product(above, there);
        below = product(below, difference(there, own));
      }
    }
    Secret32 inverse;
    check(crypto_core_ristretto255_scalar_invert(inverse.data(), below.data()) == 0,
          "points differ from each other");
    secret = sum(secret, product(share.value, product(above, inverse)));
  }
  return secret;
}

}  // namespace sotto::sites
