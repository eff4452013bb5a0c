// What the rosters of two nodes say to each other. Little-endian; one message is one datagram of at
// most kMostRosterBytes, and understood by itself, as datagrams are lost and come in any order.
//
// After its kind and the protocol, u8 each, each message has the run u64: a digest of what its
// nodes must agree on. One of another run is not believed. Then follow
//
//   probe    1, nonce u64, digest 2 × u64, flags u8 (1: wishes an edge with the
//            receiver, 2: takes one, 4: had forgotten the receiver), has entry u8, the sender's
//            entry if it has one
//   answer   2, and the same, with the nonce of the probe, and a ticket u64 behind the flags
//   marks    3, ticket u64 of the answer that they follow, flags u8 (1: wants the
//            receiver's in return), first u64, last u64, number u16, of each: key u64, life u32,
//            version u32, ascending within first … last
//   entries  4, number u16, entries
//   other    5, the nonce of a probe of another run, nodes up u16, number u8, digests of the
//            sender's settings, u16 each
//   entry    name (length u8, bytes), incarnation u64, life u32, version u32, phase u8, address
//            (length u8, bytes), number u8, incarnations that it replaces, u64 each
//
// Parsing is bounded and pure. Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <variant>
#include <vector>

#include <sotto/base/bytes.h>
#include <sotto/base/status.h>
#include <sotto/sites/roster/roster_book.h>
#include <sotto/sites/roster/roster_entry.h>

namespace sotto::sites {

inline constexpr std::uint8_t kRosterProtocol = 3;     ///< the version that each message names
inline constexpr std::size_t kMostRosterBytes = 1200;  ///< longest message, which no network splits

/// A question whether the receiver is there, or the answer to one.
struct RosterProbe {
  std::uint64_t run = 0;               ///< the sender's run
  bool answers = false;                ///< whether it is an answer
  std::uint64_t nonce = 0;             ///< number of the probe
  std::uint64_t ticket = 0;            ///< an answer's number, which the marks that follow name
  RosterDigest digest{};               ///< digest of the sender's book
  bool wishes = false;                 ///< the sender wishes an edge with the receiver
  bool takes = false;                  ///< the sender keeps an edge with the receiver, if it does
  bool forgot = false;                 ///< the sender had dropped the receiver's entry
  std::optional<RosterEntry> entry{};  ///< the sender's own; none: it has yet to join
};

/// Which versions the sender has of entries whose keys lie in first … last.
struct RosterMarks {
  std::uint64_t run = 0;            ///< the sender's run
  std::uint64_t ticket = 0;         ///< ticket of the answer that they follow
  bool wants_yours = false;         ///< the receiver is to send its marks of the range, too
  std::uint64_t first = 0;          ///< the range's first key
  std::uint64_t last = 0;           ///< the range's last key
  std::vector<RosterMark> marks{};  ///< ascending by key
};

/// Entries that the receiver lacks.
struct RosterEntries {
  std::uint64_t run = 0;               ///< the sender's run
  std::vector<RosterEntry> entries{};  ///< entries of any nodes
};

/// The answer to a probe of another run.
struct RosterOther {
  std::uint64_t run = 0;                  ///< the sender's run
  std::uint64_t nonce = 0;                ///< number of the probe
  std::uint16_t up = 0;                   ///< nodes that are up, as the sender sees it
  std::vector<std::uint16_t> settings{};  ///< digests of the sender's settings, in their order
};

/// All that rosters say.
using RosterMessage = std::variant<RosterProbe, RosterMarks, RosterEntries, RosterOther>;

/// Marks that one message holds, at most.
inline constexpr std::size_t kMostMarks = (kMostRosterBytes - 37) / 16;

/// Most settings of which a message tells another run: a byte counts them.
inline constexpr std::size_t kMostSettings = 255;

/// Appends an entry.
void write_entry(const RosterEntry& entry, ByteBuffer& out);

/// The message as bytes.
std::vector<std::byte> encode(const RosterProbe& probe);
/// The message as bytes. Requires at most kMostMarks.
std::vector<std::byte> encode(const RosterMarks& marks);
/// The message as bytes. Requires at most kMostSettings settings.
std::vector<std::byte> encode(const RosterOther& other);
/// The entries as bytes of as many messages as they need.
std::vector<std::vector<std::byte>> encode_entries(std::uint64_t run,
                                                   std::span<const RosterEntry> entries);

/// Fault::malformed for anything that breaks the grammar.
Result<RosterMessage> parse_roster(std::span<const std::byte> bytes);

}  // namespace sotto::sites
