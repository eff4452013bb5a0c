// What the transport tests share: graphs, nodes that exchange frames with known contents, and
// threads that play the ranks.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/frame.h>
#include <sotto/comm/nccl/nccl_transport.h>
#include <sotto/comm/stores.h>
#include <sotto/comm/transport.h>

#include "fake_nccl.h"

namespace sotto::test {

inline std::vector<std::byte> bytes_of(std::string_view text) {
  const auto* data = reinterpret_cast<const std::byte*>(text.data());
  return {data, data + text.size()};
}

inline constexpr std::uint64_t kRun = 4711;
/// Far longer than anything here takes: running into it is a failure, not a measurement.
inline Deadline generous() { return Deadline::after(std::chrono::seconds(60)); }

struct Graph {
  std::vector<std::vector<Rank>> to;
  std::vector<std::vector<Rank>> from;
  int nodes() const { return static_cast<int>(to.size()); }
};

/// Edges as (from, to), in any order, duplicates dropped.
inline Graph graph_of(int nodes, const std::set<std::pair<Rank, Rank>>& edges) {
  const auto count = static_cast<std::size_t>(nodes);
  Graph graph{std::vector<std::vector<Rank>>(count), std::vector<std::vector<Rank>>(count)};
  for (const auto& [from, to] : edges) {
    graph.to[static_cast<std::size_t>(from)].push_back(to);
    graph.from[static_cast<std::size_t>(to)].push_back(from);
  }
  for (auto& peers : graph.from) {
    std::sort(peers.begin(), peers.end());
  }
  return graph;
}

inline Graph ring(int nodes) {
  std::set<std::pair<Rank, Rank>> edges;
  for (Rank i = 0; i < nodes && nodes > 1; ++i) {
    edges.insert({i, (i + 1) % nodes});
    edges.insert({(i + 1) % nodes, i});
  }
  return graph_of(nodes, edges);
}

inline Graph complete(int nodes) {
  std::set<std::pair<Rank, Rank>> edges;
  for (Rank i = 0; i < nodes; ++i) {
    for (Rank j = 0; j < nodes; ++j) {
      if (i != j) {
        edges.insert({i, j});
      }
    }
  }
  return graph_of(nodes, edges);
}

/// 0 → 1 → … → n−1: the first only sends, the last only receives.
inline Graph chain(int nodes) {
  std::set<std::pair<Rank, Rank>> edges;
  for (Rank i = 0; i + 1 < nodes; ++i) {
    edges.insert({i, i + 1});
  }
  return graph_of(nodes, edges);
}

inline Graph directed_ring(int nodes) {
  std::set<std::pair<Rank, Rank>> edges;
  for (Rank i = 0; i < nodes; ++i) {
    edges.insert({i, (i + 1) % nodes});
  }
  return graph_of(nodes, edges);
}

inline TransportOptions options_for(const Graph& graph, Rank rank, std::shared_ptr<Store> store,
                                    std::size_t max_payload_bytes) {
  TransportOptions options;
  options.rank = rank;
  options.nodes = graph.nodes();
  options.run_id = kRun;
  options.to = graph.to[static_cast<std::size_t>(rank)];
  options.from = graph.from[static_cast<std::size_t>(rank)];
  options.max_frame_bytes = kFrameHeaderBytes + max_payload_bytes;
  options.store = std::move(store);
  return options;
}

/// Every byte depends on the edge, the tag and its place.
inline std::vector<std::byte> make_frame(Rank from, Rank to, const ExchangeTag& tag,
                                         std::size_t payload_bytes) {
  std::vector<std::byte> frame(kFrameHeaderBytes + payload_bytes);
  std::uint64_t state = tag.round * 1000003 + tag.phase * 10007U + tag.bucket * 101U +
                        static_cast<std::uint64_t>(from) * 17 + static_cast<std::uint64_t>(to) + 1;
  for (std::size_t at = kFrameHeaderBytes; at < frame.size(); at += sizeof state) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    std::memcpy(frame.data() + at, &state, std::min(sizeof state, frame.size() - at));
  }
  seal_frame({.run_id = kRun,
              .round = tag.round,
              .sender = from,
              .phase = tag.phase,
              .bucket = tag.bucket,
              .elements = payload_bytes,
              .payload_bytes = payload_bytes},
             frame);
  return frame;
}

/// An exchange with its buffers: frames for all peers, room for as many bytes from each.
struct Swap {
  Swap(const Graph& graph, Rank rank, const ExchangeTag& tag, std::size_t payload_bytes,
       std::size_t capacity)
      : self(rank) {
    exchange.tag = tag;
    const auto at = static_cast<std::size_t>(rank);
    for (const Rank peer : graph.to[at]) {
      frames.push_back(make_frame(rank, peer, tag, payload_bytes));
      exchange.sends.push_back({peer, frames.back()});
    }
    for (const Rank peer : graph.from[at]) {
      rooms.emplace_back(kFrameHeaderBytes + capacity);
      exchange.receives.push_back({peer, rooms.back()});
    }
  }
  Swap(const Graph& graph, Rank rank, const ExchangeTag& tag, std::size_t payload_bytes)
      : Swap(graph, rank, tag, payload_bytes, payload_bytes) {}

  /// Compares a frame that was reported with what its sender made.
  void check_frame(const TransportEvent& event, std::size_t payload_bytes) const {
    REQUIRE(event.tag == exchange.tag);
    const auto expected = make_frame(event.peer, self, event.tag, payload_bytes);
    const auto receive = std::find_if(exchange.receives.begin(), exchange.receives.end(),
                                      [&](const Receive& one) { return one.from == event.peer; });
    REQUIRE(receive != exchange.receives.end());
    REQUIRE(event.bytes == expected.size());
    REQUIRE(std::memcmp(receive->buffer.data(), expected.data(), expected.size()) == 0);
  }

