// The parts that the benchmarks of strangers at a site's port share: a process of strangers beside
// the one that has the sites, and the ports of these.
#pragma once

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <new>
#include <string>
#include <vector>

#include <sotto/base/check.h>

#include "bench/support/json_file.h"
#include "bench/support/loopback.h"

namespace sotto::bench {

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

/// Runs `attack(port, counts)`, which never returns, in a process of strangers and
/// `measure(ports, counts)`, which gives JSON, in this one; both see the same Counts. `ports` are
/// those of two sites, the first the one under attack. Prints the result, and writes it to `json`
/// where that is not empty.
template <typename Counts, typename Attack, typename Measure>
void measure_beside(const std::string& json, const Attack& attack, const Measure& measure) {
  const JsonFile file(json);
  raise_file_limit();
  void* memory =
      ::mmap(nullptr, sizeof(Counts), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  check(memory != MAP_FAILED, "shared memory");
  auto& counts = *new (memory) Counts;
  // Both stay this process's while the sockets that have them are there.
  const auto attacked = hold_port();
  const auto other = hold_port();
  const std::vector<int> ports = {attacked.second, other.second};
  const pid_t strangers = ::fork();
  check(strangers >= 0, "a process for the strangers");
  if (strangers == 0) {
    attack(ports[0], counts);
  }
  const Json result = measure(ports, counts);
  (void)::kill(strangers, SIGKILL);
  (void)::waitpid(strangers, nullptr, 0);
  const std::string text = result.dump(2) + "\n";
  std::fputs(text.c_str(), stdout);
  file.write(result);
}

}  // namespace sotto::bench
