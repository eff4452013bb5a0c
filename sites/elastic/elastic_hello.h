// The first message on a channel between nodes of one all-reduce whose nodes come and go: which
// process is at this end. A channel proves a name; a name may be another process after a restart.
// It is said again when what it says of the node's run changes, as a founder asks whether there is
// one, and now and then to a node that is in another run.
//
//   kind u8 (128), protocol u8, incarnation u64, history 2 × u64, steps u64, model u64, flags u8;
//   little-endian; flags: 1 member, 2 hears a member, 4 gave up, 8 first seed, 16 stuck
//
// Parsing is bounded and pure; thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <sotto/base/ids.h>
#include <sotto/sites/epochs/epoch_message.h>
#include <sotto/sites/epochs/epoch_node.h>

namespace sotto {

inline constexpr std::uint8_t kElasticHelloKind = 128;  ///< no message of EpochMember has this kind
/// The version that each hello names. It grows with that of epochs' messages: nodes that could not
/// read those must not greet each other.
inline constexpr std::uint8_t kElasticHelloProtocol = sites::kEpochProtocol + 1;

/// What a node says of itself beside its run.
struct ElasticSelf {
  Round model = 0;          ///< steps that the model has had from which it could begin a run
  bool gave_up = false;     ///< it has waited for a run that nobody is in, and gave that up
  bool first_seed = false;  ///< it has the address of the first seed
  bool stuck = false;       ///< it is a member, and too many are lost for it to go on
  auto operator<=>(const ElasticSelf&) const = default;
};

/// What a node says on a channel.
struct ElasticHello {
  sites::Incarnation incarnation = 0;  ///< drawn by the process, not 0
  sites::History history{};            ///< the run that it is in; zeros: none yet
  Round steps = 0;                     ///< steps of that run that it knows to be committed
  bool member = false;                 ///< it is a member of that run
  bool hears = false;                  ///< it hears a member of that run
  ElasticSelf self{};
  auto operator<=>(const ElasticHello&) const = default;
};

/// Whether a message is a hello, by its kind.
bool is_hello(std::span<const std::byte> message);
/// The bytes of a hello.
std::vector<std::byte> encode(const ElasticHello& hello);
/// Reads a hello; no value for one that breaks the grammar, or is of another protocol.
std::optional<ElasticHello> parse_hello(std::span<const std::byte> message);

}  // namespace sotto
