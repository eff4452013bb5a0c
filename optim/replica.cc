#include <sotto/optim/replica.h>

#include <fmt/format.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <sotto/optim/state_io.h>

namespace sotto {

std::uint64_t ModelVersion::before(Round round, std::span<const float> model) const {
  return round % kModelPeriod == 0 ? XXH3_64bits_withSeed(model.data(), model.size_bytes(), chain_)
                                   : chain_;
}

void ModelVersion::advance(const Update& update) {
  chain_ = XXH3_64bits_withSeed(update.encoding.data(), update.encoding.size(), update.version);
}

std::vector<Replica> make_replicas(const LocalNode& node) {
  std::vector<Replica> replicas;
  for (const Edge& edge : node.in_edges()) {
    replicas.push_back({.peer = edge.peer,
                        .weight = edge.weight,
                        .model = {node.x().begin(), node.x().end()},
                        .version = {}});
  }
  return replicas;
}

std::size_t max_update_bytes(const LocalNode& node) {
  return Update::kVersionBytes + node.compressor().max_bytes(node.dimension());
}

Update encode_update(LocalNode& node, const ModelVersion& version, std::span<const float> model,
                     std::span<const float> change, std::span<std::byte> payload) {
  Update update;
  update.version = version.before(node.round(), model);
  ByteWriter(payload).write(update.version);
  update.encoding = node.encode(change, payload.subspan(Update::kVersionBytes));
  return update;
}

Result<Update> open_update(Mailbox& mail, std::size_t edge, const Replica& replica) {
  ByteReader in(mail.payload(edge));
  Update update;
  update.version = in.read<std::uint64_t>();
  if (in.failed()) {
    return mail.refuse(edge, {Fault::malformed, "its payload is too short for a version"});
  }
  if (update.version != replica.version.before(mail.round(), replica.model)) {
    return mail.refuse(
        edge, {Fault::unexpected,
               fmt::format("it continues another model than the replica of node {} held here; all "
                           "nodes start from the same parameters, or from checkpoints of one round",
                           replica.peer)});
  }
  update.encoding = in.take(in.remaining());
  return update;
}

void save_replicas(std::span<const Replica> replicas, ByteBuffer& out) {
  out.write(std::uint64_t{replicas.size()});
  for (const Replica& replica : replicas) {
    out.write(replica.peer);
    replica.version.save(out);
    write_floats(replica.model, out);
  }
}

Status load_replicas(ByteReader& in, std::span<Replica> replicas) {
  const auto count = in.read<std::uint64_t>();
  if (in.failed() || count != replicas.size()) {
    return {Fault::malformed,
            fmt::format("checkpoint has replicas of {} neighbours where there are {}", count,
                        replicas.size())};
  }
  for (Replica& replica : replicas) {
    const auto peer = in.read<Rank>();
    replica.version.load(in);
    if (in.failed() || peer != replica.peer) {
      return {Fault::malformed, fmt::format("checkpoint has a replica of node {} where node {} is "
                                            "the neighbour",
                                            peer, replica.peer)};
    }
    if (Status status = read_floats(in, "replica", replica.model); !status) {
      return status;
    }
  }
  return {};
}

}  // namespace sotto
