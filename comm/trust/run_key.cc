#include <sotto/comm/trust/run_key.h>

#include <sodium.h>

#include <fmt/format.h>

#include <sotto/base/check.h>

namespace sotto {

RunKey RunKey::open() {
  const std::array<std::byte, kKeyBytes> nothing{};
  return {PrivateKey(nothing), true};
}

PrivateKey RunKey::derived(std::string_view purpose) const {
  static_assert(kKeyBytes >= crypto_generichash_KEYBYTES_MIN &&
                kKeyBytes <= crypto_generichash_KEYBYTES_MAX);
  std::array<std::byte, kKeyBytes> bytes{};
  const auto secret = secret_.bytes();
  check(
      crypto_generichash(reinterpret_cast<unsigned char*>(bytes.data()), bytes.size(),
                         reinterpret_cast<const unsigned char*>(purpose.data()), purpose.size(),
                         reinterpret_cast<const unsigned char*>(secret.data()), secret.size()) == 0,
      "a key is derived");
  PrivateKey made{std::span<const std::byte, kKeyBytes>(bytes)};
  sodium_memzero(bytes.data(), bytes.size());
  return made;
}

KeyPair RunKey::node_keys(std::string_view name) const {
  const PrivateKey secret = derived(fmt::format("sotto node {}", name));
  return {secret.public_key(), secret};
}

}  // namespace sotto
