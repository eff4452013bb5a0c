#include <sotto/optim/exchange/replica.h>

#include <vector>

#include <fmt/format.h>

#include <sotto/base/xxh3.h>
#include <sotto/optim/state_io.h>

namespace sotto {
namespace {

std::uint64_t digest(std::span<const std::byte> bytes, std::uint64_t seed) {
  return xxh3(bytes, seed) & ~std::uint64_t{1};
}

}  // namespace

std::uint64_t ModelVersion::before(Round round, std::span<const float> model,
                                   const Ops& ops) const {
  if (round % kModelPeriod != 0) {
    return chain_;
  }
  std::vector<float> room;
  return digest(std::as_bytes(on_host(model, ops, room)), chain_);
}

void ModelVersion::advance(const Update& update) {
  chain_ = digest(update.encoding, update.version);
}

void save_replica(const Replica& replica, ByteBuffer& out) {
  out.write(replica.peer);
  out.write(replica.version.chain());
  out.write(static_cast<std::uint8_t>(replica.state));
  if (replica.shared != nullptr) {
    write_floats(replica.shared->values, out);
  } else {
    write_floats(replica.model, out);  // which may be a device's
  }
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
