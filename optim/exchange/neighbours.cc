#include <sotto/optim/exchange/neighbours.h>

#include <algorithm>

namespace sotto {

std::size_t max_in_degree(const LocalNode& node) {
  std::size_t most = 0;
  for (Round round = 0; round < node.topology().period(); ++round) {
    most = std::max(most, node.topology().in_edges(node.rank(), round).size());
  }
  return most;
}

std::vector<Edge> all_others(const LocalNode& node) {
  std::vector<Edge> edges;
  for (Rank peer = 0; peer < node.nodes(); ++peer) {
    if (peer != node.rank()) {
      edges.push_back({peer, 1});
    }
  }
  return edges;
}

Mailbox mailbox_to_all(const LocalNode& node) {
  return {node, static_cast<std::size_t>(node.nodes()) - 1,
          node.compressor().max_bytes(node.dimension())};
}

Peers peers_along(std::span<const Edge> edges, const Mailbox& mail) {
  Peers peers{.to = {}, .from = {}, .max_frame_bytes = mail.max_frame_bytes()};
  for (const Edge& edge : edges) {
    peers.to.push_back(edge.peer);
  }
  peers.from = peers.to;
  return peers;
}

Mailbox graph_mailbox(const LocalNode& node) {
  Mailbox mail(node, max_in_degree(node), node.compressor().max_bytes(node.dimension()));
  mail.share_incoming(node.shared_frames());
  return mail;
}

Peers graph_peers(const LocalNode& node, const Mailbox& mail) {
  return {.to = node.topology().out_peers(node.rank()),
          .from = node.topology().in_peers(node.rank()),
          .max_frame_bytes = mail.max_frame_bytes()};
}

ExchangePlan graph_plan(const LocalNode& node) {
  return {.tag = {.round = node.round(), .phase = 0, .bucket = node.bucket()},
          .compressor = node.compressor().wire_id(),
          .to = node.out_edges(),
          .from = node.in_edges(),
          .elements_out = node.dimension(),
          .elements_in = node.dimension()};
}

Status decode_neighbours(const LocalNode& node, Mailbox& mail, std::span<float> y,
                         EncodingIn encoding_in) {
  for (std::size_t edge = 0; edge < mail.from().size(); ++edge) {
    const Status decoded =
        node.compressor().decode_add(encoding_in(mail.payload(edge)), mail.from()[edge].weight, y);
    if (!decoded.ok()) {
      return mail.refuse(edge, decoded);
    }
  }
  return {};
}

}  // namespace sotto
