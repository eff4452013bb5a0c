#include "running_job.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <stdexcept>

#include <fmt/format.h>

#include <sotto/base/elapsed.h>

namespace sotto::bench {
namespace {

namespace fs = std::filesystem;

/// Inodes of the sockets in a state of TCP, as /proc/PID/net/tcp shows them.
void add_established(const fs::path& table, std::set<std::string>& inodes) {
  constexpr const char* kEstablished = "01";
  std::ifstream in(table);
  std::string line;
  std::getline(in, line);  // titles
  while (std::getline(in, line)) {
    std::istringstream fields(line);
    std::vector<std::string> values;
    for (std::string value; fields >> value;) {
      values.push_back(value);
    }
    if (values.size() > 9 && values[3] == kEstablished) {
      inodes.insert(values[9]);
    }
  }
}

}  // namespace

RunningJob::RunningJob(const std::vector<std::string>& words) : start_(Deadline::Clock::now()) {
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    throw std::runtime_error(fmt::format("no pipe: {}", std::strerror(errno)));
  }
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (const std::string& word : words) {
    arguments.push_back(const_cast<char*>(word.c_str()));
  }
  arguments.push_back(nullptr);
  errors_ = ::memfd_create("errors", MFD_CLOEXEC);
  pid_ = ::fork();
  if (pid_ == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    ::dup2(ends[1], STDOUT_FILENO);
    ::dup2(errors_, STDERR_FILENO);
    ::execv(arguments.front(), arguments.data());
    ::_exit(127);
  }
  ::close(ends[1]);
  output_ = ends[0];
  if (pid_ < 0) {
    ::close(output_);
    ::close(errors_);
    throw std::runtime_error(fmt::format("cannot fork: {}", std::strerror(errno)));
  }
}

RunningJob::~RunningJob() {
  ::kill(pid_, SIGTERM);  // the program ends its nodes, and kills those that do not end
  ::close(output_);       // so that it does not wait for a reader
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
  ::close(errors_);
}

double RunningJob::wait_for_lines(int lines, Deadline deadline) {
  while (std::count(said_.begin(), said_.end(), '\n') < lines) {
    pollfd polled{output_, POLLIN, 0};
    const int ready = ::poll(&polled, 1, deadline.left_ms());
    char buffer[4096];
    const auto got = ready > 0 ? ::read(output_, buffer, sizeof buffer) : 0;
    if (got > 0) {
      said_.append(buffer, static_cast<std::size_t>(got));
    } else if (ready >= 0 || errno != EINTR) {
      throw std::runtime_error(fmt::format("the program {}; it said: {}{}",
                                           ready > 0 ? "ended" : "did not get so far in time",
                                           said_, errors()));
    }
  }
  return seconds_since(start_);
}

std::string RunningJob::errors() const {
  constexpr std::size_t kMost = 4096;
  std::string text(kMost, '\0');
  const auto got = ::pread(errors_, text.data(), text.size(), 0);
  text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  return text;
}

std::vector<pid_t> RunningJob::nodes() const {
  std::vector<pid_t> children;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const std::string name = entry.path().filename().string();
    std::ifstream in(entry.path() / "stat");
    std::string text;
    std::getline(in, text);
    // "PID (NAME) STATE PARENT …", where NAME may hold anything.
    std::istringstream rest(text.substr(std::min(text.size(), text.rfind(')') + 1)));
    std::string state;
    pid_t parent = -1;
    if (rest >> state >> parent && parent == pid_) {
      children.push_back(std::stoi(name));
    }
  }
  return children;
}

int connections_of(pid_t process) {
  const fs::path proc = fmt::format("/proc/{}", process);
  std::set<std::string> established;
  add_established(proc / "net/tcp", established);
  add_established(proc / "net/tcp6", established);
  int connections = 0;
  std::error_code gone;
  for (const auto& entry : fs::directory_iterator(proc / "fd", gone)) {
    const std::string target = fs::read_symlink(entry.path(), gone).string();
    constexpr std::string_view kPrefix = "socket:[";
    if (target.starts_with(kPrefix)) {
      const auto inode = target.substr(kPrefix.size(), target.size() - kPrefix.size() - 1);
      connections += static_cast<int>(established.count(inode));
    }
  }
  return connections;
}

std::uint64_t private_bytes_of(pid_t process) {
  std::ifstream in(fmt::format("/proc/{}/smaps_rollup", process));
  std::uint64_t kib = 0;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("Private_")) {
      kib += std::stoull(line.substr(line.find(':') + 1));
    }
  }
  return kib * 1024;
}

}  // namespace sotto::bench
