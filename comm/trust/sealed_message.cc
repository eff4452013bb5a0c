#include <sotto/comm/trust/sealed_message.h>

#include <sodium.h>

#include <sotto/base/check.h>

namespace sotto {
namespace {

constexpr std::size_t kNonceBytes = crypto_aead_xchacha20poly1305_ietf_NPUBBYTES;
static_assert(kSealBytes == kNonceBytes + crypto_aead_xchacha20poly1305_ietf_ABYTES);

const unsigned char* sealed_bytes(std::span<const std::byte> bytes) {
  return reinterpret_cast<const unsigned char*>(bytes.data());
}

}  // namespace

std::vector<std::byte> seal_message(std::span<const std::byte> message, const PrivateKey& key) {
  check(sodium_init() >= 0, "libsodium starts");
  std::vector<std::byte> sealed(message.size() + kSealBytes);
  auto* const out = reinterpret_cast<unsigned char*>(sealed.data());
  randombytes_buf(out, kNonceBytes);
  unsigned long long length = 0;
  (void)crypto_aead_xchacha20poly1305_ietf_encrypt(out + kNonceBytes, &length,
                                                   sealed_bytes(message), message.size(), nullptr,
                                                   0, nullptr, out, sealed_bytes(key.bytes()));
  return sealed;
}

std::optional<std::vector<std::byte>> open_message(std::span<const std::byte> sealed,
                                                   const PrivateKey& key) {
  if (sealed.size() < kSealBytes) {
    return std::nullopt;
  }
  check(sodium_init() >= 0, "libsodium starts");
  std::vector<std::byte> message(sealed.size() - kSealBytes);
  unsigned long long length = 0;
  const int opens = crypto_aead_xchacha20poly1305_ietf_decrypt(
      reinterpret_cast<unsigned char*>(message.data()), &length, nullptr,
      sealed_bytes(sealed) + kNonceBytes, sealed.size() - kNonceBytes, nullptr, 0,
      sealed_bytes(sealed), sealed_bytes(key.bytes()));
  return opens == 0 ? std::optional(std::move(message)) : std::nullopt;
}

}  // namespace sotto
