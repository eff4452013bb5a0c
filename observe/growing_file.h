// A file that grows during a run and can be read at any time. If it is moved away, the next records
// go to a new file of its name, as programs that rotate logs expect. The first write that fails is
// reported, and the run goes on.
//
// Thread-safe, but that `tell` is called from the thread of the write that fails. After a fork,
// parent and children may all append.
#pragma once

#include <mutex>
#include <string>
#include <string_view>

#include <sotto/observe/tell.h>

namespace sotto {

class GrowingFile {
 public:
  /// Opens the file, which messages call by its `setting`; empty at first unless it is to be kept.
  /// Throws Error when it cannot be opened. `tell` may append to this file.
  GrowingFile(std::string_view setting, std::string path, bool keep, Tell tell);
  ~GrowingFile();
  GrowingFile(const GrowingFile&) = delete;
  GrowingFile& operator=(const GrowingFile&) = delete;

  /// Appends whole records; false once a write has failed.
  bool append(std::string_view records);
  const std::string& path() const { return path_; }

 private:
  /// Opens the file anew if it was moved away.
  void follow_name();

  std::string setting_;
  std::string path_;
  bool standard_output_;
  Tell tell_;
  int descriptor_ = -1;
  std::mutex mutex_;
  bool failed_ = false;
};

}  // namespace sotto
