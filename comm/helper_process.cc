#include <sotto/comm/helper_process.h>

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

namespace sotto {
namespace {

[[noreturn]] void live(const HelperProcess::Life& life, int line) {
  sigset_t all;
  sigfillset(&all);
  ::pthread_sigmask(SIG_BLOCK, &all, nullptr);
  ::setsid();
  constexpr int kFirst = STDERR_FILENO + 1;
  const int kept = ::fcntl(line, F_DUPFD, kFirst);
  const int quiet = ::open("/dev/null", O_RDWR);
  for (int standard = 0; standard < kFirst; ++standard) {
    ::dup2(quiet, standard);
  }
  ::dup2(kept, kFirst);
  ::close_range(kFirst + 1, ~0U, 0);
  life(kFirst);
  ::_exit(0);
}

}  // namespace

long read_byte(int line) {
  char byte = 0;
  ssize_t got = 0;
  while ((got = ::read(line, &byte, 1)) < 0 && errno == EINTR) {
  }
  return got;
}

HelperProcess::HelperProcess(const Life& life) {
  int ends[2] = {-1, -1};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return;
  }
  // A child of a child, so that the caller's children are its own.
  const pid_t child = ::fork();
  if (child == 0) {
    if (::fork() == 0) {
      live(life, ends[1]);
    }
    ::_exit(0);
  }
  while (child > 0 && ::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
  ::close(ends[1]);
  line_ = ends[0];
}

HelperProcess::~HelperProcess() {
  if (line_ >= 0) {
    const char done = 0;
    (void)::send(line_, &done, 1, MSG_NOSIGNAL);
    (void)read_byte(line_);
    ::close(line_);
  }
}

}  // namespace sotto
