// Shared by the algorithms on a graph: a node's peers, the plan of a round's exchange, and mixing
// in rank order.
//
// Building blocks of the algorithms, not for users. Thread-safe as far as their arguments are.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <sotto/optim/algorithm.h>
#include <sotto/optim/exchange/mailbox.h>
#include <sotto/optim/local_node.h>

namespace sotto {

/// Largest number of in-neighbours over all rounds.
std::size_t max_in_degree(const LocalNode& node);

/// All other nodes, in rank order, for exchanges that do not follow the graph.
std::vector<Edge> all_others(const LocalNode& node);

/// A mailbox for one frame of the whole model, the same to all other nodes.
Mailbox mailbox_to_all(const LocalNode& node);

/// Peers of a node that sends to, and hears, the same nodes in all rounds.
Peers peers_along(std::span<const Edge> edges, const Mailbox& mail);

/// A mailbox for one frame of the whole model, the same to all, along every edge of the graph.
Mailbox graph_mailbox(const LocalNode& node);

/// The peers of this node in the graph, over all rounds.
Peers graph_peers(const LocalNode& node, const Mailbox& mail);

/// One frame of the whole model along every edge of the round's graph.
ExchangePlan graph_plan(const LocalNode& node);

/// Finds the encoding in a payload.
using EncodingIn = std::span<const std::byte> (*)(std::span<const std::byte> payload);
/// The encoding in payloads that are an encoding and nothing else.
inline std::span<const std::byte> whole_payload(std::span<const std::byte> payload) {
  return payload;
}

/// y ← y + Σ_{j≠i} W_ij C_j over the frames of the exchange under way, in rank order. When a
/// payload is refused, y is spoilt and must be thrown away; the exchange stays open for a right
/// one.
Status decode_neighbours(const LocalNode& node, Mailbox& mail, std::span<float> y,
                         EncodingIn encoding_in = whole_payload);

}  // namespace sotto
