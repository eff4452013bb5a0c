#include <sotto/base/secret_stream.h>

#include <cmath>
#include <numbers>

#include <sodium.h>

#include <sotto/base/bytes.h>
#include <sotto/base/check.h>

namespace sotto {

SecretKey SecretKey::fresh() {
  check(sodium_init() >= 0, "libsodium starts");
  SecretKey key;
  randombytes_buf(key.bytes_.data(), key.bytes_.size());
  return key;
}

SecretKey SecretKey::for_tests(std::uint64_t seed, Rank rank) {
  check(sodium_init() >= 0, "libsodium starts");
  ByteBuffer text;
  text.write(seed);
  text.write(rank);
  const auto bytes = text.bytes();
  SecretKey key;
  crypto_generichash(key.bytes_.data(), key.bytes_.size(),
                     reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), nullptr,
                     0);
  return key;
}

SecretKey::~SecretKey() { sodium_memzero(bytes_.data(), bytes_.size()); }

SecretStream::SecretStream(const SecretKey& key, SecretPurpose purpose, std::uint64_t index)
    : key_(key) {
  static_assert(sizeof(nonce_) == crypto_stream_xchacha20_NONCEBYTES);
  static_assert(sizeof(SecretKey) == crypto_stream_xchacha20_KEYBYTES);
  nonce_[0] = static_cast<unsigned char>(purpose);
  for (std::size_t i = 0; i < sizeof(index); ++i) {
    nonce_[1 + i] = static_cast<unsigned char>(index >> (8 * i));
  }
}

SecretStream::~SecretStream() {
  sodium_memzero(words_.data(), sizeof(words_));
  sodium_memzero(&spare_, sizeof(spare_));
}

void SecretStream::refill() {
  words_.fill(0);
  auto* bytes = reinterpret_cast<unsigned char*>(words_.data());
  crypto_stream_xchacha20_xor_ic(bytes, bytes, sizeof(words_), nonce_.data(), block_,
                                 key_.bytes_.data());
  block_ += sizeof(words_) / 64;
  at_ = 0;
}

std::uint64_t SecretStream::next_u64() {
  if (at_ == kWords) {
    refill();
  }
  return words_[at_++];
}

double SecretStream::normal() {
  if (has_spare_) {
    has_spare_ = false;
    return spare_;
  }
  const double radius = std::sqrt(-2.0 * std::log(1.0 - uniform()));
  const double angle = 2.0 * std::numbers::pi * uniform();
  spare_ = radius * std::sin(angle);
  has_spare_ = true;
  return radius * std::cos(angle);
}

}  // namespace sotto
