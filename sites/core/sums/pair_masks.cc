#include <sotto/sites/core/sums/pair_masks.h>

#include <sodium.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace sotto::sites {
namespace {

// What a keyed hash is for; no two purposes have words of the same number or first word.
constexpr std::uint64_t kForShared = 1;
constexpr std::uint64_t kForTag = 2;
constexpr std::uint64_t kForMask = 3;

template <std::size_t N>
Secret32 keyed_hash(const Bytes32& key, const std::array<std::uint64_t, N>& words) {
  Secret32 out;
  crypto_generichash(out.data(), out.size(), reinterpret_cast<const unsigned char*>(words.data()),
                     sizeof words, key.data(), key.size());
  return out;
}

}  // namespace

MaskKeys::MaskKeys(const Bytes32& secret) : secret_(secret) {
  crypto_scalarmult_base(public_.data(), secret_.data());
}

std::optional<Secret32> MaskKeys::shared_with(std::uint64_t own, std::uint64_t other,
                                              const Bytes32& peer) const {
  Secret32 point;
  if (crypto_scalarmult(point.data(), secret_.data(), peer.data()) != 0) {
    return std::nullopt;
  }
  // In the order of the sites, which is the same at both.
  std::array<std::uint64_t, 3 + 2 * sizeof(Bytes32) / sizeof(std::uint64_t)> words{};
  words[0] = kForShared;
  words[1] = std::min(own, other);
  words[2] = std::max(own, other);
  const bool first = own < other;
  std::memcpy(&words[3], (first ? public_ : peer).data(), sizeof(Bytes32));
  std::memcpy(&words[7], (first ? peer : public_).data(), sizeof(Bytes32));
  return keyed_hash(point, words);
}

std::uint64_t tag_of(const Bytes32& shared) {
  const Secret32 hash = keyed_hash(shared, std::array{kForTag});
  std::uint64_t tag = 0;
  std::memcpy(&tag, hash.data(), sizeof tag);
  return std::max<std::uint64_t>(tag, 1);
}

Secret32 mask_seed(const Bytes32& shared, std::uint64_t receiver, std::uint64_t round) {
  return keyed_hash(shared, std::array{kForMask, receiver, round});
}

Bytes32 commitment(const Bytes32& seed) {
  Bytes32 out;
  crypto_generichash(out.data(), out.size(), seed.data(), seed.size(), nullptr, 0);
  return out;
}

void add_mask(const Bytes32& seed, bool subtract, std::span<std::uint32_t> words) {
  constexpr std::size_t kPiece = 4096;
  constexpr std::size_t kBlock = 64;  // bytes that ChaCha20 makes at a time
  std::array<std::uint32_t, kPiece> mask{};
  const std::array<unsigned char, crypto_stream_chacha20_NONCEBYTES> nonce{};
  for (std::size_t at = 0; at < words.size(); at += kPiece) {
    const std::size_t count = std::min(kPiece, words.size() - at);
    std::fill_n(mask.begin(), count, 0U);
    auto* const bytes = reinterpret_cast<unsigned char*>(mask.data());
    crypto_stream_chacha20_xor_ic(bytes, bytes, count * sizeof(std::uint32_t), nonce.data(),
                                  at * sizeof(std::uint32_t) / kBlock, seed.data());
    for (std::size_t k = 0; k < count; ++k) {
      words[at + k] += subtract ? std::uint32_t{0} - mask[k] : mask[k];
    }
  }
  sodium_memzero(mask.data(), std::min(kPiece, words.size()) * sizeof(std::uint32_t));
}

}  // namespace sotto::sites
