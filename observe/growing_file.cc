#include <sotto/observe/growing_file.h>

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/observe/write_all.h>

#include "internal/lost_file.h"

namespace sotto {

GrowingFile::GrowingFile(std::string_view option, std::string path, bool keep, Tell tell)
    : option_(option), path_(std::move(path)), tell_(std::move(tell)) {
  constexpr int kMode = 0666;
  // Opened anew, standard output would be cut, and written over by what else goes there.
  descriptor_ =
      path_ == "-" || path_ == "/dev/stdout"
          ? ::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0)
          : ::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | (keep ? 0 : O_TRUNC),
                   kMode);
  if (descriptor_ < 0) {
    refuse(option_, path_, fmt::format("it cannot be written: {}", std::strerror(errno)));
  }
}

GrowingFile::~GrowingFile() { ::close(descriptor_); }

void GrowingFile::append(std::string_view records) {
  int error = 0;
  {
    const std::lock_guard lock(mutex_);
    if (failed_) {
      return;
    }
    error = write_all(descriptor_, records);
    failed_ = error != 0;
  }
  if (error != 0) {
    tell_(internal::lost_file(option_, path_, std::strerror(error)));
  }
}

}  // namespace sotto
