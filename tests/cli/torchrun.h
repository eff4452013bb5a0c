// Runs programs under a real torchrun: that of the PyTorch that the Python of the tests has.
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <sotto/base/file_descriptor.h>

#include "cli/program.h"

namespace sotto::test {

/// Whether there is a torchrun that starts.
inline bool has_torchrun() {
  const std::string asked =
      std::string(SOTTO_PYTHON) + " -m torch.distributed.run --help > /dev/null 2>&1";
  return std::system(asked.c_str()) == 0;
}

/// One agent of torchrun's that starts `program` as processes. It is ended when it hangs. Python
/// 3.11 and PyTorch 1.13 agree only where outputs are redirected: it then shows them with a prefix.
inline std::unique_ptr<Process> start_agent(const Arguments& options, int processes,
                                            const Arguments& program, Variables more = {}) {
  Arguments words = {"timeout", "-k", "10", "200", SOTTO_PYTHON, "-m", "torch.distributed.run",
                     "-r",      "1",  "-t", "1",   "--no_python"};
  words.insert(words.end(), {"--monitor_interval", "1"});
  words.insert(words.end(), {"--nproc_per_node", std::to_string(processes)});
  words.insert(words.end(), options.begin(), options.end());
  words.insert(words.end(), program.begin(), program.end());
  more.insert({"OMP_NUM_THREADS", "1"});
  return std::make_unique<Process>(words, more);
}

/// An agent's options where all are told one address, and which of them they are.
inline Arguments static_group(int agents, int agent, int port) {
  return {"--nnodes",      std::to_string(agents),
          "--node_rank",   std::to_string(agent),
          "--master_addr", "127.0.0.1",
          "--master_port", std::to_string(port)};
}
/// … and where agents find each other, `agents` ("2", "1:2") of them, and more may come later.
inline Arguments c10d_group(const std::string& agents, int port) {
  return {"--nnodes",        agents,
          "--rdzv_backend",  "c10d",
          "--rdzv_id",       "job-1",
          "--rdzv_endpoint", fmt::format("127.0.0.1:{}", port),
          "--rdzv_conf",     "join_timeout=120,last_call_timeout=1"};
}

/// A pipe with a name, to which processes write what a test waits for.
class NamedPipe {
 public:
  explicit NamedPipe(const std::filesystem::path& path) {
    REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
    // Also for writing, so that it never ends.
    pipe_ = FileDescriptor(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK));
    REQUIRE(pipe_.get() >= 0);
  }
  /// Whether `text` has come in a minute.
  bool wait_for(std::string_view text) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (read_.find(text) == std::string::npos) {
      if (std::chrono::steady_clock::now() > until) {
        return false;
      }
      pollfd item = {pipe_.get(), POLLIN, 0};
      char buffer[4096];
      const auto got = ::poll(&item, 1, 100) > 0 ? ::read(pipe_.get(), buffer, sizeof buffer) : 0;
      read_.append(buffer, static_cast<std::size_t>(got > 0 ? got : 0));
    }
    return true;
  }

 private:
  FileDescriptor pipe_;
  std::string read_;
};

}  // namespace sotto::test
