#include <sotto/base/input_file.h>

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>
#include <tuple>
#include <utility>

#include <fmt/format.h>

namespace sotto {
namespace {

constexpr std::size_t kPiece = std::size_t{1} << 16U;

Status unreadable(std::string_view why) { return {Fault::io, std::string(why)}; }

Status too_long(std::uint64_t most) {
  return {Fault::io, fmt::format("it has more than {} bytes, which is the limit", most)};
}

Status refusal_of(const struct stat& facts, const InputOptions& options) {
  if (S_ISREG(facts.st_mode) || (S_ISFIFO(facts.st_mode) && options.pipes)) {
    return {};
  }
  const char* what = S_ISDIR(facts.st_mode)    ? "a folder: there is no such file"
                     : S_ISFIFO(facts.st_mode) ? "a pipe"
                     : S_ISSOCK(facts.st_mode) ? "a socket"
                                               : "a device";
  return unreadable(fmt::format(
      "it is {}; {}", what,
      options.pipes ? "name a regular file, or a pipe as <(COMMAND)" : "a plain file is needed"));
}

/// What tells a pipe, and what was written into it, from others.
using PipeKey = std::tuple<dev_t, ino_t, time_t, long>;

PipeKey key_of(const struct stat& facts) {
  return {facts.st_dev, facts.st_ino, facts.st_mtim.tv_sec, facts.st_mtim.tv_nsec};
}

/// What came through pipes.
class PipeContents {
 public:
  static PipeContents& all() {
    static PipeContents contents;
    return contents;
  }
  std::string* find(const PipeKey& key) {
    const auto found = kept_.find(key);
    return found == kept_.end() ? nullptr : &found->second;
  }
  void keep(const PipeKey& key, std::string text) { kept_.insert_or_assign(key, std::move(text)); }
  std::mutex& mutex() { return mutex_; }

