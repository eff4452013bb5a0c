// How the nodes of a link between torch processes meet. A plain value.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include <sotto/base/ids.h>
#include <sotto/comm/deadline.h>
#include <sotto/comm/stores.h>
#include <sotto/comm/trust/security.h>

namespace sotto::torch {

/// Where a link's node is among the others, and how it reaches them. All but rank, bind and
/// security is the same at all nodes.
struct LinkPlace {
  /// This node, from 0 on; unset: as the launcher's variables say (RANK, WORLD_SIZE, MASTER_ADDR,
  /// MASTER_PORT; launcher.h).
  std::optional<Rank> rank{};
  std::optional<int> nodes{};      ///< number of nodes; unset: as the launcher or the link says
  std::string transport = "zmq";   ///< name of the transport (comm/transport.h)
  std::shared_ptr<Store> store{};  ///< store where the nodes meet; serves one link or run at a time
  std::string rendezvous{};        ///< URL of the store (stores.h) when `store` is null
  std::string bind = "127.0.0.1";  ///< address or interface to listen on
  bool insecure = false;           ///< allow listening beyond loopback without encryption
  std::optional<Security> security{};  ///< keys and the list of peers; needs the transport zmq
  /// How long other nodes may be silent; it must cover the slowest step of the slowest node.
  std::chrono::milliseconds timeout{60'000};
  /// Ends every wait for other nodes with Fault::stopped, and the link with it, once it answers
  /// true; asked some twenty times a second on whichever thread waits. Empty: no wait is ended.
  StopRequest interrupted{};
};

}  // namespace sotto::torch
