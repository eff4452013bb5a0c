// A TCP connection to each neighbour that says how long its next frame is, which node leaves, which
// gave up, and which is gone.
//
// NCCL's own messages show none of it: both ends must know a message's length, and a group waits
// for a node that left as for one that is slow, and where frames move through memory that two
// processes share, for one that died too. The kernel closes the connection of a process that ends,
// whichever way, and its keep-alive finds hosts that are gone. Nothing but these few messages goes
// over it.
//
// Neighbours find each other as other transports' do (internal/meeting/rendezvous.h), and prove by
// a number drawn for the pair that they are the nodes that met. As NCCL's, its connections are for
// one trusted cluster.
//
// Thread safety: connect, then one thread; wake() from any. Ownership: its sockets.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <sotto/base/file_descriptor.h>
#include <sotto/comm/transport.h>

#include "../internal/address/address.h"
#include "../internal/wakeup.h"
#include "carrier.h"

namespace sotto::internal {

/// A message from one node to another.
struct Notice {
  enum class Kind : std::uint8_t {
    leaving = 1,  ///< it leaves in good order, after the frames that it counts
    taken = 2,    ///< it has received the frames that it counts
    /// It gave up its communicator after the frames that it counts, because of `cause`.
    aborted = 3,
    frame = 4,  ///< the length of its next frame to this peer is `bytes`
  };
  Kind kind = Kind::leaving;
  FrameCounts counts{};  ///< frames that the sender of the notice has sent and received
  Rank cause = -1;
  std::uint64_t bytes = 0;
};

struct News {
  Rank peer = -1;
  std::optional<Notice> notice;  ///< the notice; none: the connection ended
  std::string reason;            ///< reason why the connection ended
};

class ControlLinks {
 public:
  explicit ControlLinks(const TransportOptions& options);
  ControlLinks(const ControlLinks&) = delete;
  ControlLinks& operator=(const ControlLinks&) = delete;

  /// Meets all neighbours and connects to them. Throws Error where the address cannot be bound.
  Status connect(const Address& address, Deadline deadline);
  /// The longest frame of the pair, in either direction.
  std::size_t message_bytes(Rank peer) const { return links_.at(peer).message_bytes; }

  /// The news so far; waits at most this long for the first.
  std::vector<News> wait(Deadline::Clock::duration at_most);
  /// Ends a wait, or else the next one that would.
  void wake();
  /// A peer that is gone is told nothing; one that takes no more is gone, as its news will say.
  void tell(Rank peer, const Notice& notice);

 private:
  static constexpr std::size_t kNoticeBytes = 32;
  struct Link {
    FileDescriptor socket;
    std::size_t message_bytes = 0;
    std::array<std::byte, kNoticeBytes> begun{};  ///< bytes of the notice that is coming in
    std::size_t have = 0;
    bool stuck = false;  ///< the socket did not take a notice
  };

  Status listen(const Address& address);
  Status dial(Rank peer, const std::string& endpoint, std::uint64_t token, Deadline deadline);
  Status accept_all(Deadline deadline);
  /// Takes a connection if it proves to be of a neighbour that is still missing.
  void admit(FileDescriptor socket, Deadline deadline);
  void keep(Rank peer, FileDescriptor socket);
  void read(Rank peer, Link& link, std::vector<News>& news);

  const TransportOptions& options_;
  FileDescriptor listener_;
  Wakeup wakeup_;
  std::string endpoint_;
  std::map<Rank, std::uint64_t> tokens_;  ///< number that each peer is to show
  std::map<Rank, Link> links_;
};

}  // namespace sotto::internal
