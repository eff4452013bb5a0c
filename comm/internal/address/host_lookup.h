// The addresses of a host by a deadline, though a call to a name server has none: a thread asks,
// and is left behind.
//
// Thread safety: one thread at a time. Ownership: shares the answer with the thread that asks;
// there is one at a time.
#pragma once

#include <functional>
#include <future>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <sotto/comm/deadline.h>

#include "address.h"

namespace sotto::internal {

class HostLookup {
 public:
  /// Asks for all addresses of a name; it may take its time. Is copied into the thread that asks.
  using Resolve = std::function<std::vector<Address>(const std::string&)>;

  explicit HostLookup(std::string host, Resolve resolve = resolve_all)
      : host_(std::move(host)), resolve_(std::move(resolve)) {}

  /// All addresses of the host, which are none where the name is unknown; no value: there is no
  /// answer by the deadline, and the next call waits for the same one. Asks anew after an answer.
  /// An address in numbers is there at once. Throws Shortage where no thread can ask.
  std::optional<std::vector<Address>> by(Deadline deadline);

 private:
  const std::string host_;
  const Resolve resolve_;
  std::future<std::vector<Address>> answer_;  ///< invalid: nobody is asked
};

}  // namespace sotto::internal
