#include <sotto/console/child.h>

#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <stdexcept>
#include <string_view>

namespace sotto::console {
namespace {

constexpr int kCannotStart = 127;
/// How often a wait with a deadline looks whether the program has ended.
constexpr std::chrono::milliseconds kLook{5};

std::vector<std::string> environment_with(const std::map<std::string, std::string>& variables) {
  std::vector<std::string> all;
  for (char** entry = ::environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    if (!variables.contains(std::string(text.substr(0, text.find('='))))) {
      all.emplace_back(text);
    }
  }
  for (const auto& [name, value] : variables) {
    if (!value.empty()) {
      all.emplace_back(name).append("=").append(value);
    }
  }
  return all;
}

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  pointers.reserve(texts.size() + 1);
  for (std::string& text : texts) {
    pointers.push_back(text.data());
  }
  pointers.push_back(nullptr);
  return pointers;
}

FileDescriptor memory_file(const char* name) {
  return FileDescriptor(::memfd_create(name, MFD_CLOEXEC));
}

FileDescriptor log_file(const std::string& path) {
  FileDescriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  if (!file) {
    throw std::runtime_error("no log can be written to " + path);
  }
  return file;
}

std::string contents_of(const FileDescriptor& file) {
  std::string text;
  std::array<char, 4096> piece;
  ssize_t size = 0;
  while ((size = ::pread(file.get(), piece.data(), piece.size(), static_cast<off_t>(text.size()))) >
         0) {
    text.append(piece.data(), static_cast<std::size_t>(size));
  }
  return text;
}

}  // namespace

Child::Child(const std::vector<std::string>& words, const ChildSetup& setup)
    : output_(memory_file("output")),
      errors_(setup.log.empty() ? memory_file("errors") : log_file(setup.log)) {
  // Between fork and exec only system calls are safe: other threads may hold locks.
  std::vector<std::string> argument_texts = words;
  std::vector<std::string> variable_texts = environment_with(setup.variables);
  const auto arguments = pointers_to(argument_texts);
  const auto environment = pointers_to(variable_texts);
  const pid_t parent = ::getpid();
  pid_ = ::fork();
  if (pid_ == 0) {
    errno = 0;
    ::prctl(PR_SET_PDEATHSIG, setup.at_our_end);
    if (setup.own_group) {
      ::setpgid(0, 0);
    }
    if (::getppid() == parent && (setup.network < 0 || ::setns(setup.network, CLONE_NEWNET) == 0) &&
        ::dup2(output_.get(), STDOUT_FILENO) >= 0 && ::dup2(errors_.get(), STDERR_FILENO) >= 0) {
      ::execve(arguments[0], arguments.data(), environment.data());
    }
    if (errno != 0) {
      const char* const why = ::strerrordesc_np(errno);
      [[maybe_unused]] ssize_t said = ::write(errors_.get(), why, std::strlen(why));
      said = ::write(errors_.get(), "\n", 1);
    }
    ::_exit(kCannotStart);
  }
  if (pid_ < 0) {
    throw std::runtime_error(std::string("a process could not be started: ") + strerror(errno));
  }
}

Child::~Child() {
  if (!ended()) {
    ::kill(pid_, SIGKILL);
    while (!look(0) && errno == EINTR) {
    }
  }
}

std::optional<int> Child::look(int options) {
  int status = 0;
  if (!status_ && ::waitpid(pid_, &status, options) == pid_) {
    status_ = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  }
  return status_;
}

std::optional<int> Child::ended() { return look(WNOHANG); }

int Child::wait() {
  while (!look(0)) {
    if (errno != EINTR) {
      throw std::runtime_error(std::string("a process cannot be waited for: ") + strerror(errno));
    }
  }
  return *status_;
}

std::optional<int> Child::wait_until(const Deadline& deadline) {
  while (!ended() && !deadline.expired()) {
    sleep_until(deadline.or_after(kLook));
  }
  return ended();
}

void Child::signal(int number) {
  if (!ended()) {
    ::kill(pid_, number);
  }
}

std::string Child::output() const { return contents_of(output_); }
std::string Child::errors() const { return contents_of(errors_); }

}  // namespace sotto::console
