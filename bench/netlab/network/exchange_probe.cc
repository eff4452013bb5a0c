#include "exchange_probe.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include <sotto/base/elapsed.h>
#include <sotto/console/signals.h>

#include "probe_connection.h"

namespace sotto::netlab {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::size_t kChunk = 1U << 16U;
constexpr int kLook_ms = 100;

/// One host's part: false when the other is gone or the time is over.
bool take_part(int socket, const ExchangePlan& plan, Clock::time_point start) {
  ::fcntl(socket, F_SETFL, ::fcntl(socket, F_GETFL) | O_NONBLOCK);
  std::vector<char> piece(kChunk);
  const std::vector<char> data(kChunk);
  for (int round = 0; round < plan.rounds; ++round) {
    std::uint64_t to_send = plan.bytes;
    std::uint64_t to_receive = plan.bytes;
    while (to_send > 0 || to_receive > 0) {
      pollfd watched = {.fd = socket,
                        .events = static_cast<short>(to_send > 0 ? POLLIN | POLLOUT : POLLIN),
                        .revents = 0};
      (void)::poll(&watched, 1, kLook_ms);
      if (seconds_since(start) > plan.patience_s || console::stop_requested()) {
        return false;
      }
      if ((watched.revents & POLLOUT) != 0) {
        const ssize_t sent =
            ::send(socket, data.data(), std::min<std::uint64_t>(to_send, kChunk), MSG_NOSIGNAL);
        to_send -= sent > 0 ? static_cast<std::uint64_t>(sent) : 0;
      }
      if ((watched.revents & ~POLLOUT) != 0) {
        const ssize_t received =
            ::recv(socket, piece.data(), std::min<std::uint64_t>(to_receive, kChunk), 0);
        if (received == 0) {
          return false;
        }
        to_receive -= received > 0 ? static_cast<std::uint64_t>(received) : 0;
        if (to_receive == 0 && to_send == 0) {
          break;
        }
      }
    }
  }
  return true;
}

}  // namespace

Result<double> measure_exchange(const EmulatedNetwork& network, const ExchangePlan& plan) {
  const auto connection = connect_hosts(network, plan.first, plan.second, plan.patience_s);
  bool first = false;
  bool second = false;
  double seconds = 0;
  if (connection) {
    const auto start = Clock::now();
    std::thread other([&] { second = take_part(connection->receiver.get(), plan, start); });
    first = take_part(connection->sender.get(), plan, start);
    other.join();
    seconds = seconds_since(start);
  }
  if (!first || !second) {
    return Status(Fault::deadline,
                  fmt::format("hosts {} and {} did not end their exchanges in {:.0f} s", plan.first,
                              plan.second, plan.patience_s));
  }
  return seconds;
}

}  // namespace sotto::netlab
