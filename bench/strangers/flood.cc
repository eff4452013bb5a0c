// Two sites at full rate, with and without strangers who keep a thousand connections of garbage at
// the port of one of them: what is left of the rate, and what it costs in memory.
//   build/bench/flood [--connections N] [--seconds S] [--pairs P] [--message BYTES] [--json FILE]
// Quiet and flooded stretches take turns; the ratio is that of their medians. The strangers are a
// process of their own, with a lower priority, as elsewhere they would have their own machine.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <sotto/base/check.h>
#include <sotto/base/philox.h>
#include <sotto/comm/channels.h>
#include <sotto/comm/trust/key_file.h>

#include "bench/support/command_line.h"
#include "bench/support/quantile.h"
#include "strangers.h"

namespace {

using namespace sotto;
using namespace sotto::bench;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

struct FloodSettings {
  int connections = 1000;
  double seconds = 2;
  int pairs = 5;
  std::size_t message = std::size_t{1} << 20;
  std::string json;
};

/// What both processes see.
struct FloodCounts {
  std::atomic<bool> attack{false};
  std::atomic<std::uint64_t> dialled{0};
  std::atomic<std::uint64_t> cut{0};  ///< connections that the site cut
  std::atomic<std::uint64_t> bytes{0};
};

/// Noise; noise behind a greeting that is right; or the beginning of the longest command.
std::string garbage(RandomStream& random, int kind) {
  std::string words(kind % 3 == 2 ? 200'000 : 4096, '\0');
  for (char& c : words) {
    c = static_cast<char>(random.next_u32());
  }
  if (kind % 3 == 2) {
    words.replace(0, 9, std::string("\x06\0\0\0\0\0\x03\xff\xff", 9));
  }
  return kind % 3 == 0 ? words : curve_greeting() + words;
}

/// One of the strangers' connections: it says what it may say, and comes again when it is cut.
class Stranger {
 public:
  Stranger(int port, std::string words) : port_(port), words_(std::move(words)) {}
  ~Stranger() { hang_up(); }
  Stranger(const Stranger&) = delete;
  Stranger& operator=(const Stranger&) = delete;

  void push(FloodCounts& counts) {
    if (socket_ < 0) {
      dial(counts);
      return;
    }
    const auto sent = ::send(socket_, words_.data() + said_, words_.size() - said_, MSG_NOSIGNAL);
    if (sent > 0) {
      said_ += static_cast<std::size_t>(sent);
      counts.bytes += static_cast<std::uint64_t>(sent);
    }
    char heard[256];
    const auto got = ::recv(socket_, heard, sizeof heard, 0);
    const bool broken = got == 0 || (got < 0 && errno != EAGAIN && errno != ENOTCONN);
    if (broken) {
      hang_up();
      ++counts.cut;
    }
  }
  void hang_up() {
    if (socket_ >= 0) {
      ::close(socket_);
    }
    socket_ = -1;
  }

 private:
  void dial(FloodCounts& counts) {
    socket_ = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    const sockaddr_in address = address_of(INADDR_LOOPBACK, port_);
    (void)::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address);
    said_ = 0;
    ++counts.dialled;
  }

  int port_;
  std::string words_;
  int socket_ = -1;
  std::size_t said_ = 0;
};

/// The strangers' process: never returns.
[[noreturn]] void attack(const FloodSettings& settings, int port, FloodCounts& counts) {
  (void)::prctl(PR_SET_PDEATHSIG, SIGKILL);
  (void)::setpriority(PRIO_PROCESS, 0, 10);
  RandomStream random({.seed = 21});
  std::vector<std::unique_ptr<Stranger>> strangers;
  strangers.reserve(static_cast<std::size_t>(settings.connections));
  for (int i = 0; i < settings.connections; ++i) {
    strangers.push_back(std::make_unique<Stranger>(port, garbage(random, i)));
  }
  while (true) {
    for (const auto& stranger : strangers) {
      if (counts.attack) {
        stranger->push(counts);
      } else {
        stranger->hang_up();
      }
    }
    std::this_thread::sleep_for(25ms);
  }
}

/// A site that sends whenever it may, and counts what it hears.
class Site {
 public:
  Site(ChannelOptions options, std::size_t message) : message_(message, std::byte{7}) {
    const Rank peer = 1 - options.rank;
    auto made = make_channels(options);
    if (!made.ok()) {
      throw std::runtime_error(made.status().message());
    }
    channels_ = std::move(*made);
    thread_ = std::thread([this, peer] { run(peer); });
  }
  ~Site() {
    stop_ = true;
    thread_.join();
  }
  Site(const Site&) = delete;
  Site& operator=(const Site&) = delete;

  std::uint64_t heard() const { return heard_; }
  std::uint64_t downs() const { return downs_; }
  bool up() const { return up_; }

