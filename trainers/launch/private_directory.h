// A directory for what the processes of a local job share. POSIX (Linux) only. One thread.
#pragma once

#include <string>

#include <sotto/comm/helper_process.h>

namespace sotto {

/// A new directory that only this user can read; removed with its contents in the end, even when
/// this process is killed: a process of its own looks after it, and removes it once this process
/// and all that it forked are gone.
class PrivateDirectory {
 public:
  /// Throws Error when none can be made in TMPDIR (or /tmp). Call it before there are threads.
  PrivateDirectory();
  ~PrivateDirectory();
  PrivateDirectory(const PrivateDirectory&) = delete;
  PrivateDirectory& operator=(const PrivateDirectory&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
  HelperProcess helper_;
};

}  // namespace sotto