  Rank self;
  Exchange exchange;
  std::vector<std::vector<std::byte>> frames;
  std::vector<std::vector<std::byte>> rooms;
};

/// Posts, polls to the end and checks every frame.
inline void swap_frames(Transport& transport, const Graph& graph, Rank rank, const ExchangeTag& tag,
                        std::size_t payload_bytes) {
  const Swap swap(graph, rank, tag, payload_bytes);
  const Status posted = transport.post(swap.exchange);
  REQUIRE_MESSAGE(posted.ok(), posted.message());
  std::set<Rank> heard;
  for (;;) {
    const auto event = transport.poll(generous());
    REQUIRE_MESSAGE(event.ok(), event.status().message());
    REQUIRE_MESSAGE(event->kind != TransportEvent::Kind::peer_lost, event->reason);
    if (event->kind == TransportEvent::Kind::exchange_done) {
      REQUIRE(event->tag == tag);
      break;
    }
    swap.check_frame(*event, payload_bytes);
    REQUIRE(heard.insert(event->peer).second);
  }
  REQUIRE(heard.size() == swap.exchange.receives.size());
}

/// Runs `node(rank)` in a thread for each rank and joins them; the first failure is thrown on.
inline void spawn(int nodes, const std::function<void(Rank)>& node) {
  std::vector<std::exception_ptr> failures(static_cast<std::size_t>(nodes));
  std::vector<std::thread> threads;
  for (Rank rank = 0; rank < nodes; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        node(rank);
      } catch (...) {
        failures[static_cast<std::size_t>(rank)] = std::current_exception();
      }
    });
  }
  for (auto& thread : threads) {
    thread.join();
  }
  for (const auto& failure : failures) {
    if (failure) {
      std::rethrow_exception(failure);
    }
  }
}

/// A key pair for a rank; the same in every process.
inline KeyPair keys_of(Rank rank) {
  std::array<std::byte, kKeyBytes> secret{};
  secret.fill(static_cast<std::byte>(rank % 251 + 1));
  secret[1] = static_cast<std::byte>(rank / 251);
  const PrivateKey key(secret);
  return {key.public_key(), key};
}

/// Everybody trusts everybody.
inline std::vector<TrustedPeer> lines_of(int nodes) {
  std::vector<TrustedPeer> lines;
  for (Rank rank = 0; rank < nodes; ++rank) {
    lines.push_back({.rank = rank, .name = "", .key = keys_of(rank).public_key});
  }
  return lines;
}

inline Security security_of(int nodes, Rank rank) {
  return {keys_of(rank), std::make_shared<AllowList>(lines_of(nodes))};
}

/// The transport zmq with keys, as the tests call it.
inline constexpr std::string_view kSecured = "zmq with keys";

/// The transport nccl over a library and a device that are none.
inline constexpr std::string_view kFakeNccl = "nccl without a GPU";

/// Where all those meet. Made before a test forks, it is that of all its processes.
inline const std::shared_ptr<World>& fake_world() {
  static const auto world = std::make_shared<World>();
  return world;
}

/// Frames may leave their sender before their receives are posted.
inline bool runs_ahead(std::string_view name) { return name != "gloo" && name != kFakeNccl; }
/// Frames are reported as they come, not when their whole exchange is done.
inline bool reports_singly(std::string_view name) { return name != kFakeNccl; }

/// Whether a transport joins nodes that are threads of one process and meet in memory.
inline bool joins_threads(std::string_view name) {
  const auto all = transports();
  const auto found = std::ranges::find(all, name, &TransportInfo::name);
  return found != all.end() && !found->processes;
}

/// make_transport that also knows kSecured and kFakeNccl.
inline Result<std::unique_ptr<Transport>> open_transport(std::string_view name,
                                                         TransportOptions options) {
  if (name == kSecured) {
    options.security = security_of(options.nodes, options.rank);
    return make_transport("zmq", options);
  }
  if (name == kFakeNccl) {
    const auto device = std::make_shared<FakeDevice>();
    return internal::make_nccl_transport(options, device,
                                         std::make_shared<FakeNccl>(fake_world(), device));
  }
  return make_transport(name, options);
}

/// A connected transport, or the test fails.
inline std::unique_ptr<Transport> connect(std::string_view name, const TransportOptions& options) {
  auto transport = open_transport(name, options);
  REQUIRE_MESSAGE(transport.ok(), transport.status().message());
  return std::move(*transport);
}

/// One thread a rank, all connected along the graph.
inline void run_nodes(std::string_view name, const Graph& graph, std::size_t max_payload_bytes,
                      const std::function<void(Rank, Transport&)>& node) {
  const auto store = make_memory_store();
  spawn(graph.nodes(), [&](Rank rank) {
    const auto transport = connect(name, options_for(graph, rank, store, max_payload_bytes));
    node(rank, *transport);
  });
}

/// The transports of this build, by name, but nccl, which needs a GPU a node (nccl_device_test.cc).
inline std::vector<std::string> available_transports() {
  std::vector<std::string> names;
  for (const TransportInfo& info : transports()) {
    if (info.available && info.name != "nccl") {
      names.emplace_back(info.name);
    }
  }
  return names;
}

inline bool have_zmq() {
  const auto names = available_transports();
  return std::find(names.begin(), names.end(), "zmq") != names.end();
}

/// All that keep the contract: the transports of this build, zmq with keys, and nccl over a fake.
inline std::vector<std::string> conforming_transports() {
  auto names = available_transports();
  if (have_zmq()) {
    names.emplace_back(kSecured);
  }
  names.emplace_back(kFakeNccl);
  return names;
}

}  // namespace sotto::test
