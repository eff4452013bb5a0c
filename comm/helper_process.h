// A process that looks after something for this one and for all that it forks, and outlives them by
// a moment: it notices when the last of them is gone, however that came.
//
// POSIX (Linux) only. Thread safety: one thread; as run_processes, no threads yet at the start.
#pragma once

#include <functional>

namespace sotto {

class HelperProcess {
 public:
  /// The main function of the process, with its end of the line. The process ends when the function
  /// returns; it should return when the line ends, or when a byte without a descriptor comes. The
  /// process keeps no other descriptor of its parent open, its standard streams are /dev/null, and
  /// only SIGKILL among the signals ends it.
  using Life = std::function<void(int line)>;

  /// Starts the process, which runs `life`; line() says whether that went well.
  explicit HelperProcess(const Life& life);
  /// Sends the byte that ends the process, and waits until the process has closed its end of the
  /// line. Only in the process that made it.
  ~HelperProcess();
  HelperProcess(const HelperProcess&) = delete;
  HelperProcess& operator=(const HelperProcess&) = delete;

  /// This side's end, which children share; −1 when the system gave no process.
  int line() const { return line_; }

 private:
  int line_ = -1;
};

/// The result of read(2) for one byte of the line, repeated after a signal: 0 at its end.
long read_byte(int line);

}  // namespace sotto