 private:
  void run(Rank peer) {
    while (!stop_) {
      while (up_ && channels_->send(peer, message_).ok()) {
      }
      const auto event = channels_->poll(Deadline::after(2ms));
      if (!event.ok()) {
        continue;
      }
      if (event->kind == ChannelEvent::Kind::message) {
        heard_ += event->message.size();
      } else {
        up_ = event->kind == ChannelEvent::Kind::up;
        downs_ += up_ ? 0 : 1;
      }
    }
  }

  const std::vector<std::byte> message_;
  std::unique_ptr<Channels> channels_;
  std::atomic<bool> stop_{false};
  std::atomic<bool> up_{false};
  std::atomic<std::uint64_t> heard_{0};
  std::atomic<std::uint64_t> downs_{0};
  std::thread thread_;
};

double peak_mib() {
  rusage usage{};
  (void)::getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

/// Processor seconds of this process, all its threads.
double cpu_seconds() {
  rusage usage{};
  (void)::getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         1e-6 * static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

/// What both sites hear, in MiB.
struct Rate {
  double per_s = 0;
  double per_cpu_s =
      0;  ///< over this process's own processor time, so that other programs do not count
};

Rate rate(const Site& a, const Site& b, double seconds) {
  std::this_thread::sleep_for(300ms);  // what the stretch before has left
  const auto before = a.heard() + b.heard();
  const auto start = Clock::now();
  const double cpu = cpu_seconds();
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  const double mib = static_cast<double>(a.heard() + b.heard() - before) / (1 << 20);
  return {mib / std::chrono::duration<double>(Clock::now() - start).count(),
          mib / (cpu_seconds() - cpu)};
}

/// The stretches of one kind.
struct Stretches {
  std::vector<double> per_s;
  std::vector<double> per_cpu_s;
  void add(const Rate& rate) {
    per_s.push_back(rate.per_s);
    per_cpu_s.push_back(rate.per_cpu_s);
  }
};

Json measure(const FloodSettings& settings, const std::vector<int>& ports, FloodCounts& counts) {
  const std::vector<KeyPair> keys = {make_key_pair(), make_key_pair()};
  std::vector<TrustedPeer> list;
  for (std::size_t i = 0; i < 2; ++i) {
    list.push_back({.rank = static_cast<Rank>(i),
                    .name = fmt::format("site-{}", i),
                    .key = keys[i].public_key,
                    .address = fmt::format("127.0.0.1:{}", ports[i])});
  }
  const auto options = [&](std::size_t i) {
    return ChannelOptions{.security = {keys[i], std::make_shared<AllowList>(list)},
                          .rank = static_cast<Rank>(i),
                          .max_message_bytes = settings.message,
                          .max_queued_bytes = 2 * settings.message};
  };
  const Site a(options(0), settings.message);
  const Site b(options(1), settings.message);
  while (!a.up() || !b.up()) {
    std::this_thread::sleep_for(1ms);
  }
  Stretches quiet;
  Stretches flooded;
  (void)rate(a, b, settings.seconds);
  const double before = peak_mib();
  for (int pair = 0; pair < settings.pairs; ++pair) {
    counts.attack = false;
    quiet.add(rate(a, b, settings.seconds));
    counts.attack = true;
    flooded.add(rate(a, b, settings.seconds));
  }
  counts.attack = false;
  return {{"connections", settings.connections},
          {"message_bytes", settings.message},
          {"quiet_mib_s", quiet.per_s},
          {"flooded_mib_s", flooded.per_s},
          {"ratio", median(flooded.per_s) / median(quiet.per_s)},
          {"quiet_mib_cpu_s", quiet.per_cpu_s},
          {"flooded_mib_cpu_s", flooded.per_cpu_s},
          {"ratio_per_cpu", median(flooded.per_cpu_s) / median(quiet.per_cpu_s)},
          {"peak_mib_before", before},
          {"peak_mib", peak_mib()},
          {"channel_downs", a.downs() + b.downs()},
          {"dialled", counts.dialled.load()},
          {"cut", counts.cut.load()},
          {"garbage_mib", static_cast<double>(counts.bytes.load()) / (1 << 20)}};
}

void run(const FloodSettings& settings) {
  measure_beside<FloodCounts>(
      settings.json, [&](int port, FloodCounts& counts) { attack(settings, port, counts); },
      [&](const std::vector<int>& ports, FloodCounts& counts) {
        return measure(settings, ports, counts);
      });
}

}  // namespace

int main(int argc, char** argv) {
  FloodSettings settings;
  CLI::App app("Two sites at full rate under a flood of connections", "flood");
  app.add_option("--connections", settings.connections, "Connections that the strangers keep")
      ->check(CLI::Range(0, 20'000));
  app.add_option("--seconds", settings.seconds, "Length of a stretch")
      ->check(CLI::Range(0.1, 600.0));
  app.add_option("--pairs", settings.pairs, "Quiet and flooded stretches")
      ->check(CLI::Range(1, 1000));
  app.add_option("--message", settings.message, "Bytes of a message")
      ->check(CLI::Range(1, 1 << 26));
  app.add_option("--json", settings.json, "Write the result here too");
  return bench::run_main(app, argc, argv, [&] {
    run(settings);
    return console::kDone;
  });
}
