// A process that looks after something for this one and for all that it forks, and outlives them by
// a moment: it notices when the last of them is gone, however that came.
//
// POSIX (Linux) only. Thread safety: one thread; as run_processes, no threads yet at the start.
#pragma once

#include <functional>

namespace sotto {

class HelperProcess {
 public:
  /// What the process does with its end of the line. It ends when this returns; it should when the
  /// line ends, or when a byte without a descriptor comes. It holds nothing else of its parent's
  /// open, its standard streams lead nowhere, and of the signals only SIGKILL ends it.
  using Life = std::function<void(int line)>;

  /// Starts the process, which runs `life`; line() says whether that went well.
  explicit HelperProcess(const Life& life);
  /// Says that it is over, and waits until the process is gone. In the process that made it.
  ~HelperProcess();
  HelperProcess(const HelperProcess&) = delete;
  HelperProcess& operator=(const HelperProcess&) = delete;

  /// This side's end, which children share; −1 when the system gave no process.
  int line() const { return line_; }

 private:
  int line_ = -1;
};

/// What read(2) returns for one byte of the line, a signal apart: 0 at its end.
long read_byte(int line);

}  // namespace sotto
