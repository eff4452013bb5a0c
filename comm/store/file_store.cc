// A store in a directory: one file a key. A value is written beside its place and renamed into it,
// so that a reader sees the whole value or none. A claim links it there, which fails where there is
// one, and is written so that it is whole after a crash of the machine, too.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>  // renameat2
#include <filesystem>
#include <system_error>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/base/file_descriptor.h>
#include <sotto/base/write_all.h>
#include <sotto/comm/shared_store.h>
#include <sotto/comm/stores.h>

#include "../internal/backoff.h"
#include "../internal/store_key.h"
#include "stale.h"

namespace sotto {
namespace {

namespace fs = std::filesystem;

/// How long a write or a remove is tried again that a server of files calls stale.
constexpr std::chrono::seconds kStalePatience{2};
/// Names that are tried for a new file.
constexpr int kMostNames = 8;
/// What the names of new files begin with.
constexpr std::string_view kFresh = "new-sotto-";
/// Age of a new file whose process was killed before it had its place.
constexpr std::chrono::seconds kLeftoverAge = std::chrono::hours(1);

/// Whether a value must be there after a crash of the machine, too.
enum class Kept : std::uint8_t { while_up, for_good };

class FileStore final : public SharedStore {
 public:
  explicit FileStore(fs::path directory) : directory_(std::move(directory)) {}

  Status set(std::string_view key, std::span<const std::byte> value) override {
    return put(key, value, Deadline::after(kStalePatience));
  }
  Result<std::vector<std::byte>> get(std::string_view key, Deadline deadline) override;
  Status remove(std::string_view key) override {
    return drop(key, Deadline::after(kStalePatience));
  }
  Result<std::optional<std::vector<std::byte>>> look(std::string_view key, std::size_t most,
                                                     Deadline deadline) override;
  Result<std::vector<std::byte>> claim(std::string_view key, std::span<const std::byte> value,
                                       std::size_t most, Deadline deadline) override;
  Status put(std::string_view key, std::span<const std::byte> value, Deadline deadline) override;
  Status drop(std::string_view key, Deadline deadline) override;

 private:
  /// '/' becomes '%', which no key holds; the prefix keeps "." and ".." from being names.
  fs::path place(std::string_view key) const {
    std::string name = "key-";
    for (const char c : key) {
      name += c == '/' ? '%' : c;
    }
    return directory_ / name;
  }
  /// Unlike every other name in use on any host that shares the directory, unless containers have
  /// one host's name and numbers of processes of their own.
  fs::path scratch() {
    char host[256] = {};
    ::gethostname(host, sizeof host - 1);
    return directory_ / fmt::format("{}{}-{}-{}-{}", kFresh, host, ::getpid(),
                                    reinterpret_cast<std::uintptr_t>(this), ++writes_);
  }
  /// Writes the value that is to have the place `target` into a new file; its path.
  Result<fs::path> write_fresh(const fs::path& target, std::span<const std::byte> value, Kept kept);
  void remove_leftovers(const fs::path& fresh);

