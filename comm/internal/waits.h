// How long transports and stores wait for neighbours and servers, also once a stop is requested.
// Pure functions; thread-safe. The stop request is the caller's, and must outlive the deadline.
#pragma once

#include <algorithm>

#include <sotto/comm/deadline.h>
#include <sotto/comm/transport.h>

namespace sotto::internal {

/// The deadline by which a transport that closes leaves what its peers have not taken.
inline Deadline closing_deadline(const TransportOptions& options) {
  const bool stopped = options.stop && options.stop();
  return stopped ? Deadline::after(std::min<Deadline::Clock::duration>(after_stop::kClose,
                                                                       options.close_timeout))
                 : Deadline::after(options.close_timeout, &options.stop);
}

/// The deadline of a store's server for its answer: a span from now, or until `stop`. A node that
/// still asks once a stop is requested wants to say why it leaves.
inline Deadline server_deadline(Deadline::Clock::duration span, const StopRequest& stop) {
  return stop && stop()
             ? Deadline::after(std::min<Deadline::Clock::duration>(span, after_stop::kStore))
             : Deadline::after(span, &stop);
}
/// The deadline of a look that has a deadline of its own; that one's stop request goes before the
/// store's.
inline Deadline server_deadline(Deadline::Clock::duration span, const StopRequest& stop,
                                const Deadline& look) {
  return look.stop() == nullptr ? server_deadline(span, stop) : Deadline::after(span, look.stop());
}

}  // namespace sotto::internal
