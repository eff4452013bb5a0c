#include "probe.h"

#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <limits>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include <sotto/base/elapsed.h>
#include <sotto/console/signals.h>

#include "probe_connection.h"

namespace sotto::netlab {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::size_t kPiece = 1U << 16U;

/// Closes without sending what is still to be sent.
void drop(FileDescriptor socket) {
  const linger now = {.l_onoff = 1, .l_linger = 0};
  ::setsockopt(socket.get(), SOL_SOCKET, SO_LINGER, &now, sizeof now);
}

/// The next to use the links shall find them empty.
void await_idle(const EmulatedNetwork& network, double patience_s) {
  const auto start = Clock::now();
  for (int quiet = 0; quiet < 3 && seconds_since(start) < patience_s;) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    quiet = network.idle() ? quiet + 1 : 0;
  }
}

Status no_answer(Host from, Host to) {
  return {Fault::deadline, fmt::format("nothing came from node {} to node {}", from, to)};
}

}  // namespace

Result<double> measure_round_trip(const EmulatedNetwork& network, Host from, Host to, int times,
                                  double patience_s) {
  auto connection = connect_hosts(network, from, to, patience_s);
  if (!connection) {
    return no_answer(from, to);
  }
  std::thread echo([&] {
    char byte = 0;
    while (::recv(connection->receiver.get(), &byte, 1, 0) == 1) {
      (void)::send(connection->receiver.get(), &byte, 1, MSG_NOSIGNAL);
    }
  });
  double best = std::numeric_limits<double>::infinity();
  for (int i = 0; i < times && !console::stop_requested(); ++i) {
    char byte = 0;
    const auto start = Clock::now();
    if (::send(connection->sender.get(), &byte, 1, MSG_NOSIGNAL) != 1 ||
        ::recv(connection->sender.get(), &byte, 1, 0) != 1) {
      best = std::numeric_limits<double>::infinity();
      break;
    }
    best = std::min(best, seconds_since(start));
  }
  ::shutdown(connection->sender.get(), SHUT_RDWR);
  ::shutdown(connection->receiver.get(), SHUT_RDWR);
  echo.join();
  await_idle(network, patience_s);
  return best < std::numeric_limits<double>::infinity() ? Result<double>(best)
                                                        : Result<double>(no_answer(from, to));
}

Result<double> measure_rate(const EmulatedNetwork& network, Host from, Host to, double warm_up_s,
                            double measured_s) {
  const double patience_s = 5 + warm_up_s + measured_s;
  auto connection = connect_hosts(network, from, to, patience_s);
  if (!connection) {
    return no_answer(from, to);
  }
  std::thread sender([&] {
    const std::vector<char> piece(kPiece);
    while (::send(connection->sender.get(), piece.data(), piece.size(), MSG_NOSIGNAL) > 0) {
    }
  });
  std::vector<char> room(kPiece);
  const auto receive = [&] { return ::recv(connection->receiver.get(), room.data(), kPiece, 0); };
  const auto start = Clock::now();
  ssize_t size = 1;
  while (size > 0 && seconds_since(start) < warm_up_s && !console::stop_requested()) {
    size = receive();
  }
  // From one arrival to another, so that both ends of the measured time mean the same.
  const auto begin = Clock::now();
  auto end = begin;
  double bytes = 0;
  while (size > 0 && seconds_since(begin) < measured_s && !console::stop_requested()) {
    size = receive();
    bytes += static_cast<double>(std::max<ssize_t>(size, 0));
    end = Clock::now();
  }
  ::shutdown(connection->sender.get(), SHUT_RDWR);
  ::shutdown(connection->receiver.get(), SHUT_RDWR);
  sender.join();
  drop(std::move(connection->sender));
  drop(std::move(connection->receiver));
  await_idle(network, patience_s);
  const double seconds = std::chrono::duration<double>(end - begin).count();
  return size > 0 && seconds > 0 ? Result<double>(bytes / seconds)
                                 : Result<double>(no_answer(from, to));
}

}  // namespace sotto::netlab
