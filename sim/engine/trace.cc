#include "trace.h"

#include <span>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace sotto {

void TraceHash::flush() {
  XXH128_canonical_t digest;
  XXH128_canonicalFromHash(&digest, XXH3_128bits(entries_.data(), used_ * sizeof(Entry)));
  digest_.update(std::as_bytes(std::span(digest.digest)));
  used_ = 0;
}

std::string TraceHash::finish_hex() {
  flush();
  return digest_.finish_hex();
}

}  // namespace sotto
