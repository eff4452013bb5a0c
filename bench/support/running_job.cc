#include "running_job.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <stdexcept>
#include <thread>

#include <fmt/format.h>

#include <sotto/base/elapsed.h>

namespace sotto::bench {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::milliseconds kLook{1};

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

RunningJob::RunningJob(const std::vector<std::string>& words)
    : start_(Deadline::Clock::now()), child_(words, {.at_our_end = SIGTERM}) {}

RunningJob::~RunningJob() {
  child_.signal(SIGTERM);  // the program ends its nodes, and kills those that do not end
  constexpr auto kEnds = std::chrono::seconds(30);
  (void)child_.wait_until(Deadline::after(kEnds));  // ~Child kills one that is still there
}

double RunningJob::wait_for_lines(int lines, Deadline deadline) {
  while (true) {
    const bool ended = child_.ended().has_value();  // looked at before what it has said by then
    said_ = child_.output();
    if (std::count(said_.begin(), said_.end(), '\n') >= lines) {
      return seconds_since(start_);
    }
    if (ended || deadline.expired()) {
      throw std::runtime_error(fmt::format("the program {}; it said: {}{}",
                                           ended ? "ended" : "did not get so far in time", said_,
                                           child_.errors()));
    }
    std::this_thread::sleep_for(kLook);
  }
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
    if (rest >> state >> parent && parent == child_.number()) {
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
