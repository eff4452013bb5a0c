#include <sotto/base/xxh3.h>

#include <array>

#ifdef SOTTO_HAVE_XXHASH_DISPATCH
// Chooses at run time: what is compiled here has the vectors that any x86-64 has, which are slower
// than copying.
#define XXH_DISPATCH_DISABLE_REPLACE
#include <xxh_x86dispatch.h>
#else
#define XXH_INLINE_ALL
#include <xxhash.h>
#endif

namespace sotto {
#ifdef SOTTO_HAVE_XXHASH_DISPATCH
namespace {

// The dispatcher chooses at its first long input, without a thought of other threads: here there
// is one.
[[maybe_unused]] const XXH64_hash_t kChosen = [] {
  constexpr std::array<std::byte, 4096> kLong{};
  return XXH3_64bits_withSeed_dispatch(kLong.data(), kLong.size(), 0);
}();

}  // namespace
#endif

std::uint64_t xxh3(std::span<const std::byte> bytes, std::uint64_t seed) {
#ifdef SOTTO_HAVE_XXHASH_DISPATCH
  return XXH3_64bits_withSeed_dispatch(bytes.data(), bytes.size(), seed);
#else
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
#endif
}

std::array<std::uint64_t, 2> xxh3_128(std::span<const std::byte> bytes, std::uint64_t seed) {
#ifdef SOTTO_HAVE_XXHASH_DISPATCH
  const XXH128_hash_t hash = XXH3_128bits_withSeed_dispatch(bytes.data(), bytes.size(), seed);
#else
  const XXH128_hash_t hash = XXH3_128bits_withSeed(bytes.data(), bytes.size(), seed);
#endif
  return {hash.low64, hash.high64};
}

}  // namespace sotto
