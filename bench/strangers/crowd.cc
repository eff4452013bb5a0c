// How long a site that starts again needs to be back in touch while strangers crowd the port of the
// other one.
//   build/bench/crowd [--strangers N] [--kind idle|greeting|garbage|mix] [--sources N|same]
//                     [--dials-only] [--descriptors N] [--restarts N] [--seconds S] [--json FILE]
//                     [--port P]
// The strangers are a process of their own, with a lower priority. Each dials again as soon as it
// is cut. `--sources N` spreads them over 127.1.0.1 and up; with `same` they have the address of
// the site that starts again, 127.0.0.1. The strangers have `--seconds` to settle in before it
// begins, and between two starts. With `--port P` they crowd that port of loopback until they are
// ended, and nothing is measured: for a site that runs elsewhere.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <sotto/base/check.h>
#include <sotto/base/error.h>
#include <sotto/base/number.h>
#include <sotto/comm/channels.h>
#include <sotto/comm/trust/key_file.h>

#include "bench/support/command_line.h"
#include "strangers.h"

namespace {

using namespace sotto;
using namespace sotto::bench;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

/// Beyond it a start counts as failed.
constexpr auto kPatience = 90s;

struct CrowdSettings {
  int strangers = 9000;
  std::string kind = "idle";
  std::string sources = "same";
  int restarts = 3;
  double seconds = 5;
  rlim_t descriptors =
      0;         ///< the most that the sites' process may have; 0: as many as the system gives
  int port = 0;  ///< the port that is crowded; 0: that of a site of its own
  bool dials_only = false;  ///< the list has no address for the site that starts again
  std::string json;
};

/// What both processes see.
struct CrowdCounts {
  std::atomic<std::uint64_t> dialled{0};
  std::atomic<std::uint64_t> cut{0};  ///< connections that the site cut
};

/// How many addresses the strangers have; 0: that of the sites. Throws Error.
std::uint32_t parse_sources(const std::string& text) {
  constexpr std::uint32_t kMostSources = 65'000;
  if (text == "same") {
    return 0;
  }
  const auto count = parse_number<std::uint32_t>(text, 1, kMostSources);
  if (!count) {
    refuse("sources", text, fmt::format("same, or 1 to {} addresses", kMostSources));
  }
  return *count;
}

std::string words_of(const std::string& kind, int number) {
  const std::string garbage(4096, '\x5A');
  const int way = kind == "idle" ? 0 : kind == "greeting" ? 1 : kind == "garbage" ? 2 : number % 3;
  return way == 0 ? "" : way == 1 ? curve_greeting() : garbage;
}

/// The strangers' process: never returns.
class Strangers {
 public:
  Strangers(const CrowdSettings& settings, int port, CrowdCounts& counts)
      : settings_(settings),
        sources_(parse_sources(settings.sources)),
        port_(port),
        counts_(counts) {}

  [[noreturn]] void attack() {
    (void)::prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)::setpriority(PRIO_PROCESS, 0, 10);
    items_.resize(static_cast<std::size_t>(settings_.strangers), pollfd{-1, 0, 0});
    for (;;) {
      for (std::size_t i = 0; i < items_.size(); ++i) {
        if (items_[i].fd < 0) {
          dial(i);
        }
      }
      (void)::poll(items_.data(), items_.size(), 50);
      for (std::size_t i = 0; i < items_.size(); ++i) {
        if (items_[i].revents != 0) {
          look(i);
        }
      }
    }
  }

 private:
  std::uint32_t source_of(std::size_t number) const {
    return sources_ > 0 ? 0x7F010001U + static_cast<std::uint32_t>(number) % sources_
                        : INADDR_LOOPBACK;
  }
  void dial(std::size_t number) {
    const int made = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    check(made >= 0, "a stranger's socket");
    const int on = 1;
    (void)::setsockopt(made, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on);
    const sockaddr_in from = address_of(source_of(number), 0);
    const sockaddr_in to = address_of(INADDR_LOOPBACK, port_);
    (void)::bind(made, reinterpret_cast<const sockaddr*>(&from), sizeof from);
    (void)::connect(made, reinterpret_cast<const sockaddr*>(&to), sizeof to);
    items_[number] = {made, POLLOUT, 0};
    ++counts_.dialled;
  }
  void look(std::size_t number) {
    pollfd& item = items_[number];
    char heard[256];
    if ((item.revents & POLLOUT) != 0 && (item.revents & (POLLERR | POLLHUP)) == 0) {
      const std::string words = words_of(settings_.kind, static_cast<int>(number));
      (void)::send(item.fd, words.data(), words.size(), MSG_NOSIGNAL);
      item.events = POLLIN;
      return;
    }
    const auto got = ::recv(item.fd, heard, sizeof heard, MSG_DONTWAIT);
    if (got == 0 || (got < 0 && errno != EAGAIN)) {
      ::close(item.fd);
      item = {-1, 0, 0};
      ++counts_.cut;
    }
  }

