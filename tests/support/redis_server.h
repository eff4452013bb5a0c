// A Redis server for a test, where the machine has the program.
#pragma once

#include <csignal>
#include <cstdlib>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/free_port.h"

namespace sotto::test {

inline bool has_redis_server() { return std::system("command -v redis-server > /dev/null") == 0; }

/// A Redis server of its own, ended with the object.
struct RedisServer {
  RedisServer() : port(free_port()), pid(::fork()) {
    if (pid == 0) {
      const int quiet = ::open("/dev/null", O_RDWR);
      ::dup2(quiet, STDOUT_FILENO);
      ::dup2(quiet, STDERR_FILENO);
      ::execlp("redis-server", "redis-server", "--port", fmt::to_string(port).c_str(), "--bind",
               "127.0.0.1", "--save", "", "--appendonly", "no", nullptr);
      ::_exit(127);
    }
  }
  ~RedisServer() {
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
  }
  RedisServer(const RedisServer&) = delete;
  RedisServer& operator=(const RedisServer&) = delete;
  int port;
  pid_t pid;
};

}  // namespace sotto::test
