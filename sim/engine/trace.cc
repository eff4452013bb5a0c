#include "trace.h"

#include <span>

#include <xxhash.h>

namespace sotto {
namespace {

std::byte* put(std::byte* at, std::uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) {
    *at++ = static_cast<std::byte>(value >> (8 * i));
  }
  return at;
}

}  // namespace

void TraceHash::add(const TraceEntry& entry) {
  std::byte* at = buffer_.data() + used_;
  at = put(at, static_cast<std::uint64_t>(entry.time), 8);
  at = put(at, static_cast<std::uint64_t>(entry.kind), 4);
  at = put(at, static_cast<std::uint32_t>(entry.node), 4);
  at = put(at, static_cast<std::uint32_t>(entry.peer), 4);
  at = put(at, 0, 4);
  put(at, entry.bytes, 8);
  used_ += kEntry;
  if (used_ == buffer_.size()) {
    flush();
  }
}

void TraceHash::flush() {
  XXH128_canonical_t digest;
  XXH128_canonicalFromHash(&digest, XXH3_128bits(buffer_.data(), used_));
  digest_.update(std::as_bytes(std::span(digest.digest)));
  used_ = 0;
}

std::string TraceHash::finish_hex() {
  flush();
  return digest_.finish_hex();
}

}  // namespace sotto
