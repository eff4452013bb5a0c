#include "stranger_room.h"

#include <algorithm>

#include <fmt/format.h>

#include "channel_wire.h"

namespace sotto::internal {
namespace {

/// Most connections of strangers, where the process may have enough descriptors.
constexpr std::size_t kMostStrangers = 512;
/// Connections of a peer, to it and from it, that try again among them.
constexpr std::size_t kConnectionsOfPeer = 16;

/// An eighth of the descriptors: a crowd that comes at once is there before anybody can look, and
/// takes more for a moment, and the peers, the data and the state need theirs.
std::size_t room_for_strangers() {
  return std::clamp(descriptor_limit() / 8, kLeastStrangers, kMostStrangers);
}

}  // namespace

Listener::Limits listener_limits(std::size_t peers) {
  const std::size_t strangers = room_for_strangers();
  return {.message_bytes = channel_wire::kMostWireBytes,
          .connections = strangers + kLeastStrangers + kConnectionsOfPeer * peers,
          .limiter = ConnectionLimiter::Limits{.strangers = strangers},
          .held_replies = 4};
}

std::vector<std::string> shortages_of_host() {
  std::vector<std::string> found;
  if (const auto room = room_for_strangers(); room < kMostStrangers) {
    found.push_back(fmt::format(
        "the process may have {} descriptors, which leaves room for {} connections of strangers: a "
        "crowd of them can keep peers out for longer; `ulimit -n 4096`, or LimitNOFILE of systemd",
        descriptor_limit(), room));
  }
  if (const auto queue = ListeningSocket::queue_shortage(); queue > 0) {
    found.push_back(fmt::format(
        "the kernel holds {} attempts to connect at once: a crowd that comes at once can keep "
        "peers out for longer; `sysctl net.core.somaxconn=4096`",
        queue));
  }
  return found;
}

}  // namespace sotto::internal
