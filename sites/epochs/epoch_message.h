// What nodes of a run with one model say to each other (docs/epochs.md). Little-endian; one message
// is one message of a channel, whose other end is known by name and incarnation.
//
// Each begins with kind u8, protocol u8, history 2 × u64, epoch u64, and the sender's stay u32.
// Then
//
//   chunk     1, step u64, chunk u16, encoding
//   part      2, standing u8 (0 made, 1 held), step u64, digest 2 × u64, parts u16, part u16,
//             number u16, who u16 each, encoding
//   want      3, step u64, part u16 (65,535: all)
//   have      4, step u64, digest 2 × u64, answers u8, model
//   prepare   5, ballot
//   promise   6, ballot, promise
//   outvoted  7, ballot that was promised
//   accept    8, ballot, value
//   accepted  9, ballot
//   decide   10, value
//   ask      11
//   entered  12
//   join     13, has wanted u8, wanted u64, has ready u8, ready u64, settings
//   donor    14, step u64, oldest u64, has copy u8, copy u64, differs u8; 1: settings
//   fetch    15, step u64, index u32
//   piece    16, step u64, root 2 × u64, count u32, index u32, bytes
//   ballot   number u64, node
//   node     name (length u8, bytes), incarnation u64, stay u32
//   model    step u64, digest 2 × u64
//   settings rate f64, step u64, further u64
//   value    number u16, nodes, base u64, has carry u8, carry 2 × u64, history 2 × u64, number u16
//            and nodes that are put out as unequal
//   promise  node, step u64, has mean u8, mean 2 × u64, leaving u8, unequal u64, has accepted u8,
//            ballot, value
//
// Parsing is bounded and pure; views are into the parsed bytes. Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include <sotto/base/bytes.h>
#include <sotto/base/ids.h>
#include <sotto/base/shared_bytes.h>
#include <sotto/base/status.h>
#include <sotto/sites/epochs/epoch_node.h>

