// A file descriptor that is closed in the end: of a file, a socket or an event. Movable; one owner.
#pragma once

#include <unistd.h>

#include <utility>

namespace sotto {

class FileDescriptor {
 public:
  FileDescriptor() = default;
  /// Takes what a system call returned; a negative number is none.
  explicit FileDescriptor(int number) : number_(number) {}
  FileDescriptor(FileDescriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~FileDescriptor() { close(); }

  /// Negative: none.
  int get() const { return number_; }
  explicit operator bool() const { return number_ >= 0; }
  /// Closes the descriptor, after which the object holds none. False when the system reports that
  /// written bytes may be lost (errno).
  bool close() {
    const int number = std::exchange(number_, -1);
    return number < 0 || ::close(number) == 0;
  }

 private:
  int number_ = -1;
};

}  // namespace sotto
