// A store in a directory: one file a key. A value is written beside its place and renamed into it,
// so that a reader sees the whole value or none. A claim links it there, which fails where there is
// one.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>  // renameat2
#include <filesystem>
#include <fstream>
#include <system_error>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/base/file_descriptor.h>
#include <sotto/base/write_all.h>
#include <sotto/comm/shared_store.h>
#include <sotto/comm/stores.h>

#include "../internal/backoff.h"
#include "../internal/store_key.h"

namespace sotto {
namespace {

namespace fs = std::filesystem;

class FileStore final : public SharedStore {
 public:
  explicit FileStore(fs::path directory) : directory_(std::move(directory)) {}

  Status set(std::string_view key, std::span<const std::byte> value) override;
  Result<std::vector<std::byte>> get(std::string_view key, Deadline deadline) override;
  Status remove(std::string_view key) override;
  Result<std::optional<std::vector<std::byte>>> look(std::string_view key, std::size_t most,
                                                     Deadline deadline) override;
  Result<std::vector<std::byte>> claim(std::string_view key, std::span<const std::byte> value,
                                       std::size_t most, Deadline deadline) override;

 private:
  /// '/' becomes '%', which no key holds; the prefix keeps "." and ".." from being names.
  fs::path place(std::string_view key) const {
    std::string name = "key-";
    for (const char c : key) {
      name += c == '/' ? '%' : c;
    }
    return directory_ / name;
  }
  /// Unlike every other name in use on any host that shares the directory.
  fs::path scratch() {
    char host[256] = {};
    ::gethostname(host, sizeof host - 1);
    return directory_ / fmt::format("new-{}-{}-{}-{}", host, ::getpid(),
                                    reinterpret_cast<std::uintptr_t>(this), ++writes_);
  }

