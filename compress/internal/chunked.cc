#include "chunked.h"

#include "chunks.h"
#include "shares.h"

namespace sotto::internal {
namespace {

/// A sum of this length and what is done with it stay in the innermost cache.
constexpr std::size_t kPiece = 4096;

/// Pieces begin where `add` can.
std::size_t piece_length(std::size_t chunk, std::size_t elements) {
  if (chunk >= elements || chunk % kPiece == 0) {
    return kPiece;
  }
  return chunk < kPiece ? kPiece / chunk * chunk : chunk;
}

}  // namespace

Status ChunkedCompressor::decode_add(std::span<const std::byte> bytes, float scale,
                                     std::span<float> y) const {
  if (Status status = verify(bytes, y.size()); !status.ok()) {
    return status;
  }
  const Chunks pieces(y.size(), piece_length(chunk_length(y.size()), y.size()), 1);
  Shares(workers(), pieces.count(), y.size())
      .each([&](std::size_t /*share*/, std::size_t begin, std::size_t end) {
        const std::size_t first = pieces.end(begin);
        add(bytes, y.size(), first, scale, y.subspan(first, pieces.end(end) - first));
      });
  return {};
}

Status ChunkedCompressor::decode_sum(std::span<const Term> terms, std::span<float> scratch,
                                     const Visitor& visit, std::size_t& refused) const {
  for (refused = 0; refused < terms.size(); ++refused) {
    if (Status status = verify(terms[refused].bytes, scratch.size()); !status.ok()) {
      return status;
    }
  }
  const std::size_t elements = scratch.size();
  const Chunks pieces(elements, piece_length(chunk_length(elements), elements), 1);
  Shares(workers(), pieces.count(), elements)
      .each([&](std::size_t /*share*/, std::size_t begin, std::size_t end) {
        // Always the same memory, which stays in the cache.
        const auto room = scratch.subspan(pieces.end(begin));
        for (std::size_t i = begin; i < end; ++i) {
          const auto sum = room.first(pieces.size(i));
          ops_.fill(0, sum);
          for (const Term& term : terms) {
            add(term.bytes, elements, pieces.first(i), term.scale, sum);
          }
          visit(pieces.first(i), sum);
        }
      });
  return {};
}

}  // namespace sotto::internal
