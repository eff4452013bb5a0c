// Nodes with keys under a flood of connections that are nobody's.
#ifdef SOTTO_HAVE_ZMQ
#include <algorithm>
#include <array>
#include <atomic>
#include <deque>
#include <fstream>

#include <doctest/doctest.h>

#include <sotto/base/philox.h>

#include "outsider.h"
#include "raw_curve.h"

namespace sotto::test::flood_test {

namespace {

std::size_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  std::size_t all = 0;
  std::size_t resident = 0;
  file >> all >> resident;
  return resident * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

/// Noise; noise behind a greeting that is right; or the beginning of the longest command.
std::string garbage(RandomStream& random, int kind) {
  std::string words(kind % 3 == 2 ? 200'000 : random.below(4096), '\0');
  for (char& c : words) {
    c = static_cast<char>(random.next_u32());
  }
  if (kind % 3 == 2) {
    words.replace(0, 9, std::string("\x06\0\0\0\0\0\x03\xff\xff", 9));
  }
  const auto right = greeting("CURVE");
  const std::string_view text(reinterpret_cast<const char*>(right.data()), right.size());
  return kind % 3 == 0 ? words : std::string(text) + words;
}

/// A connection that never waits: it says what it has to say as far as it is let, and stays.
class Flood {
 public:
  Flood(int port, std::string words)
      : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)),
        words_(std::move(words)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    (void)::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address);
  }
  ~Flood() { ::close(socket_); }
  Flood(const Flood&) = delete;
  Flood& operator=(const Flood&) = delete;

  void push() {
    const auto sent = ::send(socket_, words_.data() + said_, words_.size() - said_, MSG_NOSIGNAL);
    said_ += sent > 0 ? static_cast<std::size_t>(sent) : 0;
  }

 private:
  int socket_;
  std::string words_;
  std::size_t said_ = 0;
};

}  // namespace

TEST_CASE("1,000 raw TCP connections with garbage: two nodes with keys go on, in bounded memory") {
  const std::uint64_t seed = 21;
  CAPTURE(seed);
  constexpr Round kRounds = 400;  // without the attack, and again under it
  constexpr int kBatches = 10;
  const std::array<int, 2> ports = {free_port(), free_port()};
  std::atomic<Round> done{0};
  std::array<std::chrono::steady_clock::time_point, 3> times;
  std::size_t before = 0;
  std::size_t most = 0;
  spawn(3, [&](Rank rank) {
    if (rank < 2) {
      const auto transport = connect("zmq", on_ring(rank, ports, 0));
      for (Round round = 0; round < 2 * kRounds; ++round) {
        if (rank == 0 && round % kRounds == 0) {
          times.at(round / kRounds) = std::chrono::steady_clock::now();
          before = round == kRounds ? resident_bytes() : before;
        }
        swap_frames(*transport, ring(2), rank, {.round = round}, 1000);
        if (rank == 0) {
          done = round + 1;
          done.notify_all();
          most = round >= kRounds ? std::max(most, resident_bytes()) : 0;
        }
      }
      if (rank == 0) {
        times[2] = std::chrono::steady_clock::now();
      }
      return;
    }
    RandomStream random({.seed = seed});
    for (Round batch = 0; batch < kBatches; ++batch) {
      for (Round now = done; now < kRounds + batch * kRounds / kBatches; now = done) {
        done.wait(now);
      }
      std::deque<Flood> flood;  // each hundred stays until it is the next one's turn
      for (int i = 0; i < 1000 / kBatches; ++i) {
        flood.emplace_back(ports[0], garbage(random, i));
      }
      for (Round now = done; now < kRounds + (batch + 1) * kRounds / kBatches; now = done) {
        for (Flood& connection : flood) {
          connection.push();
        }
        done.wait(now);
      }
    }
  });
  const auto seconds = [&](std::size_t from) {
    return std::chrono::duration<double>(times.at(from + 1) - times.at(from)).count();
  };
  MESSAGE("rounds a second without and with the garbage: ", kRounds / seconds(0), ", ",
          kRounds / seconds(1), "; memory grew by ", most - std::min(before, most), " bytes");
#ifndef SOTTO_SANITIZED
  CHECK(most - std::min(before, most) < (std::size_t{64} << 20));
#endif
}
#endif

}  // namespace sotto::test::flood_test
