// Waits for the operations with one peer, so that a node can wait for all its peers at once.
//
// Gloo offers a wait for one operation only, and closes every connection when that wait times out.
// So a thread for each peer waits without a limit and reports what ended, in the order of posting;
// the limits are kept by the reader of the reports.
//
// Thread safety: Reports all members; of Waiter add, besides one thread. Ownership: a Waiter owns
// the operations given to it; the frames stay the caller's.
#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>

#include <gloo/transport/unbound_buffer.h>

#include <sotto/base/exchange.h>
#include <sotto/comm/deadline.h>

namespace sotto::internal {

enum class Use {
  send,
  receive,
  presence,  ///< a receive that ends when the peer leaves: done in good order, failed otherwise
  farewell,  ///< a receive that ends when the peer has taken all that was sent to it
  notice,    ///< a send that nobody waits for
};

struct Operation {
  Use use = Use::send;
  ExchangeTag tag;
  std::shared_ptr<gloo::transport::UnboundBuffer> buffer;
};

/// How an operation ended.
struct Report {
  Rank peer = -1;
  Use use = Use::send;
  ExchangeTag tag;
  std::span<const std::byte> memory;   ///< the whole buffer of the operation
  std::optional<std::string> failure;  ///< reason why the peer is gone
};

/// The report of an operation that ended without a failure.
Report report_of(Rank peer, const Operation& operation);

class Reports {
 public:
  void push(Report report);
  /// The next report, or nothing at the deadline or after interrupt().
  std::optional<Report> pop(Deadline deadline);
  /// Ends a pop that waits, or else the next one that would.
  void interrupt();
  /// Whether interrupt() was called since this was asked last.
  bool take_interruption();

 private:
  std::mutex mutex_;
  std::condition_variable pushed_;
  std::deque<Report> reports_;
  bool interrupted_ = false;
};

class Waiter {
 public:
  /// `reports` must outlive the waiter.
  Waiter(Rank peer, Reports& reports);
  /// Stops. The connection must be gone by then, or the operations over: they are destroyed.
  ~Waiter();
  Waiter(const Waiter&) = delete;
  Waiter& operator=(const Waiter&) = delete;

  void add(Operation operation);
  /// Ends the thread, whatever it waits for. Nothing is reported afterwards.
  void stop();

 private:
  void run();

  const Rank peer_;
  Reports& reports_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Operation> operations_;
  bool stopping_ = false;
  std::thread thread_;
};

/// Gloo's message without the place in Gloo's source that stands in front of it.
std::string plain_message(const std::exception& failure);

}  // namespace sotto::internal
