// What links between torch processes have in common: how their nodes meet, and rounds, each of
// which is one exchange of the caller's.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <torch/types.h>

#include <sotto/base/ids.h>
#include <sotto/base/status.h>
#include <sotto/comm/session.h>
#include <sotto/comm/stores.h>
#include <sotto/comm/transport.h>
#include <sotto/comm/trust/security.h>
#include <sotto/optim/algorithm.h>
#include <sotto/trainers/driver.h>

namespace sotto::torch {

/// Where a link's node is among the others, and how it reaches them.
struct LinkPlace {
  std::optional<Rank> rank;  ///< unset: as the launcher says
  std::optional<int> nodes;  ///< unset: as the launcher says
  std::uint64_t run_id = 0;
  std::string transport;
  std::shared_ptr<Store> store;
  std::string rendezvous;
  std::string bind;
  bool insecure = false;
  std::optional<Security> security;
  std::chrono::milliseconds timeout{};
  StopRequest interrupted;
};

/// The place that a link's options say, in a link of `nodes` nodes.
template <typename Options>
LinkPlace place_of(const Options& options, std::optional<int> nodes, std::uint64_t run_id) {
  return {.rank = options.rank,
          .nodes = nodes,
          .run_id = run_id,
          .transport = options.transport,
          .store = options.store,
          .rendezvous = options.rendezvous,
          .bind = options.bind,
          .insecure = options.insecure,
          .security = options.security,
          .timeout = options.timeout,
          .interrupted = options.interrupted};
}

/// The place with what the launcher's variables say, and with a store. Throws Error (fields "rank"
/// and "nodes") where the node is unknown or none.
LinkPlace settled(LinkPlace place);

/// Rounds of a node's algorithm, which must outlive them.
class LinkRounds {
 public:
  /// Throws Error for a transport that is refused. The place is a settled one.
  LinkRounds(Algorithm& algorithm, LinkPlace place);

  /// Carries one round with `input` for its gradient. The nodes meet in the first one. Throws
  /// RunFault, as every later call does; this node has left by then, so that none waits for it.
  void carry(std::span<const float> input);
  /// Bytes of frames that this node has sent.
  std::uint64_t bytes_sent() const;

 private:
  TransportOptions options() const;
  /// Meets the other nodes, once.
  void connect();

  Algorithm* algorithm_;
  LinkPlace place_;
  Status failed_;
  std::shared_ptr<Session> session_;  // claims the node's rank as long as it lives
  std::unique_ptr<Transport> transport_;
  std::unique_ptr<Driver> driver_;
  std::uint64_t sent_before_ = 0;  // bytes of drivers that are gone
};

/// A tensor of rows of `width`, float32 on the CPU.
::torch::Tensor tensor_of(std::span<const float> values, std::size_t width);
/// The elements as float32, from whatever device.
std::vector<float> floats_of(const ::torch::Tensor& rows);

}  // namespace sotto::torch
