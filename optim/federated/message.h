// What two sites say to each other. Little-endian; one message is one message of a channel
// (comm/channels.h), whose other end is known by its key: no message names its sender.
//
//   hello    1, protocol u8, agreement 32 bytes, incarnation u64, life u32, flags u32 (1: has a
//            model, 2: wants yours), round u64, degree u32, yours u64, applied u64, oldest u64,
//            next u64
//   refusal  2, reason u8 (1 other settings, 2 stale, 3 already running, 4 broke a rule), text
//   model    3, incarnation u64, round u64, next u64, version u64, d floats
//   parcel   4, incarnation u64, sequence u64, round u64, header (two doubles or a version),
//            encoding
//   receipt  5, incarnation u64, applied u64, round u64
//
// Incarnation: a random number that a site draws when it starts without state, or gives its state
// up; streams of parcels are numbered from 1 within one. Life: counts the starts of its process.
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

namespace sotto::federated {

using Incarnation = std::uint64_t;  ///< 0: none
using Sequence = std::uint64_t;     ///< of a parcel, from 1
using Agreement = std::array<std::byte, 32>;

inline constexpr std::uint8_t kProtocol = 1;
inline constexpr std::size_t kMaxText = 1024;

/// The first message, each way, whenever two sites meet.
struct Hello {
  Agreement agreement{};        ///< digest of the settings that both must share
  Incarnation incarnation = 0;  ///< the sender's
  std::uint32_t life = 0;       ///< the sender's
  bool has_model = false;       ///< has trained, or taken a model over
  bool wants_model = false;
  Round round = 0;
  std::uint32_t degree = 0;  ///< sites that the sender lists
  // The stream that the sender hears from the receiver.
  Incarnation yours = 0;  ///< the receiver's incarnation, as known; 0: never met
  Sequence applied = 0;   ///< parcels of it in the sender's durable state
  // The stream that it sends: what it can still send again.
  Sequence oldest = 1;
  Sequence next = 1;
};

enum class RefusalReason : std::uint8_t {
  other_settings = 1,
  stale = 2,            ///< the receiver of this has an old state, and must give it up
  already_running = 3,  ///< another process with the receiver's key began later
  broke_rule = 4,
};

struct Refusal {
  RefusalReason reason = RefusalReason::broke_rule;
  std::string text;  ///< at most kMaxText bytes, printable
};

/// A whole model: z for a site that comes late, x̂ for one that follows a public copy.
struct Model {
  Incarnation incarnation = 0;
  Round round = 0;
  Sequence next = 1;          ///< the first parcel that it does not include
  std::uint64_t version = 0;  ///< of x̂
  std::vector<float> values;
};

/// One step of a stream: a share of mass (push-sum) or an update of a public copy (gossip).
struct Parcel {
  Incarnation incarnation = 0;
  Sequence sequence = 0;
  Round round = 0;
  std::span<const std::byte> payload;
};

struct Receipt {
  Incarnation incarnation = 0;  ///< of the stream's sender
  Sequence applied = 0;         ///< durable at the receiver
  Round round = 0;              ///< of the receiver
};

using Message = std::variant<Hello, Refusal, Model, Parcel, Receipt>;

std::vector<std::byte> encode(const Hello& hello);
std::vector<std::byte> encode(const Refusal& refusal);
std::vector<std::byte> encode(const Model& model);
std::vector<std::byte> encode(const Parcel& parcel);
std::vector<std::byte> encode(const Receipt& receipt);

/// Fault::malformed for anything that breaks the grammar, a model of another dimension, or values
/// that are not finite.
Result<Message> parse(std::span<const std::byte> bytes, std::size_t dimension);

}  // namespace sotto::federated
