// What links between torch processes have in common: rounds, each of which is one exchange of the
// caller's.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <torch/types.h>

#include <sotto/base/status.h>
#include <sotto/comm/session.h>
#include <sotto/comm/transport.h>
#include <sotto/optim/algorithm.h>
#include <sotto/trainers/driver.h>
#include <sotto/trainers/torch/link_place.h>

namespace sotto::torch {

/// The place with what the launcher's variables say, and with a store. Throws Error (fields "rank"
/// and "nodes") where the node is unknown or none.
LinkPlace settled(LinkPlace place);

/// Rounds of a node's algorithm, which must outlive them.
class LinkRounds {
 public:
  /// Throws Error for a transport that is refused. The place is a settled one; `run_id` is that of
  /// the algorithm.
  LinkRounds(Algorithm& algorithm, LinkPlace place, std::uint64_t run_id);

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
  std::uint64_t run_id_;
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
