// Hands an exchange to another transport in parts, each send at its own time. What decorators of
// transports are built on.
//
// An exchange is reported done when all its parts are; a frame that waits here counts as not yet
// handed over. Frames go out while somebody polls: there is no thread.
//
// Thread safety: one thread. Ownership: owns the inner transport; frames stay the caller's.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <vector>

#include <sotto/comm/transport.h>

namespace sotto::test {

/// A send that waits for its time.
struct TimedSend {
  Send send;
  Deadline::Clock::time_point release;
};

class TimedSends {
 public:
  /// Throws Error for a transport that takes exchanges only whole.
  explicit TimedSends(std::unique_ptr<Transport> inner);

  const Transport& inner() const { return *inner_; }

  /// Posts the receives now, and each send when its time comes.
  Status post(const ExchangeTag& tag, std::vector<Receive> receives, std::vector<TimedSend> sends);
  Result<TransportEvent> poll(Deadline deadline);
  void interrupt() { inner_->interrupt(); }

 private:
  struct Waiting {
    ExchangeTag tag;
    Send send;
  };

  void release_due();
  bool holds_frame_for(Rank peer) const;

  std::unique_ptr<Transport> inner_;
  std::multimap<Deadline::Clock::time_point, Waiting> waiting_;
  std::map<ExchangeTag, std::size_t> parts_;  ///< of each exchange under way, not yet done
};

}  // namespace sotto::test