  const fs::path directory_;
  std::atomic<std::uint64_t> writes_ = 0;
  std::atomic<bool> swept_ = false;  ///< whether leftovers were looked for
};

Status write_failed(const fs::path& path, const std::error_code& code) {
  return {Fault::io, fmt::format("cannot write {}: {}", path.string(), code.message())};
}
Status write_failed(const fs::path& path, int error) {
  return write_failed(path, std::error_code(error, std::generic_category()));
}

/// Writes a file that is not there yet; errno, or 0. Leaves nothing where it fails, but what
/// somebody else has put there (EEXIST).
int write_new(const fs::path& path, std::span<const std::byte> value, Kept kept) {
  constexpr mode_t kMode = 0666;  // nodes of other users may share the directory
  FileDescriptor file(
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, kMode));
  if (!file) {
    return errno;
  }
  int error = write_all(file.get(), value);
  if (error == 0 && kept == Kept::for_good && ::fsync(file.get()) != 0) {
    error = errno;
  }
  if (!file.close() && error == 0) {
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
int put_first(const fs::path& fresh, const fs::path& target, Deadline deadline) {
  const int error = internal::again_while_stale(deadline, [&] {
    int failed = ::link(fresh.c_str(), target.c_str()) == 0 ? 0 : errno;
    if (failed == EPERM || failed == EOPNOTSUPP || failed == ENOSYS || failed == EMLINK) {
      // A file system without hard links.
      failed = ::renameat2(AT_FDCWD, fresh.c_str(), AT_FDCWD, target.c_str(), RENAME_NOREPLACE) == 0
                   ? 0
                   : errno;
    }
    return failed;
  });
  std::error_code code;
  fs::remove(fresh, code);
  return error;
}

/// Makes the names in a folder last beyond a crash of the machine, where its file system can do so:
/// false where it should and could not.
bool sync_folder(const fs::path& folder) {
  const FileDescriptor directory(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  return !directory || ::fsync(directory.get()) == 0 || errno != EIO;
}

/// What is at the place of a value.
struct AtPlace {
  int error = 0;          ///< errno of the call that failed; 0: none has
  bool opened = false;    ///< it could be opened
  bool is_value = false;  ///< it is a file of at most as many bytes as were asked for
  std::uintmax_t size = 0;
  std::vector<std::byte> value;
};

AtPlace read_place(const fs::path& path, std::size_t most) {
  AtPlace found;
  const auto failed = [&found](int error) {
    found.error = error;
    return found;
  };
  // Neither a pipe nor a device is to be waited for.
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC));
  if (!file) {
    return failed(errno);
  }
  found.opened = true;
  struct stat about = {};
  if (::fstat(file.get(), &about) != 0) {
    return failed(errno);
  }
  found.size = static_cast<std::uintmax_t>(about.st_size);
  found.is_value = S_ISREG(about.st_mode) && found.size <= most;
  if (!found.is_value) {
    return found;
  }
  found.value.resize(static_cast<std::size_t>(found.size));
  for (std::size_t done = 0; done < found.value.size();) {
    const auto got = ::read(file.get(), found.value.data() + done, found.value.size() - done);
    if (got <= 0) {
      return failed(got < 0 ? errno : EIO);
    }
    done += static_cast<std::size_t>(got);
  }
  return found;
}

Status read_failed(const fs::path& path, int error) {
  return {Fault::io, fmt::format("cannot read {}: {}", path.string(),
                                 std::error_code(error, std::generic_category()).message())};
}

Result<fs::path> FileStore::write_fresh(const fs::path& target, std::span<const std::byte> value,
                                        Kept kept) {
  int error = EEXIST;
  for (int tries = 0; tries < kMostNames && error == EEXIST; ++tries) {
    fs::path fresh = scratch();
    error = write_new(fresh, value, kept);
    if (error == 0) {
      remove_leftovers(fresh);
      return fresh;
    }
  }
  return write_failed(target, error);
}

void FileStore::remove_leftovers(const fs::path& fresh) {
  struct stat now = {};  // by the clock of the folder's machine, as the leftovers' times are
  if (swept_.exchange(true) || ::lstat(fresh.c_str(), &now) != 0) {
    return;
  }
  std::error_code code;
  for (fs::directory_iterator at(directory_, code), end; !code && at != end; at.increment(code)) {
    struct stat about = {};
    const bool ours = at->path().filename().string().starts_with(kFresh);
    if (ours && ::lstat(at->path().c_str(), &about) == 0 && S_ISREG(about.st_mode) &&
        now.st_mtime - about.st_mtime >= kLeftoverAge.count()) {
      std::error_code kept;  // another user's may stay
      fs::remove(at->path(), kept);
    }
  }
}

Status FileStore::put(std::string_view key, std::span<const std::byte> value, Deadline deadline) {
  if (auto fits = internal::check_store_entry(key, value); !fits) {
    return fits;
  }
  const auto target = place(key);
  const auto fresh = write_fresh(target, value, Kept::while_up);
  if (!fresh) {
    return fresh.status();
  }
  const int error = internal::again_while_stale(
      deadline, [&] { return std::rename(fresh->c_str(), target.c_str()) == 0 ? 0 : errno; });
  if (error == 0) {
    return {};
  }
  std::error_code code;
  fs::remove(*fresh, code);
  return write_failed(target, error);
}

Result<std::vector<std::byte>> FileStore::get(std::string_view key, Deadline deadline) {
  if (auto fits = internal::check_store_key(key); !fits) {
    return fits;
  }
  const auto source = place(key);
  internal::Backoff backoff(deadline);
  do {
    AtPlace found = read_place(source, kMostStoreValueBytes);
    if (!found.opened || found.error == ESTALE) {
      continue;  // not there yet, or replaced meanwhile
    }
    if (found.error != 0) {
      return read_failed(source, found.error);
    }
    if (!found.is_value) {
      return Status(Fault::malformed,
                    fmt::format("{} is no file, or holds {} bytes: at most {} are allowed",
                                source.string(), found.size, kMostStoreValueBytes));
    }
    return std::move(found.value);
  } while (backoff.wait());
  return internal::store_overdue(key, deadline);
}

Status FileStore::drop(std::string_view key, Deadline deadline) {
  if (auto fits = internal::check_store_key(key); !fits) {
    return fits;
  }
  const auto target = place(key);
  const int error = internal::again_while_stale(
      deadline, [&] { return std::remove(target.c_str()) == 0 || errno == ENOENT ? 0 : errno; });
  return error == 0 ? Status() : write_failed(target, error);
}

Result<std::optional<std::vector<std::byte>>> FileStore::look(std::string_view key,
                                                              std::size_t most, Deadline deadline) {
  if (auto fits = internal::check_store_key(key); !fits) {
    return fits;
  }
  const auto source = place(key);
  AtPlace found;
  const int error = internal::again_while_stale(deadline, [&] {
    found = read_place(source, most);
    return found.error;
  });
  std::error_code code;
  if (error == ENOENT && fs::is_directory(directory_, code)) {
    return std::optional<std::vector<std::byte>>();
  }
  const bool open_folder = ::access(directory_.c_str(), R_OK | X_OK) == 0;
  const bool none_of_ours = error == ELOOP || error == ENXIO || (error == EACCES && open_folder);
  if (error != 0 && !none_of_ours) {
    return read_failed(source, error);
  }
  if (!found.is_value) {
    return Status(Fault::malformed,
                  fmt::format("{} is no file of at most {} bytes", source.string(), most));
  }
  if (found.value.empty()) {
    return Status(Fault::malformed,
                  fmt::format("{} is empty: a crash may have left it so", source.string()));
  }
  return std::optional(std::move(found.value));
}

Result<std::vector<std::byte>> FileStore::claim(std::string_view key,
                                                std::span<const std::byte> value, std::size_t most,
                                                Deadline deadline) {
  if (auto fits = internal::check_store_claim(key, value, most); !fits) {
    return fits;
  }
  const auto target = place(key);
  for (int tries = 0; tries < internal::kMostClaims; ++tries) {
    // What is claimed is the memory of what was begun: it is on the disk before it has its name.
    const auto fresh = write_fresh(target, value, Kept::for_good);
    if (!fresh) {
      return fresh.status();
    }
    const int error = put_first(*fresh, target, deadline);
    if (error == 0 && !sync_folder(directory_)) {
      return write_failed(target, EIO);
    }
    // ENOENT: somebody took the new file for a leftover, as this process had been suspended.
    if (error != 0 && error != EEXIST && error != ENOENT) {
      return write_failed(target, error);
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