 private:
  std::mutex mutex_;  ///< held while a pipe is read, so that two readers do not share its bytes out
  std::map<PipeKey, std::string> kept_;
};

/// A string or a vector of bytes.
template <typename Bytes>
Result<Bytes> read_all(InputFile& file, std::uint64_t most) {
  Bytes bytes;
  if (!file.pipe() && file.size() > most) {
    return too_long(most);
  }
  bytes.reserve(static_cast<std::size_t>(file.size()) + 1);
  while (true) {
    const std::size_t before = bytes.size();
    // One more than is due, which shows that there is more.
    const std::size_t due = file.pipe() ? kPiece : std::max<std::size_t>(kPiece, file.size());
    const auto room = static_cast<std::size_t>(std::min<std::uint64_t>(due, most - before)) + 1;
    bytes.resize(before + room);
    const auto got = file.read(std::as_writable_bytes(std::span(bytes).subspan(before)));
    if (!got.ok()) {
      return got.status();
    }
    bytes.resize(before + *got);
    if (bytes.size() > most) {
      return too_long(most);
    }
    if (*got < room) {
      return bytes;
    }
  }
}

Result<std::string> read_pipe(const std::string& path, InputFile& file, std::uint64_t most) {
  PipeContents& contents = PipeContents::all();
  const std::lock_guard lock(contents.mutex());
  if (const std::string* kept = contents.find(key_of(file.facts()))) {
    return kept->size() <= most ? Result<std::string>(*kept) : too_long(most);
  }
  auto text = read_all<std::string>(file, most);
  if (!text.ok()) {
    return text;
  }
  if (text->empty()) {
    return unreadable("nothing came through this pipe; does the command that writes into it work?");
  }
  struct stat after {};
  if (::stat(path.c_str(), &after) == 0) {
    contents.keep(key_of(after), *text);
  }
  return text;
}

}  // namespace

Result<InputFile> InputFile::open(const std::string& path, const InputOptions& options) {
  if (path.find('\0') != std::string::npos) {
    return unreadable("a path has no zero byte");
  }
  FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  struct stat facts {};
  if (!file) {
    const int error = errno;
    // What cannot be opened at all may be nothing that is read.
    const bool there = ::stat(path.c_str(), &facts) == 0;
    if (Status status = there ? refusal_of(facts, options) : Status(); !status.ok()) {
      return status;
    }
    return unreadable(error == ENOENT ? "there is no such file"
                                      : fmt::format("it cannot be read: {}", std::strerror(error)));
  }
  if (::fstat(file.get(), &facts) != 0) {
    return unreadable(fmt::format("it cannot be read: {}", std::strerror(errno)));
  }
  if (Status status = refusal_of(facts, options); !status.ok()) {
    return status;
  }
  return InputFile(std::move(file), facts, options);
}

Result<std::size_t> InputFile::read(std::span<std::byte> out) {
  std::size_t filled = 0;
  while (filled < out.size()) {
    const auto got = ::read(file_.get(), out.data() + filled, out.size() - filled);
    if (got > 0) {
      heard_ = true;
      filled += static_cast<std::size_t>(got);
      continue;
    }
    if (got == 0 && (!pipe() || heard_ || hung_up())) {
      break;
    }
    Status status;
    if (got == 0) {
      status = await(options_.nobody, "nobody writes into this pipe");
    } else if (errno == EAGAIN) {
      status = await(options_.silence, "whoever writes into this pipe has fallen silent");
    } else if (errno != EINTR) {
      status = unreadable(fmt::format("it cannot be read: {}", std::strerror(errno)));
    }
    if (!status.ok()) {
      return status;
    }
  }
  return filled;
}

Status InputFile::await(std::chrono::milliseconds patience, const char* otherwise) {
  pollfd ready = {.fd = file_.get(), .events = POLLIN, .revents = 0};
  const int found = ::poll(&ready, 1, static_cast<int>(patience.count()));
  if (found > 0) {
    return {};
  }
  return unreadable(found == 0       ? otherwise
                    : errno == EINTR ? "a signal came while it was waited for"
                                     : std::strerror(errno));
}

bool InputFile::hung_up() const {
  pollfd ready = {.fd = file_.get(), .events = POLLIN, .revents = 0};
  return ::poll(&ready, 1, 0) > 0 && (ready.revents & POLLHUP) != 0 &&
         (ready.revents & POLLIN) == 0;
}

Result<std::string> read_input(const std::string& path, std::uint64_t most,
                               const InputOptions& options) {
  auto file = InputFile::open(path, options);
  if (!file.ok()) {
    return file.status();
  }
  return file->pipe() ? read_pipe(path, *file, most) : read_all<std::string>(*file, most);
}

Result<std::vector<std::byte>> read_bytes(const std::string& path, std::uint64_t most) {
  auto file = InputFile::open(path, kPlainFiles);
  return file.ok() ? read_all<std::vector<std::byte>>(*file, most)
                   : Result<std::vector<std::byte>>(file.status());
}

Result<std::string> read_first_line(const std::string& path, std::uint64_t most,
                                    const InputOptions& options) {
  auto file = InputFile::open(path, options);
  if (!file.ok()) {
    return file.status();
  }
  if (file->pipe()) {
    auto text = read_pipe(path, *file, most);
    return text.ok() ? Result<std::string>(text->substr(0, text->find('\n'))) : text;
  }
  std::string line;
  while (line.size() <= most) {
    const std::size_t before = line.size();
    line.resize(before + kPiece);
    const auto got = file->read(std::as_writable_bytes(std::span(line).subspan(before)));
    if (!got.ok()) {
      return got.status();
    }
    line.resize(before + *got);
    if (const auto end = line.find('\n', before); end != std::string::npos) {
      line.resize(end);
      break;
    }
    if (*got < kPiece) {
      break;
    }
  }
  return line.size() <= most ? Result<std::string>(std::move(line)) : too_long(most);
}

}  // namespace sotto
