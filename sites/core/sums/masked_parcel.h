// The payload of a parcel of a secure sum: what stands in front of its masked words.
//
// Round u64, number of other members u16; for each its id u64, the tag of the pair u64 (0: no mask)
// and a share of 32 bytes; a commitment of 32 bytes; d + 4 words, of which the last four show
// whether a sum adds up.
//
// A building block of SecureSum, not for users. Pure functions and plain values. Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <sotto/base/bytes.h>
#include <sotto/base/ids.h>
#include <sotto/base/status.h>
#include <sotto/sites/core/parcel_stream.h>
#include <sotto/sites/core/sums/secret_shares.h>

namespace sotto::sites {

/// Words of a parcel besides those of the model: each is 1 before it is masked.
inline constexpr std::size_t kSentinels = 4;

/// What stands in front of the masked words.
struct MaskedHeader {
  /// What a parcel says about another member.
  struct Entry {
    std::uint64_t id = 0;
    std::uint64_t tag = 0;
    Secret32 share{};
  };

  Round round = 0;
  std::vector<Entry> entries;  ///< by id, ascending
  Bytes32 commitment{};        ///< that of the sender's own mask

  /// The entry about the site with this id; null: there is none.
  const Entry* about(std::uint64_t id) const;
  /// The tag of the sender's mask with this site; 0: there is no such mask.
  std::uint64_t tag_with(std::uint64_t id) const;
};

/// The longest payload with that many words.
std::size_t max_masked_bytes(std::size_t words);
/// Fault::malformed for what masked_payload cannot have made of that many words.
Status check_masked(std::span<const std::byte> payload, std::size_t words);
/// Reads what stands in front of the words; no value: it ends early, or has too many entries.
std::optional<MaskedHeader> read_masked_header(ByteReader& in);
/// The payload.
Payload masked_payload(const MaskedHeader& header, std::span<const std::uint32_t> words);

}  // namespace sotto::sites
