#include <sotto/trainers/launch/node_place.h>

#include <algorithm>
#include <memory>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/comm/trust/key_file.h>
#include <sotto/comm/trust/peers_file.h>

namespace sotto {
namespace {

/// The URL where node 0 serves the rendezvous when nobody gives one: the launchers' port.
constexpr int kRendezvousPort = 29500;

const TrustedPeer& own_line(const std::vector<TrustedPeer>& lines, const KeyPair& keys,
                            const std::string& path) {
  const auto own = std::find_if(lines.begin(), lines.end(), [&](const TrustedPeer& line) {
    return line.key == keys.public_key;
  });
  if (own == lines.end()) {
    refuse("peers", path,
           fmt::format("no line has this node's key, {}; the list names all nodes, this one too",
                       keys.public_key.text()));
  }
  return *own;
}

/// "10.0.0.1" of "10.0.0.1:9001"
std::string host_of(const std::string& address) {
  std::string host = address.substr(0, address.rfind(':'));
  return host.starts_with('[') ? host.substr(1, host.size() - 2) : host;
}

std::string rendezvous_of(const std::vector<TrustedPeer>& lines) {
  const auto first = std::find_if(lines.begin(), lines.end(),
                                  [](const TrustedPeer& line) { return line.rank == 0; });
  return first == lines.end() || first->address.empty()
             ? std::string()
             : fmt::format("tcp://{}:{}", first->address.substr(0, first->address.rfind(':')),
                           kRendezvousPort);
}

LaunchedNode secured_place(const OptimizerSettings& options, const std::vector<TrustedPeer>& lines,
                           Rank rank, const std::optional<LaunchedNode>& launched) {
  LaunchedNode place;
  if (launched) {
    place = *launched;
    if (launched->rank != rank) {
      refuse("key", options.key,
             fmt::format("{} says that this is node {}, and {} that it is node {}", options.peers,
                         rank, launched->source, launched->rank));
    }
  } else {
    const auto last = std::max_element(
        lines.begin(), lines.end(),
        [](const TrustedPeer& a, const TrustedPeer& b) { return a.rank < b.rank; });
    place.rank = rank;
    place.nodes = options.nodes.value_or(last->rank + 1);
    place.source = options.peers;
  }
  if (rank >= place.nodes) {
    refuse("nodes", fmt::to_string(place.nodes),
           fmt::format("{} makes this node {}", options.peers, rank));
  }
  // What an agent serves is reached in plain text, which would undo the keys.
  if (place.rendezvous.empty() || place.rendezvous.starts_with(kTorchScheme)) {
    place.rendezvous = rendezvous_of(lines);
  }
  return place;
}

}  // namespace

NodePlace find_place(const OptimizerSettings& options, bool by_launcher) {
  const auto launched = by_launcher ? read_launcher() : std::nullopt;
  if (options.key.empty() && options.peers.empty()) {
    return {.node = launched, .security = {}, .bind = options.bind};
  }
  if (options.key.empty() || options.peers.empty()) {
    if (options.key.empty()) {
      throw Error("peers", "give this node's own key too, with " + mention("key") +
                               "; `sotto keygen` makes one");
    }
    throw Error("key", "say too whom to trust, with " + mention("peers"));
  }
  const KeyPair keys = read_key_file(options.key);
  auto lines = read_peers_file(options.peers);
  const TrustedPeer own = own_line(lines, keys, options.peers);
  const LaunchedNode place = secured_place(options, lines, own.rank, launched);
  const bool bind_given = options.bind != OptimizerSettings().bind;
  return {.node = place,
          .security = Security{keys, std::make_shared<AllowList>(std::move(lines))},
          .bind = bind_given || own.address.empty() ? options.bind : host_of(own.address)};
}

}  // namespace sotto
