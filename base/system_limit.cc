#include <sotto/base/system_limit.h>

#include <fcntl.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/base/file_descriptor.h>

namespace sotto {

std::string limit_text(__rlimit_resource resource, std::string_view name, char flag, rlim_t unit) {
  rlimit limit{};
  if (::getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) {
    return {};
  }
  return fmt::format("{} (`ulimit -{}`, {})", name, flag, limit.rlim_cur / unit);
}

void require_open_files(std::size_t count, std::string_view purpose) {
  std::vector<FileDescriptor> opened;
  opened.reserve(count);
  while (opened.size() < count) {
    FileDescriptor next(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    if (!next) {
      const int cause = errno;
      if (cause != EMFILE && cause != ENFILE) {
        return;  // no limit is met: who opens files says what is wrong
      }
      const std::size_t given = opened.size();
      opened.clear();  // what makes the message may need one
      const std::string limit = limit_text(RLIMIT_NOFILE, "RLIMIT_NOFILE", 'n');
      throw Shortage(fmt::format(
          "files for {}: the system gave {} of at least {} ({}); the likely limit is {}; raise "
          "the limit, or give this node fewer neighbours",
          purpose, given, count, std::strerror(cause),
          limit.empty() ? "the system's own (fs.file-max)" : limit));
    }
    opened.push_back(std::move(next));
  }
}

}  // namespace sotto
