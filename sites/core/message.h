// What two sites say to each other. Little-endian; one message is one message of a channel
// (comm/channels.h), whose other end is known by its key: no message names its sender.
//
//   hello    1, protocol u8, agreement 32 bytes, incarnation u64, life u32, flags u32 (1: has a
//            model, 2: wants yours, 4: hears you, 8: tells you), round u64, degree u32, yours u64,
//            applied u64, oldest u64, next u64
//   refusal  2, reason u8 (1 other settings, 2 stale, 3 already running, 4 broke a rule), text
//   model    3, incarnation u64, round u64, d floats
//   parcel   4, incarnation u64, sequence u64, round u64, payload (docs/sites.md)
//   receipt  5, incarnation u64, applied u64, round u64, own steps u32, flags u8 (1: wants
//            the whole copy)
// and where sites sum in secret (secure_sum.h):
//   sum key  6, incarnation u64, public key 32 bytes
//   unmask   7, incarnation u64, round u64, number of sites u16, their ids u64, ascending
//   masks    8, incarnation u64, round u64, number u16, of each: id u64, kind u8 (1: share, 0: seed
//            of the mask with that site), 32 bytes
// The incarnation of these three is the sender's.
//
// Incarnation: a random number that a site draws when it starts without state, or gives its state
// up; the parcels from one incarnation to another are numbered from 1. Life: grows with each
// start of its process. Round: rounds in which the sender has offered, as its durable state knows
// them; that of a parcel is the one in which it was made. Rounds and numbers of parcels are at most
// kMostCount.
//
// Parsing is bounded and pure; views are into the parsed bytes. Thread-safe.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <sotto/base/ids.h>
#include <sotto/base/status.h>
#include <sotto/sites/core/sums/secret_shares.h>
#include <sotto/sites/core/sums/secure_sum_rule.h>

namespace sotto::sites {

using Incarnation = std::uint64_t;  ///< 0: none
using Sequence = std::uint64_t;     ///< number of a parcel, from 1
/// A digest of what sites must agree on.
using Agreement = std::array<std::byte, 32>;

inline constexpr std::uint8_t kProtocol = 4;     ///< the version that a hello names
inline constexpr Round kMostInterval = 1 << 14;  ///< largest H, the steps of a round
inline constexpr std::size_t kMostText = 1024;   ///< longest text in a message, in bytes
/// The largest round or number that is believed.
inline constexpr std::uint64_t kMostCount = std::uint64_t{1} << 48;

/// The first message, each way, whenever two sites meet.
struct Hello {
  Agreement agreement{};        ///< digest of the settings that both must share
  Incarnation incarnation = 0;  ///< the sender's
  std::uint32_t life = 0;       ///< number of the sender's process, from 1
  bool has_model = false;       ///< the sender has trained, or taken over a model
  bool wants_model = false;
  bool hears = false;     ///< the sender takes in what the receiver sends
  bool tells = false;     ///< the sender sends parcels to the receiver
  bool observer = false;  ///< the sender takes parcels, and sends none to anybody
  Round round = 0;
  std::uint32_t degree = 0;  ///< number of sites that the sender lists
  // The stream that the sender hears from the receiver.
  Incarnation yours = 0;  ///< the receiver's incarnation as the sender knows it; 0: never met
  Sequence applied = 0;   ///< parcels of that stream in the sender's durable state
  // The stream that it sends to `yours`: what it can still send again.
  Sequence oldest = 1;
  Sequence next = 1;
};

/// Why a site does not talk to another.
enum class RefusalReason : std::uint8_t {
  other_settings = 1,
  stale = 2,            ///< the receiver of the refusal has an old state, and must give it up
  already_running = 3,  ///< another process with that receiver's key began later
  broke_rule = 4,
};

/// A site will not talk to this one, or not any more.
struct Refusal {
  RefusalReason reason = RefusalReason::broke_rule;
  std::string text;  ///< the reason in words; printable, at most kMostText bytes
};

/// A whole model, for a site that comes late.
struct Model {
  Incarnation incarnation = 0;
  Round round = 0;
  std::vector<float> values;
};

/// One step of a stream: a share of mass (push-sum) or a change of a public copy (gossip).
struct Parcel {
  Incarnation incarnation = 0;
  Sequence sequence = 0;
  Round round = 0;
  std::span<const std::byte> payload;
};

/// The progress of a stream at its sender and at its receiver.
struct Receipt {
  Incarnation incarnation = 0;  ///< incarnation of the stream's sender
  Sequence applied = 0;         ///< parcels that are durable at the receiver
  Round round = 0;              ///< the receiver's round
  Round own_steps = 1;          ///< H_i of the receiver, 1 … kMostInterval
  bool wants_whole = false;     ///< the receiver has lost the public copy
};

/// The key of X25519 by which the sender's process agrees on masks.
struct SumKey {
  Incarnation incarnation = 0;
  Bytes32 key{};
};

/// Asks for what is to be taken from the sum of these sites' parcels of a round.
struct Unmask {
  Incarnation incarnation = 0;
  Round round = 0;                   ///< round of the parcels
  std::vector<std::uint64_t> sites;  ///< site_id of each site in the sum, ascending
};

/// A part of a mask, for the receiver that asked.
struct RevealedMask {
  std::uint64_t site = 0;
  /// True: a share of that site's own mask; false: the seed of its mask with the sender.
  bool is_share = false;
  Secret32 value{};
};

/// The answer to Unmask, or more of it.
struct Masks {
  Incarnation incarnation = 0;
  Round round = 0;
  std::vector<RevealedMask> revealed;
};

/// All that sites say.
using Message = std::variant<Hello, Refusal, Model, Parcel, Receipt, SumKey, Unmask, Masks>;

/// The message as bytes.
std::vector<std::byte> encode(const Hello& hello);
/// Cuts a text that is too long.
std::vector<std::byte> encode(const Refusal& refusal);
/// The message as bytes.
std::vector<std::byte> encode(const Model& model);
/// The message as bytes.
std::vector<std::byte> encode(const Parcel& parcel);
/// The message as bytes.
std::vector<std::byte> encode(const Receipt& receipt);
/// The message as bytes.
std::vector<std::byte> encode(const SumKey& key);
/// The message as bytes.
std::vector<std::byte> encode(const Unmask& question);
/// The message as bytes.
std::vector<std::byte> encode(const Masks& answer);

/// The longest message between sites with models of `dimension` elements and payloads of at most
/// `payload` bytes.
std::size_t max_message_bytes(std::size_t dimension, std::size_t payload);

/// Fault::malformed for anything that breaks the grammar, or a model of another dimension;
/// Fault::non_finite for values that are not finite.
Result<Message> parse(std::span<const std::byte> bytes, std::size_t dimension);

}  // namespace sotto::sites
