// A file that is nowhere on a disk, for parsers that take a path. One thread.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <span>
#include <string>

#include <sotto/base/check.h>

namespace sotto_fuzz {

class MemoryFile {
 public:
  explicit MemoryFile(std::span<const std::byte> bytes) : file_(::memfd_create("fuzz", 0)) {
    sotto::check(file_ >= 0, "a file in memory");
    const auto written = ::write(file_, bytes.data(), bytes.size());
    sotto::check(written == static_cast<ssize_t>(bytes.size()), "a file in memory is written");
  }
  ~MemoryFile() { ::close(file_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  std::string path() const { return "/proc/self/fd/" + std::to_string(file_); }

 private:
  int file_;
};

}  // namespace sotto_fuzz
