// The first message on a channel between nodes of one all-reduce whose nodes come and go: which
// process is at this end. A channel proves a name; a name may be another process after a restart.
// It is said again when the node's run becomes known, as a founder asks whether there is one, and
// now and then to a node that is in another run.
//
//   kind u8 (128), protocol u8, incarnation u64, history 2 × u64, steps u64; little-endian
//
// Parsing is bounded and pure; thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <sotto/base/ids.h>
#include <sotto/sites/epochs/epoch_node.h>

namespace sotto {

inline constexpr std::uint8_t kEpochHelloKind = 128;    ///< no message of EpochMember has this kind
inline constexpr std::uint8_t kEpochHelloProtocol = 2;  ///< the version that each hello names

/// What a node says of itself on a channel.
struct EpochHello {
  sites::Incarnation incarnation = 0;  ///< drawn by the process, not 0
  sites::History history{};            ///< the run that it is in; zeros: none yet
  Round steps = 0;                     ///< steps of that run that it knows to be committed
  auto operator<=>(const EpochHello&) const = default;
};

/// Whether a message is a hello, by its kind.
bool is_hello(std::span<const std::byte> message);
/// The bytes of a hello.
std::vector<std::byte> encode(const EpochHello& hello);
/// Reads a hello; no value for one that breaks the grammar, or is of another protocol.
std::optional<EpochHello> parse_hello(std::span<const std::byte> message);

}  // namespace sotto
