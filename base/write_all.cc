#include <sotto/base/write_all.h>

#include <unistd.h>

#include <cerrno>

namespace sotto {
namespace {

/// `write(text, done)` is asked for the rest, of which `done` bytes before it are written.
template <typename Write>
int repeat(std::string_view text, const Write& write) {
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t written = write(text.substr(done), static_cast<off_t>(done));
    if (written > 0) {
      done += static_cast<std::size_t>(written);
    } else if (written == 0) {
      return EIO;  // which sets no errno
    } else if (errno != EINTR) {
      return errno;
    }
  }
  return 0;
}

}  // namespace

int write_all(int descriptor, std::string_view text) {
  return repeat(text, [&](std::string_view rest, off_t /*done*/) {
    return ::write(descriptor, rest.data(), rest.size());
  });
}

int write_all(int descriptor, std::span<const std::byte> bytes) {
  return write_all(descriptor,
                   std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
}

int write_all_at(int descriptor, std::string_view text, off_t at) {
  return repeat(text, [&](std::string_view rest, off_t done) {
    return ::pwrite(descriptor, rest.data(), rest.size(), at + done);
  });
}

}  // namespace sotto
