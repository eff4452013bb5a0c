// The few calls of NCCL that the transport needs. One implementation calls NCCL
// (library/nccl_library.cc); tests have one whose ranks are threads or processes without a GPU.
//
// Communicators do not block: a call that begins something leaves it "under way", and until
// settled() says true no other call on this communicator is allowed but settled() and abort().
// Sends and receives of a pair are matched in the order of their calls, and must be of one length.
// Those of one group move together, those of different groups of one communicator one group after
// the other.
//
// Faults are Fault::io with NCCL's own words. Thread safety: one thread a communicator. Ownership:
// a communicator lives until destroy() or abort().
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>

#include <sotto/base/ids.h>
#include <sotto/base/status.h>

#include "../gpu/device.h"

struct ncclComm;

namespace sotto::internal {

using Communicator = ncclComm*;
/// The name of a communicator, for all ranks that are to be in it.
using CommunicatorId = std::array<std::byte, 128>;

class NcclApi {
 public:
  virtual ~NcclApi() = default;

  /// Called by one rank, which hands the id to the others.
  virtual Result<CommunicatorId> make_id() = 0;
  /// Begins to join; all `ranks` of them must.
  virtual Result<Communicator> join(int ranks, const CommunicatorId& id, Rank rank) = 0;
  /// True when the last call is over, false while it is under way, and a fault once the
  /// communicator is broken, by whatever rank or wire.
  virtual Result<bool> settled(Communicator communicator) = 0;

  virtual Status begin_group() = 0;
  virtual Status send(std::span<const std::byte> memory, Rank to, Communicator communicator,
                      DeviceStream stream) = 0;
  virtual Status receive(std::span<std::byte> memory, Rank from, Communicator communicator,
                         DeviceStream stream) = 0;
  /// Must follow begin_group whatever came between.
  virtual Status end_group() = 0;

  /// Begins to flush what is under way on this rank.
  virtual Status finalize(Communicator communicator) = 0;
  /// Ends the communicator; only where finalize() was the last call, and has settled.
  virtual void destroy(Communicator communicator) = 0;
  /// Ends what is under way, and the communicator.
  virtual void abort(Communicator communicator) = 0;
};

/// NCCL itself.
std::shared_ptr<NcclApi> make_nccl_library();

}  // namespace sotto::internal
