#include "child_processes.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <stdexcept>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <sotto/base/error.h>
#include <sotto/base/start_threads.h>
#include <sotto/trainers/run.h>

namespace sotto::internal {
namespace {

/// How often the end of killed children is looked for.
constexpr int kSliceMs = 100;
/// A report fits into a pipe's buffer, so that a child never blocks on it.
constexpr std::size_t kMostReport = 4'000;
/// First byte of the report of an Error; other reports start with their Fault.
constexpr char kWrongRequest = 127;

void write_report(int fd, char kind, std::string_view message) {
  std::string text(1, kind);
  text += message.substr(0, kMostReport);
  // A parent that is gone has no use for it.
  [[maybe_unused]] const auto written = ::write(fd, text.data(), text.size());
}

constexpr int kStopSignals[] = {SIGINT, SIGTERM, SIGHUP};

/// Holds back the signals that ask for an end, so that none finds a new child with the parent's
/// handlers.
class HeldSignals {
 public:
  HeldSignals() {
    sigset_t held;
    sigemptyset(&held);
    for (const int signal : kStopSignals) {
      sigaddset(&held, signal);
    }
    ::pthread_sigmask(SIG_BLOCK, &held, &before_);
  }
  ~HeldSignals() { release(); }
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;

  void release() const { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_;
};

[[noreturn]] void be_child(Rank rank, const NodeMain& node_main, int report,
                           const HeldSignals& held) {
  for (const int signal : kStopSignals) {
    ::signal(signal, SIG_DFL);
  }
  held.release();
  try {
    const Status status = node_main(rank);
    if (!status.ok()) {
      write_report(report, static_cast<char>(status.fault()), status.message());
    }
  } catch (const Shortage& error) {
    write_report(report, static_cast<char>(Fault::io),
                 fmt::format("node {}: {}", rank, error.what()));
  } catch (const Error& error) {
    write_report(report, kWrongRequest, error.what());
  } catch (const std::exception& error) {
    write_report(report, static_cast<char>(Fault::io),
                 fmt::format("node {}: {}", rank, error.what()));
  }
  std::fflush(nullptr);
  ::_exit(0);
}

}  // namespace

ChildProcesses::~ChildProcesses() {
  end_all(SIGKILL);
  while (running() > 0) {
    look(kSliceMs);
  }
}

bool ChildProcesses::any_failed() const { return std::ranges::any_of(children_, &Child::failed); }

void ChildProcesses::fork_all(int nodes) {
  const pid_t parent = ::getpid();
  const HeldSignals held;
  std::fflush(nullptr);  // or each child would print it again
  for (Rank rank = 0; rank < nodes; ++rank) {
    int ends[2] = {-1, -1};
    if (::pipe2(ends, O_CLOEXEC) != 0) {
      throw std::runtime_error(fmt::format(
          "processes for nodes: {} of {} were started, and there is no pipe for the next ({}); use "
          "fewer nodes, or raise the limit of open files (`ulimit -n`)",
          rank, nodes, std::strerror(errno)));
    }
    const pid_t pid = ::fork();
    if (pid == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (::getppid() != parent) {
        ::_exit(1);
      }
      ::close(ends[0]);
      for (const Child& sibling : children_) {
        ::close(sibling.report);
      }
      be_child(rank, node_main_, ends[1], held);
    }
    const int why = errno;
    ::close(ends[1]);
    if (pid < 0) {
      ::close(ends[0]);
      throw std::runtime_error(fmt::format(
          "processes for nodes: the system gave {} of {} ({}); use fewer nodes, or raise the limit "
          "(`ulimit -u`, the cgroup's pids.max)",
          rank, nodes, std::strerror(why)));
    }
    children_.push_back({.pid = pid, .report = ends[0]});
  }
}

void ChildProcesses::look(int ms) {
  std::vector<pollfd> polled;
  std::vector<Child*> of;
  for (Child& child : children_) {
    if (child.running()) {
      polled.push_back({child.report, POLLIN, 0});
      of.push_back(&child);
    }
  }
  if (::poll(polled.data(), polled.size(), ms) <= 0) {
    return;
  }
  for (std::size_t k = 0; k < polled.size(); ++k) {
    if (polled[k].revents != 0) {
      read_report(*of[k]);
    }
  }
}

void ChildProcesses::read_report(Child& child) {
  char buffer[kMostReport];
  const auto got = ::read(child.report, buffer, sizeof buffer);
  if (got > 0) {
    child.text.append(buffer, static_cast<std::size_t>(got));
    return;
  }
  if (got < 0 && errno == EINTR) {
    return;
  }
  // The end of the pipe: the child has ended, or is about to.
  while (::waitpid(child.pid, &child.wait_status, 0) < 0 && errno == EINTR) {
  }
  ::close(child.report);
  child.report = -1;
}

void ChildProcesses::end_all(int signal) const {
  for (const Child& child : children_) {
    if (child.running()) {
      ::kill(child.pid, signal);
    }
  }
}

std::vector<std::size_t> ChildProcesses::running_ranks() const {
  std::vector<std::size_t> ranks;
  for (std::size_t rank = 0; rank < children_.size(); ++rank) {
    if (children_[rank].running()) {
      ranks.push_back(rank);
    }
  }
  return ranks;
}

std::optional<std::string> ChildProcesses::wrong_request() const {
  for (const Child& child : children_) {
    if (!child.text.empty() && child.text.front() == kWrongRequest) {
      return child.text.substr(1);
    }
  }
  return std::nullopt;
}

Status ChildProcesses::verdict() const {
  std::vector<Status> faults;
  for (std::size_t rank = 0; rank < children_.size(); ++rank) {
    const Child& child = children_[rank];
    if (!child.text.empty()) {
      faults.emplace_back(static_cast<Fault>(child.text.front()), child.text.substr(1));
    } else if (WIFSIGNALED(child.wait_status)) {
      const int signal = WTERMSIG(child.wait_status);
      // Fault::io, so that it is taken for the cause of what its neighbours report.
      faults.emplace_back(Fault::io, fmt::format("node {} was killed by signal {} ({})", rank,
                                                 signal, ::strsignal(signal)));
    } else if (child.wait_status != 0) {
      faults.emplace_back(Fault::io, fmt::format("node {} ended with exit status {}", rank,
                                                 WEXITSTATUS(child.wait_status)));
    }
  }
  const Status cause = root_cause(faults);
  const bool hung = cause.fault() == Fault::deadline || cause.fault() == Fault::peer_lost;
  return hung && running() > 0
             ? Status(cause.fault(), fmt::format("{} (silent: node {})", cause.message(),
                                                 fmt::join(running_ranks(), ", ")))
             : cause;
}

}  // namespace sotto::internal