namespace sotto::sites {

inline constexpr std::uint8_t kEpochProtocol = 4;       ///< the version that each message names
inline constexpr std::uint16_t kAllParts = 0xFFFF;      ///< a want for all parts of a mean
inline constexpr std::uint32_t kMostPieces = 1U << 20;  ///< pieces of a snapshot

/// What each message begins with.
struct EpochHeader {
  History history{};       ///< the sender's run
  Epoch epoch = 0;         ///< the epoch that the message is about
  std::uint32_t stay = 0;  ///< the sender's stay
  auto operator<=>(const EpochHeader&) const = default;
};

/// A member's part of a step, for the owner of a chunk.
struct ChunkMessage {
  Round step = 0;           ///< number of the step, from 1
  std::uint16_t chunk = 0;  ///< the chunk, and its owner's place among the members
  SharedBytes encoding{};   ///< C of the sender's gradient there
};

/// The mean of one chunk.
struct PartMessage {
  /// What is known of the mean that the part belongs to.
  enum class Standing : std::uint8_t {
    made,  ///< the owner has made this part in this epoch
    held,  ///< part of a whole mean, which was applied, or is carried over
  };
  Standing standing = Standing::made;  ///< what is known of it
  Round step = 0;                      ///< number of the step
  EpochDigest digest{};                ///< held: digest of the whole mean; made: zeros
  std::uint16_t parts = 0;             ///< parts of the mean, 1 … kMostEpochMembers
  std::uint16_t part = 0;              ///< the place of this one
  std::vector<std::uint16_t> who{};    ///< places of members whose gradients it has, ascending
  SharedBytes encoding{};              ///< C of the mean
};

/// A request for parts of a mean.
struct WantMessage {
  Round step = 0;                  ///< number of the step
  std::uint16_t part = kAllParts;  ///< the part, or kAllParts
};

/// The sender has the whole mean of a step.
struct HaveMessage {
  Round step = 0;        ///< number of the step
  EpochDigest digest{};  ///< digest of its mean
  bool answers = false;  ///< it answers a have of the receiver's, and wants no answer
  ModelClaim model{};    ///< the sender's model
};

/// A proposer asks voters to take part in no older proposal.
struct PrepareMessage {
  Ballot ballot{};  ///< number of the proposal
};
/// A voter promises that.
struct PromiseMessage {
  Ballot ballot{};         ///< number of the proposal
  EpochPromise promise{};  ///< what it holds
};
/// A voter has promised a newer proposal to another.
struct OutvotedMessage {
  Ballot ballot{};  ///< number of the newer proposal
};
/// A proposer asks voters to accept a value.
struct AcceptMessage {
  Ballot ballot{};     ///< number of the proposal
  EpochValue value{};  ///< what it proposes
};
/// A voter has accepted it.
struct AcceptedMessage {
  Ballot ballot{};  ///< number of the proposal
};
/// The epoch has ended so.
struct DecideMessage {
  EpochValue value{};  ///< how it ended
};
/// A question how the epoch ended.
struct AskMessage {};
/// The sender has entered the epoch, or one after it.
struct EnteredMessage {};

/// A newcomer is there.
struct JoinMessage {
  std::optional<Round> wanted{};  ///< the step at which it wants a copy of the state
  std::optional<Round> ready{};   ///< steps that it has replayed
  StepSettings settings{};        ///< those of a step that it will make
};
/// The answer of a member.
struct DonorMessage {
  Round step = 0;    ///< steps that it has applied
  Round oldest = 0;  ///< the first step whose mean it keeps
  /// The step of the copy of the state that it offers; none: it makes one at the wanted step.
  std::optional<Round> copy{};
  /// Settings of the step that the newcomer names, where its own are others: it is not let in.
  std::optional<StepSettings> settings{};
};
/// A request for a piece of a copy of the state.
struct FetchMessage {
  Round step = 0;           ///< the step of the copy
  std::uint32_t index = 0;  ///< the piece
};
/// A piece of a copy of the state.
struct PieceMessage {
  Round step = 0;           ///< the step of the copy
  EpochDigest root{};       ///< digest of the parameters in the whole copy
  std::uint32_t count = 0;  ///< its pieces, 1 … kMostPieces
  std::uint32_t index = 0;  ///< the place of this one
  SharedBytes bytes{};      ///< the piece
};

/// Any message behind its header.
using EpochBody =
    std::variant<ChunkMessage, PartMessage, WantMessage, HaveMessage, PrepareMessage,
                 PromiseMessage, OutvotedMessage, AcceptMessage, AcceptedMessage, DecideMessage,
                 AskMessage, EnteredMessage, JoinMessage, DonorMessage, FetchMessage, PieceMessage>;

/// A message.
struct EpochMessage {
  EpochHeader header{};  ///< its beginning
  EpochBody body{};      ///< the rest
};

/// The bytes of a message.
std::vector<std::byte> encode(const EpochMessage& message);
/// The bytes of a message but for its tail.
std::vector<std::byte> encode_head(const EpochMessage& message);
/// What a message ends with, of those whose last bytes are long: an encoding, or a piece.
SharedBytes tail_of(const EpochBody& body);
/// Reads a message, of which encodings stay parts; Fault::malformed for what breaks the grammar.
Result<EpochMessage> parse_epoch(const SharedBytes& bytes);

/// Writes a promise's vote for a founder's memory, but for `unequal`, of which a founding has none.
void write_accepted(const AcceptedValue& accepted, ByteBuffer& out);
/// Reads what write_accepted wrote; false where it breaks the grammar.
bool read_accepted(ByteReader& in, AcceptedValue& accepted);
/// Writes a ballot.
void write_ballot(const Ballot& ballot, ByteBuffer& out);
/// Reads what write_ballot wrote; false where it breaks the grammar.
bool read_ballot(ByteReader& in, Ballot& ballot);

}  // namespace sotto::sites
