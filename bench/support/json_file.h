// The file that --json of a program names: refused early, written in the end. One thread at a time.
#pragma once

#include <string>
#include <utility>

#include <sotto/base/json.h>
#include <sotto/base/result_file.h>

namespace sotto::bench {

/// A result as JSON in a file.
class JsonFile {
 public:
  /// No file is written for an empty path. Refuses (Error) one that could not be written.
  explicit JsonFile(std::string path) : path_(std::move(path)) { check_writable("--json", path_); }

  /// Replaces the file. Throws std::runtime_error when it cannot be written.
  void write(const Json& result) const {
    if (!path_.empty()) {
      write_result_file("--json", path_, result.dump(2) + "\n");
    }
  }

 private:
  std::string path_;
};

}  // namespace sotto::bench
