#include <sotto/optim/exchange/replica.h>

#include <vector>

#include <fmt/format.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <sotto/optim/state_io.h>

namespace sotto {
namespace {

std::uint64_t digest(const void* data, std::size_t bytes, std::uint64_t seed) {
  return XXH3_64bits_withSeed(data, bytes, seed) & ~std::uint64_t{1};
}

}  // namespace

std::uint64_t ModelVersion::before(Round round, std::span<const float> model,
                                   const Ops& ops) const {
  if (round % kModelPeriod != 0) {
    return chain_;
  }
  std::vector<float> room;
  const auto here = on_host(model, ops, room);
  return digest(here.data(), here.size_bytes(), chain_);
}

void ModelVersion::advance(const Update& update) {
  chain_ = digest(update.encoding.data(), update.encoding.size(), update.version);
}

void save_replica(const Replica& replica, ByteBuffer& out) {
  out.write(replica.peer);
  out.write(replica.version.chain());
  out.write(static_cast<std::uint8_t>(replica.state));
  write_floats(replica.model, out);
}

Status load_replica(ByteReader& in, Replica& replica) {
  const auto peer = in.read<Rank>();
  const auto chain = in.read<std::uint64_t>();
  const auto state = in.read<std::uint8_t>();
  if (in.failed() || peer != replica.peer) {
    return {Fault::malformed, fmt::format("checkpoint has a replica of node {} where node {} is "
                                          "the neighbour",
                                          peer, replica.peer)};
  }
  // Between rounds no exchange is under way, so that nothing is awaited.
  if (state >= static_cast<std::uint8_t>(ReplicaState::awaited)) {
    return {Fault::malformed, fmt::format("checkpoint has a replica in state {}", state)};
  }
  replica.version = ModelVersion(chain);
  replica.state = static_cast<ReplicaState>(state);
  return read_floats(in, "replica", replica.model);
}

}  // namespace sotto
