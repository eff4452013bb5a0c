#include <sotto/comm/trust/keys.h>

#include <algorithm>
#include <cstring>
#include <new>

#include <sodium.h>

#include <sotto/base/check.h>

#include "../internal/z85.h"

namespace sotto {
namespace {

static_assert(kKeyBytes == crypto_box_PUBLICKEYBYTES);
static_assert(kKeyBytes == crypto_box_SECRETKEYBYTES);

const unsigned char* raw(std::span<const std::byte> bytes) {
  return reinterpret_cast<const unsigned char*>(bytes.data());
}

}  // namespace

PublicKey::PublicKey(std::span<const std::byte, kKeyBytes> bytes) {
  std::copy(bytes.begin(), bytes.end(), bytes_.begin());
}

std::optional<PublicKey> PublicKey::parse(std::string_view text) {
  std::array<std::byte, kKeyBytes> bytes{};
  if (!internal::read_z85(text, bytes)) {
    return std::nullopt;
  }
  return PublicKey(bytes);
}

std::string PublicKey::text() const { return internal::z85(bytes_); }

bool PublicKey::sound() const {
  std::array<unsigned char, kKeyBytes> any{};
  std::array<unsigned char, kKeyBytes> shared{};
  any.fill(1);
  return crypto_scalarmult(shared.data(), any.data(), raw(bytes_)) == 0;
}

PrivateKey::PrivateKey(std::span<const std::byte, kKeyBytes> bytes) {
  check(sodium_init() >= 0, "libsodium starts");
  auto* memory = static_cast<std::byte*>(sodium_malloc(kKeyBytes));  // wiped by sodium_free
  if (memory == nullptr) {
    throw std::bad_alloc();
  }
  std::memcpy(memory, bytes.data(), kKeyBytes);
  memory_ = {memory, [](const std::byte* held) { sodium_free(const_cast<std::byte*>(held)); }};
}

PublicKey PrivateKey::public_key() const {
  std::array<std::byte, kKeyBytes> made{};
  check(crypto_scalarmult_base(reinterpret_cast<unsigned char*>(made.data()), raw(bytes())) == 0,
        "a secret key has a public one");
  return PublicKey(made);
}

KeyPair make_key_pair() {
  check(sodium_init() >= 0, "libsodium starts");
  std::array<std::byte, kKeyBytes> bytes{};
  randombytes_buf(bytes.data(), bytes.size());
  PrivateKey secret(bytes);
  sodium_memzero(bytes.data(), bytes.size());
  return {secret.public_key(), secret};
}

}  // namespace sotto
