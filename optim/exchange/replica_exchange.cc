#include <sotto/optim/exchange/replica_exchange.h>

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include <sotto/base/check.h>
#include <sotto/compress/none.h>
#include <sotto/optim/exchange/neighbours.h>
#include <sotto/optim/state_io.h>

namespace sotto {
namespace {

constexpr std::uint64_t kAsks = 1;  // in a version on the wire
constexpr std::size_t kUpdate = 0;  // parcels
constexpr std::size_t kWhole = 1;

bool has(std::span<const Edge> edges, Rank peer) {
  return std::binary_search(edges.begin(), edges.end(), Edge{peer, 0},
                            [](const Edge& a, const Edge& b) { return a.peer < b.peer; });
}

bool has(const std::vector<Rank>& ranks, Rank rank) {
  return std::find(ranks.begin(), ranks.end(), rank) != ranks.end();
}

std::size_t max_out_degree(const LocalNode& node) {
  std::size_t most = 0;
  for (Round round = 0; round < node.topology().period(); ++round) {
    most = std::max(most, node.topology().out_edges(node.rank(), round).size());
  }
  return most;
}

std::size_t max_prefix_bytes(const LocalNode& node) {
  return sizeof(std::uint64_t) + sizeof(std::uint32_t) + sizeof(Rank) * max_in_degree(node);
}

}  // namespace

Mailbox ReplicaExchange::make_mailbox(const LocalNode& node) {
  const std::size_t prefix = max_prefix_bytes(node);
  Mailbox mail(node, max_in_degree(node),
               std::vector<std::size_t>{prefix + node.compressor().max_bytes(node.dimension()),
                                        prefix + node.dimension() * sizeof(float)});
  mail.share_incoming(node.shared_frames());
  mail.share_outgoing(node.shared_frames());
  return mail;
}

ReplicaExchange::ReplicaExchange(LocalNode& node, Mailbox& mail, std::span<const float> start,
                                 Round lead)
    : node_(node), mail_(mail), lead_(lead), shared_(shared_models(node)) {
  pool_.resize(max_in_degree(node));
  for (Replica& replica : pool_) {
    if (shared_ != nullptr) {
      replica.shared = shared_->start(start, node.ops());
    } else {
      replica.model = Vector(start, node.ops());
    }
  }
  asking_.reserve(pool_.size());
  asked_by_.reserve(pool_.size());
  due_.reserve(pool_.size());
  choice_.reserve(max_out_degree(node));
  hold(graph().in_edges(rank(), 0));
}

void ReplicaExchange::hold(std::span<const Edge> edges) {
  for (Replica& replica : pool_) {
    if (!has(edges, replica.peer)) {
      replica.peer = Replica::kNobody;
    }
  }
  for (std::size_t k = 0; k < edges.size(); ++k) {
    const auto find = [&](Rank peer) {
      return std::find_if(pool_.begin() + static_cast<std::ptrdiff_t>(k), pool_.end(),
                          [peer](const Replica& replica) { return replica.peer == peer; });
    };
    auto at = find(edges[k].peer);
    if (at == pool_.end()) {
      at = find(Replica::kNobody);
      check(at != pool_.end(), "there are replicas for the largest degree");
      at->peer = edges[k].peer;
      at->state = node_.round() == 0 ? ReplicaState::good : ReplicaState::awaited;
    }
    at->weight = edges[k].weight;
    if (at != pool_.begin() + static_cast<std::ptrdiff_t>(k)) {
      std::swap(pool_[k], *at);
    }
  }
  held_ = edges.size();
}

Result<Update> ReplicaExchange::encode(std::span<const float> vector,
                                       const Compressor::Prepare& prepare, std::span<float> change,
                                       std::string_view what) {
  const Round next = node_.round() + lead_;
  asking_.clear();
  for (const Replica& replica : held()) {
    if (replica.state == ReplicaState::drifted &&
        has(graph().in_edges(rank(), next), replica.peer) &&
        has(graph().out_edges(rank(), next), replica.peer)) {
      asking_.push_back(replica.peer);
    }
  }
  if (node_.round() == 0) {
    // A node that becomes a neighbour with this exchange starts from this vector, too.
    for (Replica& replica : std::span(pool_).subspan(held_)) {
      if (shared_ != nullptr) {
        replica.shared = shared_->start(vector, node_.ops());
      } else {
        node_.ops().copy(vector, replica.model);
      }
    }
  }
  SharedModels::leave(own_, node_.ops());
  Update update;
  update.version = version_.before(node_.round(), vector, node_.ops());
  const auto payload = mail_.outgoing(kUpdate);
  const std::size_t prefix = write_prefix(update.version, payload);
  const auto encoding = node_.encoder().encode_made(prepare, change, payload.subspan(prefix), what);
  if (!encoding) {
    return encoding.status();
  }
  update.encoding = *encoding;
  update.payload_bytes = prefix + update.encoding.size();
  return update;
}

void ReplicaExchange::post(const Update& update, std::span<const float> vector) {
  version_.advance(update);
  if (shared_ != nullptr) {
    own_ = shared_->publish(rank(), version_.chain(), vector);
  }
  const Round next = node_.round() + lead_;
  const auto to = graph().out_edges(rank(), next);
  hold(graph().in_edges(rank(), next));
  due_.clear();
  for (Replica& replica : std::span(pool_).first(held_)) {
    if (replica.state == ReplicaState::asked) {
      replica.state = ReplicaState::awaited;
    } else if (has(asking_, replica.peer)) {
      replica.state = ReplicaState::asked;
    }
    due_.push_back(replica.state == ReplicaState::awaited ? kNoneWireId
                                                          : node_.compressor().wire_id());
  }
  std::array parcels = {
      Parcel{.elements = node_.dimension(), .payload_bytes = update.payload_bytes},
      Parcel{.elements = node_.dimension(), .compressor = kNoneWireId}};
  const bool whole = choose_parcels(to);
  if (whole) {
    parcels[kWhole].payload_bytes = write_whole(vector);
  }
  ExchangePlan plan = graph_plan(node_);
  plan.to = to;
  plan.from = graph().in_edges(rank(), next);
  plan.compressors_by_sender = due_;
  mail_.post_chosen(plan, std::span(parcels).first(whole ? 2 : 1), choice_);
  asked_by_.clear();
}

bool ReplicaExchange::choose_parcels(std::span<const Edge> to) {
  const Round round = node_.round();
  choice_.clear();
  for (const Edge& edge : to) {
    const bool is_new = round > 0 && !has(graph().out_edges(rank(), round + lead_ - 1), edge.peer);
    choice_.push_back(is_new || has(asked_by_, edge.peer) ? kWhole : kUpdate);
  }
  return std::find(choice_.begin(), choice_.end(), kWhole) != choice_.end();
}

std::size_t ReplicaExchange::write_whole(std::span<const float> vector) {
  const auto payload = mail_.outgoing(kWhole);
  const std::size_t prefix = write_prefix(version_.chain(), payload);
  node_.ops().to_host(vector, payload.subspan(prefix, vector.size_bytes()));
  return prefix + vector.size_bytes();
}

std::size_t ReplicaExchange::write_prefix(std::uint64_t version,
                                          std::span<std::byte> payload) const {
  ByteWriter out(payload);
  out.write(asking_.empty() ? version : version | kAsks);
  if (!asking_.empty()) {
    out.write(static_cast<std::uint32_t>(asking_.size()));
    for (const Rank peer : asking_) {
      out.write(peer);
    }
  }
  return out.position();
}

Status ReplicaExchange::read_prefix(std::span<const std::byte> payload, Update& update,
                                    bool& asks) const {
  ByteReader in(payload);
  const auto version = in.read<std::uint64_t>();
  update.version = version & ~kAsks;
  if ((version & kAsks) != 0) {
    const auto count = in.read<std::uint32_t>();
    for (std::uint32_t k = 0; k < count && !in.failed(); ++k) {
      asks |= in.read<Rank>() == rank() && !in.failed();
    }
  }
  if (in.failed()) {
    return {Fault::malformed, "its payload is too short for a version and what may follow it"};
  }
  update.encoding = in.take(in.remaining());
  update.payload_bytes = payload.size();
  return {};
}

Status ReplicaExchange::accept(const Exchange& exchange, const Apply& apply) {
  return mail_.accept(exchange, [&](std::size_t edge) { return take_frame(edge, apply); });
}

Status ReplicaExchange::take_frame(std::size_t edge, const Apply& apply) {
  Replica& replica = pool_[edge];
  Update update;
  bool asks = false;
  Status status = read_prefix(mail_.payload(edge), update, asks);
  if (status && replica.state == ReplicaState::awaited) {
    status = take_whole(update, replica);
  } else if (status && replica.good()) {
    if (update.version == replica.version.before(mail_.round(), replica.values(), node_.ops())) {
      status = take_update(update, replica, apply);
    } else {
      status = mark_drifted(replica);
    }
  }
  if (status && asks) {
    asked_by_.push_back(mail_.from()[edge].peer);
  }
  return status;
}

Status ReplicaExchange::take_update(const Update& update, Replica& replica, const Apply& apply) {
  ModelVersion next = replica.version;
  next.advance(update);
  return share(replica, next,
               [&](std::span<float> model) { return apply(update.encoding, model); });
}

Status ReplicaExchange::share(Replica& replica, ModelVersion version,
                              const std::function<Status(std::span<float> model)>& write) {
  SharedModels::Held known;
  if (shared_ != nullptr) {
    known = shared_->find(replica.peer, version.chain());
  }
  if (known != nullptr) {
    replica.shared = known;
  } else {
    const std::span<float> model =
        shared_ != nullptr ? SharedModels::own(replica.shared, node_.dimension(), node_.ops())
                           : std::span<float>(replica.model);
    if (Status status = write(model); !status.ok()) {
      return status;
    }
    if (shared_ != nullptr) {
      shared_->add(replica.peer, version.chain(), replica.shared);
    }
  }
  replica.version = version;
  return {};
}

Status ReplicaExchange::take_whole(const Update& update, Replica& replica) {
  const auto write = [&](std::span<float> model) {
    return decode_none(update.encoding, model, node_.ops());
  };
  if (Status status = share(replica, ModelVersion(update.version), write); !status.ok()) {
    return status.with_context("its vector");
  }
  replica.state = ReplicaState::good;
  return {};
}

Status ReplicaExchange::mark_drifted(Replica& replica) {
  if (mail_.round() == 0) {
    return {Fault::unexpected,
            fmt::format("it continues another model than the replica of node {} held here; all "
                        "nodes start from the same parameters",
                        replica.peer)};
  }
  const Round next = mail_.round() + 1 + lead_;
  if (has(graph().in_edges(rank(), next), replica.peer) &&
      !has(graph().out_edges(rank(), next), replica.peer)) {
    return {Fault::unexpected,
            fmt::format("it continues another model than the replica of node {} held here, and no "
                        "edge leads to that node to ask it for the whole one",
                        replica.peer)};
  }
  replica.state = ReplicaState::drifted;
  ++drifted_;
  return {};
}

void ReplicaExchange::save(ByteBuffer& out) const {
  out.write(version_.chain());
  out.write(std::uint64_t{asked_by_.size()});
  for (const Rank peer : asked_by_) {
    out.write(peer);
  }
  out.write(std::uint64_t{held_});
  for (const Replica& replica : held()) {
    save_replica(replica, out);
  }
}

Status ReplicaExchange::load(ByteReader& in) {
  const Round round = node_.round();
  hold(graph().in_edges(rank(), round == 0 ? 0 : round - 1 + lead_));
  version_ = ModelVersion(in.read<std::uint64_t>());
  const auto asks = in.read<std::uint64_t>();
  asked_by_.clear();
  for (std::uint64_t k = 0; k < asks && !in.failed(); ++k) {
    if (asked_by_.size() == asked_by_.capacity()) {
      return {Fault::malformed, "checkpoint has more nodes that ask than neighbours"};
    }
    asked_by_.push_back(in.read<Rank>());
  }
  const auto count = in.read<std::uint64_t>();
  if (in.failed() || count != held_) {
    return {
        Fault::malformed,
        fmt::format("checkpoint has replicas of {} neighbours where there are {}", count, held_)};
  }
  check(shared_ == nullptr, "a simulation that shares replicas loads no checkpoint");
  for (Replica& replica : std::span(pool_).first(held_)) {
    if (Status status = load_replica(in, replica); !status.ok()) {
      return status;
    }
  }
  return {};
}

}  // namespace sotto
