#include <sotto/comm/trust/key_file.h>

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
#include <sotto/base/delimited_text.h>
#include <sotto/base/error.h>
#include <sotto/base/file_descriptor.h>
#include <sotto/base/input_file.h>
#include <sotto/base/text.h>
#include <sotto/base/write_all.h>

#include "../internal/z85.h"

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
void check_guarded(const std::string& path, const struct stat& state) {
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

std::string_view read_all(const std::string& path, InputFile& file, Wiped<kLongest>& buffer) {
  const auto size = file.read(std::as_writable_bytes(std::span(buffer.bytes)));
  if (!size.ok()) {
    refuse("key", path, size.status().message());
  }
  if (*size == kLongest) {
    refuse("key", path, fmt::format("it is no key file, which is shorter; {}", kHowToMake));
  }
  return {buffer.bytes.data(), *size};
}

/// The text after NAME and blanks, if the line begins so.
std::optional<std::string_view> value_of(std::string_view line, std::string_view name) {
  if (!line.starts_with(name)) {
    return std::nullopt;
  }
  const auto rest = line.substr(name.size());
  const auto value = trimmed(rest);
  return value.size() < rest.size() ? std::optional(value) : std::nullopt;
}

void append(Wiped<kLongest>& buffer, std::size_t& size, std::string_view text) {
  check(size + text.size() <= kLongest, "a key file's length");
  std::memcpy(buffer.bytes.data() + size, text.data(), text.size());
  size += text.size();
}

}  // namespace

KeyPair parse_key_file(const std::string& path, std::string_view text) {
  std::optional<PublicKey> shown;
  std::optional<PrivateKey> secret;
  int shown_in = 0;
  int secret_in = 0;
  skip_byte_order_mark(text);
  std::string_view whole;
  for (int number = 1; take_line(text, whole); ++number) {
    const auto line = trimmed(whole);  // an editor may have left blanks at the ends
    const auto where = fmt::format("{}:{}", path, number);
    if (line.empty() || line.front() == '#') {
      continue;
    }
    const auto once = [&](int& line_of) {
      if (line_of > 0) {
        throw Error(fmt::format("{}: line {} has that key already", where, line_of));
      }
      line_of = number;
    };
    if (const auto value = value_of(line, "public")) {
      once(shown_in);
      if (shown = PublicKey::parse(*value); !shown) {
        throw Error(fmt::format("{}: public: 40 characters in Z85 are due", where));
      }
    } else if (const auto hidden = value_of(line, "secret")) {
      once(secret_in);
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
  if (shown && !secret) {
    refuse("key", path,
           "it holds no key pair but a public key alone: name the file with the secret one, which "
           "`sotto keygen` "
           "wrote beside it");
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
  auto file = InputFile::open(path, kPlainFiles);
  if (!file.ok()) {
    refuse("key", path, fmt::format("{}; {}", file.status().message(), kHowToMake));
  }
  check_guarded(path, file->facts());
  Wiped<kLongest> buffer;
  return parse_key_file(path, read_all(path, *file, buffer));
}

void write_key_file(const std::string& path, std::string_view name, const KeyPair& keys) {
  Wiped<kLongest> buffer;
  std::size_t size = 0;
  append(buffer, size,
         fmt::format("# sotto key of {}: whoever has the secret line is that node\npublic {}\n",
                     excerpt(one_line(name), kLongest / 2), keys.public_key.text()));
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
                       write_all(file.get(), std::string_view(buffer.bytes.data(), size)) == 0 &&
                       ::fsync(file.get()) == 0 && file.close();
  if (!written) {
    const auto why = last_error();
    ::unlink(path.c_str());
    refuse("secret key", path, fmt::format("it cannot be written: {}", why));
  }
}

}  // namespace sotto
