#include "host_lookup.h"

#include <memory>
#include <utility>

#include <sotto/base/start_threads.h>

#include "tcp.h"

namespace sotto::internal {

std::optional<std::vector<Address>> HostLookup::by(Deadline deadline) {
  const Address as_numbers{.numeric = host_, .ipv6 = host_.find(':') != std::string::npos};
  if (numeric_address(as_numbers.endpoint("1")) != nullptr) {
    return std::vector{as_numbers};
  }
  if (!answer_.valid()) {
    auto answer = std::make_shared<std::promise<std::vector<Address>>>();
    auto coming = answer->get_future();
    start_thread("a name's look-up", [answer, host = host_, resolve = resolve_] {
      answer->set_value(resolve(host));
    }).detach();
    answer_ = std::move(coming);
  }
  while (answer_.wait_until(deadline.next_look()) != std::future_status::ready) {
    if (deadline.expired()) {
      return std::nullopt;
    }
  }
  return answer_.get();
}

}  // namespace sotto::internal