  const CrowdSettings& settings_;
  std::uint32_t sources_;
  const int port_;
  CrowdCounts& counts_;
  std::vector<pollfd> items_;
};

std::unique_ptr<Channels> open(const ChannelOptions& options) {
  auto made = make_channels(options);
  if (!made.ok()) {
    throw std::runtime_error(made.status().message());
  }
  return std::move(*made);
}

/// Until the channel is up; the patience when it is not by then.
double seconds_to_meet(Channels& end) {
  const auto start = Clock::now();
  while (Clock::now() - start < kPatience) {
    const auto event = end.poll(Deadline::after(50ms));
    if (event.ok() && event->kind == ChannelEvent::Kind::up) {
      break;
    }
  }
  return std::chrono::duration<double>(Clock::now() - start).count();
}

Json measure(const CrowdSettings& settings, const std::vector<int>& ports, CrowdCounts& counts) {
  const std::vector<KeyPair> keys = {make_key_pair(), make_key_pair()};
  std::vector<TrustedPeer> list;
  for (std::size_t i = 0; i < 2; ++i) {
    list.push_back(
        {.rank = static_cast<Rank>(i),
         .name = fmt::format("site-{}", i),
         .key = keys[i].public_key,
         .address = i == 1 && settings.dials_only ? "" : fmt::format("127.0.0.1:{}", ports[i])});
  }
  const auto options = [&](std::size_t i) {
    return ChannelOptions{.security = {keys[i], std::make_shared<AllowList>(list)},
                          .rank = static_cast<Rank>(i),
                          .max_message_bytes = 1 << 20,
                          .max_queued_bytes = 2 << 20};
  };
  const auto crowded = open(options(0));
  std::vector<double> times;
  for (int start = 0; start < settings.restarts; ++start) {
    std::this_thread::sleep_for(std::chrono::duration<double>(settings.seconds));
    const auto again = open(options(1));
    times.push_back(seconds_to_meet(*again));
  }
  rusage usage{};
  (void)::getrusage(RUSAGE_SELF, &usage);
  return {{"strangers", settings.strangers},
          {"kind", settings.kind},
          {"sources", settings.sources},
          {"seconds_to_meet", times},
          {"longest_s", *std::ranges::max_element(times)},
          {"dialled", counts.dialled.load()},
          {"cut", counts.cut.load()},
          {"cpu_s", static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec)},
          {"peak_mib", static_cast<double>(usage.ru_maxrss) / 1024}};
}

/// From now on this process can open as few files as the settings say.
void lower_file_limit(const CrowdSettings& settings) {
  rlimit files{};
  if (settings.descriptors > 0 && ::getrlimit(RLIMIT_NOFILE, &files) == 0) {
    files.rlim_cur = std::min(settings.descriptors, files.rlim_max);
    (void)::setrlimit(RLIMIT_NOFILE, &files);
  }
}

void run(const CrowdSettings& settings) {
  if (settings.port > 0) {
    raise_file_limit();
    CrowdCounts counts;
    Strangers(settings, settings.port, counts).attack();
  }
  measure_beside<CrowdCounts>(
      settings.json,
      [&](int port, CrowdCounts& counts) { Strangers(settings, port, counts).attack(); },
      [&](const std::vector<int>& ports, CrowdCounts& counts) {
        lower_file_limit(settings);
        return measure(settings, ports, counts);
      });
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app(
      "How long a site that starts again needs until it and its peer have met, in seconds, while "
      "strangers crowd the port of that peer; both sites are of this process",
      "crowd");
  CrowdSettings settings;
  app.add_option("--strangers", settings.strangers, "Connections of strangers at once")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  app.add_option("--kind", settings.kind, "What the strangers say")
      ->check(CLI::IsMember({"idle", "greeting", "garbage", "mix"}))
      ->capture_default_str();
  app.add_option("--sources", settings.sources,
                 "How many addresses the strangers have, or same: that of the sites")
      ->check(bench::readable_by(parse_sources))
      ->capture_default_str();
  app.add_flag("--dials-only", settings.dials_only, "The site that starts again has no address");
  app.add_option("--descriptors", settings.descriptors, "Of the sites' process");
  app.add_option("--restarts", settings.restarts, "Starts that are measured")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  app.add_option("--seconds", settings.seconds, "Before each start")
      ->check(CLI::Range(0.0, 86'400.0))
      ->capture_default_str();
  app.add_option("--port", settings.port, "Only crowd this port of loopback, until it is ended")
      ->check(CLI::Range(1, 65'535));
  app.add_option("--json", settings.json, "Write the result to this file")->type_name("FILE");
  return bench::run_main(app, argc, argv, [&] {
    run(settings);
    return console::kDone;
  });
}
