#include <sotto/base/input_file.h>

#include <fcntl.h>
#include <linux/magic.h>
#include <poll.h>
#include <sys/vfs.h>
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

/// What tells a pipe, and what was written into it, from others. A pipe without a name is one
/// stream as long as it exists; into one that has a name somebody may write anew.
using PipeKey = std::tuple<dev_t, ino_t, time_t, long>;

Result<PipeKey> key_of(InputFile& file) {
  if (Status status = file.refresh_facts(); !status.ok()) {
    return status;
  }
  const struct stat& facts = file.facts();
  return file.nameless()
             ? PipeKey(facts.st_dev, facts.st_ino, 0, 0)
             : PipeKey(facts.st_dev, facts.st_ino, facts.st_mtim.tv_sec, facts.st_mtim.tv_nsec);
}

/// What came through a pipe so far.
struct PipeText {
  std::string text;
  bool ended = false;  ///< the pipe has come to its end
};

/// What came through pipes.
class PipeContents {
 public:
  static PipeContents& all() {
    static PipeContents contents;
    return contents;
  }
  /// Nothing, for a pipe that is not known.
  PipeText take(const PipeKey& key) {
    const auto found = kept_.extract(key);
    return found.empty() ? PipeText{} : std::move(found.mapped());
  }
  void keep(const PipeKey& key, PipeText text) { kept_.insert_or_assign(key, std::move(text)); }
  std::mutex& mutex() { return mutex_; }

 private:
  std::mutex mutex_;  ///< held while a pipe is read, so that two readers do not share its bytes out
  std::map<PipeKey, PipeText> kept_;
};

/// A plain file, as a string or a vector of bytes.
template <typename Bytes>
Result<Bytes> read_all(InputFile& file, std::uint64_t most) {
  Bytes bytes;
  if (file.size() > most) {
    return too_long(most);
  }
  bytes.reserve(static_cast<std::size_t>(file.size()) + 1);
  while (true) {
    const std::size_t before = bytes.size();
    // One more than is due, which shows that there is more.
    const std::size_t due = std::max<std::size_t>(kPiece, file.size());
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

/// Where a reader has what it wants.
enum class Until : std::uint8_t { end, newline };

/// Reads on until the reader has what it wants, or more than `most` bytes came without it. Returns
/// the length of what it wants, without the newline.
Result<std::size_t> read_on(InputFile& file, Until until, std::uint64_t most, PipeText& so_far) {
  std::string& text = so_far.text;
  for (std::size_t searched = 0;;) {
    if (until == Until::newline) {
      if (const auto end = text.find('\n', searched); end != std::string::npos) {
        return end;
      }
    }
    searched = text.size();
    if (so_far.ended || text.size() > most) {
      return text.size();
    }
    text.resize(searched + kPiece);
    const auto got = file.read_some(std::as_writable_bytes(std::span(text).subspan(searched)));
    text.resize(searched + (got.ok() ? *got : 0));
    if (!got.ok()) {
      return got.status();
    }
    so_far.ended = *got == 0;
  }
}

Result<std::string> read_pipe(InputFile& file, Until until, std::uint64_t most) {
  PipeContents& contents = PipeContents::all();
  const std::lock_guard lock(contents.mutex());
  const auto before = key_of(file);
  if (!before.ok()) {
    return before.status();
  }
  PipeText pipe = contents.take(*before);
  const auto length = read_on(file, until, most, pipe);
  if (!length.ok()) {
    return length.status();
  }
  if (pipe.text.empty()) {
    return unreadable("nothing came through this pipe; does the command that writes into it work?");
  }
  auto found = *length <= most ? Result<std::string>(pipe.text.substr(0, *length)) : too_long(most);
  if (const auto after = key_of(file); after.ok()) {
    contents.keep(*after, std::move(pipe));
  }
  return found;
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
    // A socket cannot be opened: say that it is one, not that it cannot be read.
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
    auto got = read_some(out.subspan(filled));
    if (!got.ok()) {
      return got;
    }
    if (*got == 0) {
      break;
    }
    filled += *got;
  }
  return filled;
}

Result<std::size_t> InputFile::read_some(std::span<std::byte> out) {
  while (!out.empty()) {
    const auto got = ::read(file_.get(), out.data(), out.size());
    if (got > 0) {
      heard_ = true;
      return static_cast<std::size_t>(got);
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
  return std::size_t{0};
}

Status InputFile::refresh_facts() {
  return ::fstat(file_.get(), &facts_) == 0
             ? Status()
             : unreadable(fmt::format("it cannot be read: {}", std::strerror(errno)));
}

bool InputFile::nameless() const {
  struct statfs system {};
  return pipe() && ::fstatfs(file_.get(), &system) == 0 && system.f_type == PIPEFS_MAGIC;
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
  return read_input(*file, most);
}

Result<std::string> read_input(InputFile& file, std::uint64_t most) {
  return file.pipe() ? read_pipe(file, Until::end, most) : read_all<std::string>(file, most);
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
    return read_pipe(*file, Until::newline, most);
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
