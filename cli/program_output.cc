#include "program_output.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <optional>

#include <fmt/format.h>

#include <sotto/console/signals.h>

namespace sotto::cli {
namespace {

/// Ctrl-C is looked for this often.
constexpr int kLookMs = 100;

class Child {
 public:
  explicit Child(std::vector<std::string>& arguments) : name_(arguments.front()) {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
      error_ = errno;
      return;
    }
    out_ = ends[0];
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    std::vector<char*> argv;
    argv.reserve(arguments.size() + 1);
    for (std::string& argument : arguments) {
      argv.push_back(argument.data());
    }
    argv.push_back(nullptr);
    error_ = ::posix_spawn(&pid_, argv[0], &actions, nullptr, argv.data(), ::environ);
    ::posix_spawn_file_actions_destroy(&actions);
    ::close(ends[1]);
  }
  ~Child() {
    if (running()) {
      ::kill(pid_, SIGKILL);
      (void)wait();
    }
    if (out_ >= 0) {
      ::close(out_);
    }
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  /// All that it prints.
  Result<std::string> read(Deadline deadline) {
    std::string text;
    while (error_ == 0) {
      if (console::stop_requested() || deadline.expired()) {
        return fault(console::stop_requested() ? "interrupted" : "it took too long");
      }
      pollfd ready = {.fd = out_, .events = POLLIN, .revents = 0};
      if (::poll(&ready, 1, deadline.left_ms(kLookMs)) <= 0) {
        continue;
      }
      std::array<char, 4096> buffer{};
      const auto got = ::read(out_, buffer.data(), buffer.size());
      if (got <= 0) {
        return text;
      }
      text.append(buffer.data(), static_cast<std::size_t>(got));
    }
    return fault(std::strerror(error_));
  }

  /// Requires that it has closed its output, as a program that ends does.
  Status end() {
    const int status = wait();
    if (WIFSIGNALED(status)) {
      return fault(fmt::format("it ended by signal {}", WTERMSIG(status)));
    }
    return WEXITSTATUS(status) == 0
               ? Status()
               : fault(fmt::format("it ended with exit status {}", WEXITSTATUS(status)));
  }

 private:
  bool running() const { return error_ == 0 && pid_ > 0; }
  int wait() {
    int status = 0;
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    pid_ = -1;
    return status;
  }
  Status fault(std::string_view what) const {
    return {Fault::unexpected, fmt::format("{}: {}", name_, what)};
  }

  const std::string name_;
  pid_t pid_ = -1;
  int out_ = -1;
  int error_ = 0;  ///< why it could not be started
};

}  // namespace

std::string program_beside(const std::string& name) {
  std::error_code code;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", code);
  const std::string path = self.parent_path() / name;
  return !code && ::access(path.c_str(), X_OK) == 0 ? path : std::string();
}

Result<std::string> program_output(std::vector<std::string> arguments, Deadline deadline) {
  Child child(arguments);
  auto text = child.read(deadline);
  if (!text.ok()) {
    return text;
  }
  if (Status status = child.end(); !status.ok()) {
    return status;
  }
  return text;
}

}  // namespace sotto::cli
