#include <sotto/base/digest.h>

#include <array>

#include <sodium.h>

#include <sotto/base/check.h>

namespace sotto {
namespace {

const unsigned char* data_of(std::span<const std::byte> bytes) {
  return reinterpret_cast<const unsigned char*>(bytes.data());
}

}  // namespace

struct Sha256::State {
  crypto_hash_sha256_state sodium;
};

Sha256::Sha256() : state_(std::make_unique<State>()) {
  check(sodium_init() >= 0, "libsodium starts");
  crypto_hash_sha256_init(&state_->sodium);
}

Sha256::~Sha256() = default;

void Sha256::update(std::span<const std::byte> bytes) {
  crypto_hash_sha256_update(&state_->sodium, data_of(bytes), bytes.size());
}

std::string Sha256::finish_hex() {
  std::array<unsigned char, crypto_hash_sha256_BYTES> digest{};
  crypto_hash_sha256_final(&state_->sodium, digest.data());
  std::array<char, 2 * crypto_hash_sha256_BYTES + 1> hex{};
  sodium_bin2hex(hex.data(), hex.size(), digest.data(), digest.size());
  return {hex.data()};
}

std::string sha256_hex(std::span<const std::byte> bytes) {
  Sha256 digest;
  digest.update(bytes);
  return digest.finish_hex();
}

}  // namespace sotto
