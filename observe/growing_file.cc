#include <sotto/observe/growing_file.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/base/write_all.h>

#include "internal/lost_file.h"

namespace sotto {
namespace {

constexpr mode_t kNewFileMode = 0666;

}  // namespace

GrowingFile::GrowingFile(std::string_view setting, std::string path, bool keep, Tell tell)
    : setting_(setting),
      path_(std::move(path)),
      standard_output_(path_ == "-" || path_ == "/dev/stdout"),
      tell_(std::move(tell)) {
  // Opened anew, standard output would be cut, and written over by what else goes there.
  descriptor_ =
      standard_output_
          ? ::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0)
          : ::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | (keep ? 0 : O_TRUNC),
                   kNewFileMode);
  if (descriptor_ < 0) {
    refuse(setting_, path_, fmt::format("it cannot be written: {}", std::strerror(errno)));
  }
}

GrowingFile::~GrowingFile() { ::close(descriptor_); }

void GrowingFile::follow_name() {
  struct stat ours {};
  struct stat named {};
  if (standard_output_ || ::fstat(descriptor_, &ours) != 0 || !S_ISREG(ours.st_mode) ||
      (::stat(path_.c_str(), &named) == 0 && ours.st_ino == named.st_ino &&
       ours.st_dev == named.st_dev)) {
    return;
  }
  const int fresh = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, kNewFileMode);
  if (fresh >= 0) {
    ::close(std::exchange(descriptor_, fresh));
  }
}

bool GrowingFile::append(std::string_view records) {
  int error = 0;
  {
    const std::lock_guard lock(mutex_);
    if (failed_) {
      return false;
    }
    follow_name();
    error = write_all(descriptor_, records);
    failed_ = error != 0;
  }
  if (error != 0) {
    tell_(internal::lost_file(setting_, path_, std::strerror(error)));
  }
  return error == 0;
}

}  // namespace sotto
