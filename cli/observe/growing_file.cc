#include "growing_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include <sotto/base/error.h>

namespace sotto::cli {

GrowingFile::GrowingFile(std::string_view option, std::string path, bool keep)
    : option_(option), path_(std::move(path)) {
  constexpr int kMode = 0666;
  descriptor_ = ::open(path_.c_str(),
                       O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | (keep ? 0 : O_TRUNC), kMode);
  if (descriptor_ < 0) {
    refuse(option_, path_, fmt::format("it cannot be written: {}", std::strerror(errno)));
  }
}

GrowingFile::~GrowingFile() { ::close(descriptor_); }

void GrowingFile::append(std::string_view records) {
  const std::lock_guard lock(mutex_);
  while (!records.empty() && !failed_) {
    const auto written = ::write(descriptor_, records.data(), records.size());
    if (written > 0) {
      records.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno != EINTR) {
      failed_ = true;
      fmt::print(stderr, "sotto: warning: {}: {}: {}; the run goes on without\n", option_, path_,
                 std::strerror(errno));
    }
  }
}

}  // namespace sotto::cli
