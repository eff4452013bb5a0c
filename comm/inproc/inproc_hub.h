// Where the nodes of one inproc job meet, and what stands between two of them.
//
// Each node has an endpoint with a mutex of its own; nobody ever holds two of them, so they cannot
// deadlock. A sender copies its frame into the receiver's posted buffer, else into one of the
// receiver's few early places, else leaves a note and the receiver fetches the frame later.
//
// Thread safety: InprocHub all members; InprocEndpoint is guarded by its mutex.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include <sotto/base/float_vector.h>
#include <sotto/comm/transport.h>

#include "../internal/ledger.h"

namespace sotto::internal {

/// The frames that one sender has on their way to one receiver.
struct InprocInbox {
  struct Early {
    ExchangeTag tag;
    FrameVector frame;
  };
  /// A frame still in its sender's buffer.
  struct Note {
    ExchangeTag tag;
    std::span<const std::byte> frame;
  };
  std::deque<Early> early;
  std::deque<Note> notes;
};

/// One node's state, reached by its own thread and by those of its senders.
struct InprocEndpoint {
  explicit InprocEndpoint(const TransportOptions& options)
      : ledger(options), frames_ahead(options.frames_ahead) {
    for (const Rank peer : options.from) {
      inboxes[peer];
    }
  }

  /// True when its node is gone.
  bool left() {
    const std::lock_guard lock(mutex);
    return closed;
  }

  std::mutex mutex;
  std::condition_variable changed;
  Ledger ledger;
  const std::size_t frames_ahead;  ///< most frames in each inbox
  std::map<Rank, InprocInbox> inboxes;
  bool closed = false;
  bool interrupted = false;
};

class InprocHub {
 public:
  /// Enters a node. Throws Error when a living node already has this rank.
  void enter(Rank rank, std::shared_ptr<InprocEndpoint> endpoint);
  /// Waits for a node.
  Result<std::shared_ptr<InprocEndpoint>> meet(Rank rank, Deadline deadline);

 private:
  std::mutex mutex_;
  std::condition_variable entered_;
  std::map<Rank, std::shared_ptr<InprocEndpoint>> endpoints_;
};

}  // namespace sotto::internal
