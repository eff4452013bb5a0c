// Runs the built program as a user would: as a process, with its own environment.
//
// Launchers' variables of the surrounding environment are taken away; CTest's time limit is the
// guard against hangs.
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "support/scratch.h"
#include "support/text_of_file.h"

namespace sotto::test {

using Arguments = std::vector<std::string>;
using Variables = std::map<std::string, std::string>;

/// What a process left behind.
struct Ended {
  int status = -1;  ///< exit status; 128 + signal when one killed it
  std::string out;
  std::string err;

  nlohmann::json json() const {
    CAPTURE(err);
    REQUIRE(status == 0);
    return nlohmann::json::parse(out);
  }
};

inline Variables environment(const Variables& more) {
  constexpr std::array<std::string_view, 7> kLaunchers = {
      "RANK=", "WORLD_SIZE=", "LOCAL_WORLD_SIZE=", "TORCHELASTIC_", "OMPI_", "PMI_", "SLURM_"};
  Variables all;
  for (char** entry = ::environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const bool launcher =
        std::any_of(kLaunchers.begin(), kLaunchers.end(),
                    [&](std::string_view name) { return text.starts_with(name); });
    if (!launcher) {
      all[std::string(text.substr(0, text.find('=')))] = text.substr(text.find('=') + 1);
    }
  }
  for (const auto& [name, value] : more) {
    all[name] = value;
  }
  return all;
}

/// The process group that a process is in: a terminal's Ctrl-C goes to all of a group at once.
enum class Group { of_test, own };

/// A process under way. Killed if it still runs in the end.
class Process {
 public:
  explicit Process(Arguments arguments, const Variables& more = {}, Group group = Group::of_test) {
    const std::string err = (scratch_.path() / "err").string();
    int out[2];
    REQUIRE(::pipe2(out, O_CLOEXEC) == 0);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, err.c_str(),
                                     O_WRONLY | O_CREAT | O_TRUNC, 0600);
    std::vector<char*> argv;
    for (std::string& argument : arguments) {
      argv.push_back(argument.data());
    }
    argv.push_back(nullptr);
    std::vector<std::string> entries;
    for (const auto& [name, value] : environment(more)) {
      entries.push_back(name + "=" + value);
    }
    std::vector<char*> envp;
    for (std::string& entry : entries) {
      envp.push_back(entry.data());
    }
    envp.push_back(nullptr);
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, group == Group::own ? POSIX_SPAWN_SETPGROUP : 0);
    const int failed =
        ::posix_spawnp(&pid_, argv[0], &actions, &attributes, argv.data(), envp.data());
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    ::close(out[1]);
    out_ = out[0];
    REQUIRE(failed == 0);
  }
  ~Process() {
    if (!ended_) {
      ::kill(pid_, SIGKILL);
      wait();
    }
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  pid_t pid() const { return pid_; }
  void send(int signal) const { ::kill(pid_, signal); }
  /// To it and all that it has started; it needs a group of its own.
  void send_to_group(int signal) const { ::kill(-pid_, signal); }

  /// Reads standard output until `text` has come; false when it ends before.
  bool wait_for(std::string_view text) {
    while (read_.find(text) == std::string::npos) {
      if (!read_more()) {
        return false;
      }
    }
    return true;
  }

  /// What it has written to standard error so far.
  std::string said() const { return text_of_file(scratch_.path() / "err"); }

  Ended wait() {
    while (read_more()) {
    }
    ::close(out_);
    int status = 0;
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    ended_ = true;
    return {WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status), read_, said()};
  }

  /// Processes that this one has started, in the order of their numbers.
  std::vector<pid_t> children() const {
    std::ifstream file("/proc/" + std::to_string(pid_) + "/task/" + std::to_string(pid_) +
                       "/children");
    std::vector<pid_t> found{std::istream_iterator<pid_t>(file), {}};
    std::sort(found.begin(), found.end());
    return found;
  }

 private:
  bool read_more() {
    char buffer[4096];
    const auto got = ::read(out_, buffer, sizeof buffer);
    if (got > 0) {
      read_.append(buffer, static_cast<std::size_t>(got));
    }
    return got > 0;
  }

  Scratch scratch_;
  pid_t pid_ = -1;
  int out_ = -1;
  std::string read_;
  bool ended_ = false;
};

inline Arguments command(const Arguments& arguments) {
  Arguments all = {SOTTO_PROGRAM};
  all.insert(all.end(), arguments.begin(), arguments.end());
  return all;
}

inline Ended run(const Arguments& arguments, const Variables& more = {}) {
  return Process(command(arguments), more).wait();
}

inline Ended shell(const std::string& words) { return Process({"/bin/sh", "-c", words}).wait(); }

/// `sotto train` on a small set of digits, followed by `more`.
inline Arguments small_train(const Arguments& more) {
  Arguments all = {"train",   "--task",    "digits,train=320,test=100",
                   "--model", "softmax",   "--nodes",
                   "4",       "--timeout", "60"};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

/// Whether this build of the program has the transport.
inline bool has_transport(const std::string& name) {
  const auto list = run({"list", "--json", "-"}).json();
  for (const auto& transport : list.at("transports")) {
    if (transport.at("name") == name) {
      return transport.at("available").get<bool>();
    }
  }
  return false;
}

}  // namespace sotto::test
