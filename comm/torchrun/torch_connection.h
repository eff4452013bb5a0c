// One connection to a TCPStore of PyTorch's. It sends and receives whole runs of bytes, and knows
// nothing of what they mean.
//
// One thread at a time. Once a call has failed, answers may come that nobody waits for any more:
// the connection is of no more use.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include <sotto/base/file_descriptor.h>
#include <sotto/base/status.h>
#include <sotto/comm/deadline.h>

namespace sotto::internal {

class TorchConnection {
 public:
  /// Connects to "tcp://ADDRESS:PORT", numbers only. Fault::io where nobody takes the connection.
  static Result<TorchConnection> open(const std::string& endpoint, Deadline deadline);

  /// Fault::io where the server closes the connection or takes nothing until the deadline.
  Status send(std::span<const std::byte> bytes, Deadline deadline) const;
  /// Fills `bytes`. Fault::io where the server closes the connection, Fault::deadline where not all
  /// comes in time.
  Status receive(std::span<std::byte> bytes, Deadline deadline) const;

 private:
  explicit TorchConnection(FileDescriptor socket) : socket_(std::move(socket)) {}

  FileDescriptor socket_;
};

}  // namespace sotto::internal
