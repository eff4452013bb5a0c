#include "way_out.h"

namespace sotto::internal {

bool WayOut::send(const channel_wire::Message& message) {
  const auto bytes = channel_wire::write(message);
  return answering() ? listener_.send(*route_, zmq::message_t(bytes.data(), bytes.size()))
                     : dialler_.connection()->send(bytes);
}

bool WayOut::writable() { return answering() || dialler_.connection()->writable(); }

}  // namespace sotto::internal
