// The parts that the benchmarks of strangers at a site's port share: a process of strangers beside
// the one that has the sites, and the ports of these.
#pragma once

#include <netinet/in.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <new>
#include <string>
#include <vector>

#include <sotto/base/check.h>

namespace sotto::bench {

/// An IPv4 address, `host` in the host's byte order.
inline sockaddr_in address_of(std::uint32_t host, int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(host);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  return address;
}

/// A TCP port of loopback that nobody uses. The socket that has it stays open, so that the system
/// gives the port to nobody else; a server that sets SO_REUSEADDR can listen at it.
inline int free_port() {
  const int holder = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int on = 1;
  sockaddr_in address = address_of(INADDR_LOOPBACK, 0);
  socklen_t size = sizeof address;
  auto* any = reinterpret_cast<sockaddr*>(&address);
  check(::setsockopt(holder, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0 &&
            ::bind(holder, any, size) == 0 && ::getsockname(holder, any, &size) == 0,
        "a free port");
  return ntohs(address.sin_port);
}

/// The greeting with which a ZMTP 3.1 client of the mechanism CURVE begins.
inline std::string curve_greeting() {
  std::string greeting(
      "\xFF\0\0\0\0\0\0\0\x01\x7F\x03\x01"
      "CURVE",
      17);
  greeting.resize(64);
  return greeting;
}

/// Lets this process, and those that it forks, open as many files as the system gives.
inline void raise_file_limit() {
  rlimit files{};
  (void)::getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  (void)::setrlimit(RLIMIT_NOFILE, &files);
}

/// Runs `attack(port, shared)`, which never returns, in a process of strangers and
/// `measure(ports, shared)`, which gives JSON, in this one: `ports` are those of two sites, the
/// first the one under attack. Prints the result, and writes it to `json` where that is not empty.
template <typename Shared, typename Attack, typename Measure>
void measure_beside(const std::string& json, const Attack& attack, const Measure& measure) {
  raise_file_limit();
  void* memory =
      ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  check(memory != MAP_FAILED, "shared memory");
  auto& shared = *new (memory) Shared;
  const std::vector<int> ports = {free_port(), free_port()};
  const pid_t strangers = ::fork();
  check(strangers >= 0, "a process for the strangers");
  if (strangers == 0) {
    attack(ports[0], shared);
  }
  const auto result = measure(ports, shared);
  (void)::kill(strangers, SIGKILL);
  (void)::waitpid(strangers, nullptr, 0);
  const std::string text = result.dump(2) + "\n";
  std::fputs(text.c_str(), stdout);
  if (!json.empty()) {
    std::ofstream(json) << text;
  }
}

}  // namespace sotto::bench
