#include "way_out.h"

#include <utility>

namespace sotto::internal {

bool WayOut::send(const channel_wire::Message& message) {
  auto bytes = channel_wire::write_zmq(message);
  return answering() ? listener_.send(*route_, std::move(bytes))
                     : dialler_.connection()->send(std::move(bytes));
}

bool WayOut::writable() { return answering() || dialler_.connection()->writable(); }

}  // namespace sotto::internal