  const fs::path directory_;
  std::atomic<std::uint64_t> writes_ = 0;
};

Status write_failed(const fs::path& path, const std::error_code& code) {
  return {Fault::io, fmt::format("cannot write {}: {}", path.string(), code.message())};
}

/// Writes a file that is not there yet; errno, or 0. Leaves nothing where it fails.
int write_new(const fs::path& path, std::span<const std::byte> value) {
  constexpr mode_t kMode = 0666;  // nodes of other users may share the directory
  FileDescriptor file(
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, kMode));
  int error = file ? write_all(file.get(), value) : errno;
  if (file && !file.close() && error == 0) {
    error = errno;
  }
  if (error != 0) {
    std::error_code code;
    fs::remove(path, code);
  }
  return error;
}

/// Gives a file its place, unless there is one: errno, 0 or EEXIST among them. The file's first
/// name is gone afterwards.
int put_first(const fs::path& fresh, const fs::path& target) {
  int error = ::link(fresh.c_str(), target.c_str()) == 0 ? 0 : errno;
  if (error == EPERM || error == EOPNOTSUPP || error == ENOSYS || error == EMLINK) {
    // A file system without hard links.
    error = ::renameat2(AT_FDCWD, fresh.c_str(), AT_FDCWD, target.c_str(), RENAME_NOREPLACE) == 0
                ? 0
                : errno;
  }
  std::error_code code;
  fs::remove(fresh, code);
  return error;
}

Status FileStore::set(std::string_view key, std::span<const std::byte> value) {
  if (auto fits = internal::check_store_entry(key, value); !fits) {
    return fits;
  }
  const auto target = place(key);
  const auto fresh = scratch();
  if (const int error = write_new(fresh, value); error != 0) {
    return write_failed(target, std::error_code(error, std::generic_category()));
  }
  std::error_code code;
  fs::rename(fresh, target, code);
  return code ? write_failed(target, code) : Status();
}

Result<std::vector<std::byte>> FileStore::get(std::string_view key, Deadline deadline) {
  if (auto fits = internal::check_store_key(key); !fits) {
    return fits;
  }
  const auto source = place(key);
  internal::Backoff backoff(deadline);
  do {
    std::ifstream in(source, std::ios::binary | std::ios::ate);
    if (!in) {
      continue;  // not there yet
    }
    const auto size = static_cast<std::uintmax_t>(in.tellg());
    if (size > kMostStoreValueBytes) {
      return Status(Fault::malformed, fmt::format("{} holds {} bytes: at most {} are allowed",
                                                  source.string(), size, kMostStoreValueBytes));
    }
    std::vector<std::byte> value(size);
    in.seekg(0);
    in.read(reinterpret_cast<char*>(value.data()), static_cast<std::streamsize>(size));
    if (!in) {
      return Status(Fault::io, fmt::format("cannot read {}", source.string()));
    }
    return value;
  } while (backoff.wait());
  return internal::store_overdue(key, deadline);
}

Status FileStore::remove(std::string_view key) {
  if (auto fits = internal::check_store_key(key); !fits) {
    return fits;
  }
  std::error_code code;
  fs::remove(place(key), code);
  return code ? write_failed(place(key), code) : Status();
}

Result<std::optional<std::vector<std::byte>>> FileStore::look(std::string_view key,
                                                              std::size_t most, Deadline) {
  if (auto fits = internal::check_store_key(key); !fits) {
    return fits;
  }
  const auto source = place(key);
  // Neither a pipe nor a device is to be waited for.
  const FileDescriptor file(::open(source.c_str(), O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC));
  const int error = errno;
  std::error_code code;
  if (!file && error == ENOENT && fs::is_directory(directory_, code)) {
    return std::optional<std::vector<std::byte>>();
  }
  struct stat about = {};
  const bool known = file && ::fstat(file.get(), &about) == 0;
  const bool open_folder = ::access(directory_.c_str(), R_OK | X_OK) == 0;
  const bool none_of_ours = error == ELOOP || error == ENXIO || (error == EACCES && open_folder);
  if (!known && !none_of_ours) {
    return Status(Fault::io,
                  fmt::format("cannot read {}: {}", source.string(),
                              std::error_code(error, std::generic_category()).message()));
  }
  if (!known || !S_ISREG(about.st_mode) || static_cast<std::uintmax_t>(about.st_size) > most) {
    return Status(Fault::malformed,
                  fmt::format("{} is no file of at most {} bytes", source.string(), most));
  }
  std::vector<std::byte> value(static_cast<std::size_t>(about.st_size));
  const auto got = ::read(file.get(), value.data(), value.size());
  if (got != static_cast<ssize_t>(value.size())) {
    return Status(Fault::io, fmt::format("cannot read {}", source.string()));
  }
  return value.empty() ? std::optional<std::vector<std::byte>>() : std::optional(std::move(value));
}

Result<std::vector<std::byte>> FileStore::claim(std::string_view key,
                                                std::span<const std::byte> value, std::size_t most,
                                                Deadline deadline) {
  if (auto fits = internal::check_store_claim(key, value, most); !fits) {
    return fits;
  }
  const auto target = place(key);
  for (int tries = 0; tries < internal::kMostClaims; ++tries) {
    const auto fresh = scratch();
    int error = write_new(fresh, value);
    error = error == 0 ? put_first(fresh, target) : error;
    if (error != 0 && error != EEXIST) {
      return write_failed(target, std::error_code(error, std::generic_category()));
    }
    // A server of files may have linked it, and lost the answer: what is there says who was first.
    auto there = look(key, most, deadline);
    if (!there) {
      return there.status();
    }
    if (*there) {
      return std::move(**there);
    }
  }
  return internal::store_unclaimed(key);
}

}  // namespace

std::shared_ptr<Store> make_file_store(const std::string& directory) {
  std::error_code code;
  fs::create_directories(directory, code);
  if (directory.empty() || !fs::is_directory(directory, code)) {
    refuse("store", "file:" + directory, "it must name a directory that can be made and written");
  }
  return std::make_shared<FileStore>(directory);
}

}  // namespace sotto
