#include "lookup.h"

#include <atomic>

#include <fmt/format.h>

#include <sotto/base/check.h>
#include <sotto/base/error.h>
#include <sotto/base/start_threads.h>

#include "../../internal/address/address.h"
#include "../../internal/address/host_port.h"
#include "../../internal/address/tcp.h"

namespace sotto::internal {

struct Lookup::Answer {
  std::vector<std::string> endpoints;
  std::atomic<bool> done{false};
};

Lookup::Lookup(const std::string& host_port) : answer_(std::make_shared<Answer>()) {
  const auto parsed = parse_host_port(host_port);
  if (!parsed) {
    answer_->done = true;
    return;
  }
  const Address as_numbers{.numeric = parsed->host,
                           .ipv6 = parsed->host.find(':') != std::string::npos};
  const auto port = fmt::to_string(parsed->port);
  if (numeric_address(as_numbers.endpoint(port)) != nullptr) {
    answer_->endpoints = {as_numbers.endpoint(port)};
    answer_->done = true;
    return;
  }
  const auto find = [answer = answer_, host = parsed->host, port] {
    for (const Address& address : resolve_all(host)) {
      answer->endpoints.push_back(address.endpoint(port));
    }
    answer->done = true;
  };
  try {
    start_thread("a name's look-up", find).detach();
  } catch (const Shortage&) {
    answer_->done = true;  // for now
  }
}

bool Lookup::done() const { return answer_->done; }

std::vector<std::string> Lookup::endpoints() const {
  check(done(), "the answer has come");
  return answer_->endpoints;
}

}  // namespace sotto::internal
