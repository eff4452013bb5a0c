#include <sotto/comm/key_file.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <string_view>

#include <fmt/format.h>
#include <sodium.h>

#include <sotto/base/check.h>
#include <sotto/base/error.h>
#include <sotto/base/file_descriptor.h>

#include "internal/z85.h"

namespace sotto {
namespace {

constexpr std::size_t kLongest = 1024;
constexpr std::string_view kHowToMake = "`sotto keygen` makes one";

/// Bytes that are wiped in the end, whatever way that comes.
template <std::size_t N>
struct Wiped {
  std::array<char, N> bytes{};
  Wiped() = default;
  ~Wiped() { sodium_memzero(bytes.data(), N); }
  Wiped(const Wiped&) = delete;
  Wiped& operator=(const Wiped&) = delete;
};

std::string last_error() { return std::strerror(errno); }

/// Only its owner may come near it.
void check_guarded(const std::string& path, int file) {
  struct stat state {};
  if (::fstat(file, &state) != 0 || !S_ISREG(state.st_mode)) {
    refuse("key", path, "it is no plain file");
  }
  if (state.st_uid != ::geteuid()) {
    refuse("key", path, "it belongs to another user, who could read it and replace it");
  }
  if ((state.st_mode & 077U) != 0) {
    refuse("key", path,
           fmt::format("others can read or change it (mode {:04o}); take that away with `chmod 600 "
                       "{}`, and make a new key if they may have read it",
                       state.st_mode & 07777U, path));
  }
}

std::string_view read_all(const std::string& path, int file, Wiped<kLongest>& buffer) {
  std::size_t size = 0;
  while (size < kLongest) {
    const auto got = ::read(file, buffer.bytes.data() + size, kLongest - size);
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got < 0) {
      refuse("key", path, fmt::format("it cannot be read: {}", last_error()));
    }
    if (got == 0) {
      return {buffer.bytes.data(), size};
    }
    size += static_cast<std::size_t>(got);
  }
  refuse("key", path, fmt::format("it is no key file, which is shorter; {}", kHowToMake));
}

/// What follows "NAME ", if the line begins so.
std::optional<std::string_view> value_of(std::string_view line, std::string_view name) {
  if (!line.starts_with(name) || line.size() <= name.size() || line[name.size()] != ' ') {
    return std::nullopt;
  }
  return line.substr(name.size() + 1);
}

void append(Wiped<kLongest>& buffer, std::size_t& size, std::string_view text) {
  check(size + text.size() <= kLongest, "a key file's length");
  std::memcpy(buffer.bytes.data() + size, text.data(), text.size());
  size += text.size();
}

bool write_all(int file, std::string_view text) {
  while (!text.empty()) {
    const auto written = ::write(file, text.data(), text.size());
    if (written < 0 && errno == EINTR) {
      continue;
    }
    if (written <= 0) {
      return false;
    }
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

}  // namespace

KeyPair parse_key_file(const std::string& path, std::string_view text) {
  std::optional<PublicKey> shown;
  std::optional<PrivateKey> secret;
  for (int number = 1; !text.empty(); ++number) {
    const auto line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    const auto where = fmt::format("{}:{}", path, number);
    if (line.empty() || line.front() == '#') {
      continue;
    }
    if (const auto value = value_of(line, "public"); value && !shown) {
      if (shown = PublicKey::parse(*value); !shown) {
        throw Error(fmt::format("{}: public: 40 characters in Z85 are due", where));
      }
    } else if (const auto hidden = value_of(line, "secret"); hidden && !secret) {
      Wiped<kKeyBytes> bytes;
      const auto view = std::as_writable_bytes(std::span(bytes.bytes));
      if (!internal::read_z85(*hidden, view)) {
        throw Error(fmt::format("{}: secret: 40 characters in Z85 are due", where));
      }
      secret.emplace(view);
    } else {
      throw Error(fmt::format("{}: a line 'public KEY' or 'secret KEY', each once, is due", where));
    }
  }
  if (!shown || !secret) {
    refuse("key", path, fmt::format("it holds no key pair; {}", kHowToMake));
  }
  if (secret->public_key() != *shown) {
    refuse("key", path, "its public and its secret key are no pair; the file is damaged");
  }
  return {*shown, *secret};
}

KeyPair read_key_file(const std::string& path) {
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file) {
    refuse("key", path, fmt::format("{}; {}", last_error(), kHowToMake));
  }
  check_guarded(path, file.get());
  Wiped<kLongest> buffer;
  return parse_key_file(path, read_all(path, file.get(), buffer));
}

void write_key_file(const std::string& path, std::string_view name, const KeyPair& keys) {
  Wiped<kLongest> buffer;
  std::size_t size = 0;
  append(buffer, size,
         fmt::format("# sotto key of {}: whoever has the secret line is that node\npublic {}\n",
                     printable(name).substr(0, kLongest / 2), keys.public_key.text()));
  append(buffer, size, "secret ");
  auto secret = internal::z85(keys.private_key.bytes());
  append(buffer, size, secret);
  sodium_memzero(secret.data(), secret.size());
  append(buffer, size, "\n");
  FileDescriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                             S_IRUSR | S_IWUSR));
  if (!file) {
    refuse("secret key", path,
           errno == EEXIST
               ? std::string("it is there already, and a key that is lost cannot be had "
                             "back; choose another name")
               : fmt::format("it cannot be written: {}", last_error()));
  }
  const bool written = ::fchmod(file.get(), S_IRUSR | S_IWUSR) == 0 &&
                       write_all(file.get(), {buffer.bytes.data(), size}) &&
                       ::fsync(file.get()) == 0 && file.close();
  if (!written) {
    const auto why = last_error();
    ::unlink(path.c_str());
    refuse("secret key", path, fmt::format("it cannot be written: {}", why));
  }
}

}  // namespace sotto
