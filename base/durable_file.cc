#include <sotto/base/durable_file.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include <fmt/format.h>

#include <sotto/base/file_descriptor.h>
#include <sotto/base/input_file.h>
#include <sotto/base/write_all.h>

namespace sotto {
namespace {

Status io_fault(std::string_view what, const std::string& path) {
  return {Fault::io, fmt::format("{} {}: {}", what, path, std::strerror(errno))};
}

/// The permissions of a file that takes the place of `path`.
mode_t mode_for(const std::string& path, FileReaders readers) {
  constexpr mode_t kAll = 0644;
  constexpr mode_t kOwner = 0600;
  if (readers == FileReaders::owner) {
    return kOwner;
  }
  struct stat facts {};
  return ::lstat(path.c_str(), &facts) == 0 ? facts.st_mode & 0777U : kAll;
}

/// Makes `path`, which must not be there: never through a link that somebody put there.
Status write_and_sync(const std::string& path, std::span<const std::span<const std::byte>> parts,
                      mode_t mode) {
  const FileDescriptor file(
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode));
  if (!file) {
    return io_fault("cannot create", path);
  }
  for (const auto part : parts) {
    if (const int error = write_all(file.get(), part); error != 0) {
      errno = error;
      return io_fault("cannot write", path);
    }
  }
  return ::fsync(file.get()) == 0 ? Status() : io_fault("cannot sync", path);
}

std::string beside(const std::string& path) { return path + ".new"; }

std::string folder_of(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

/// Renaming over a device, a pipe or a link would replace it.
Status check_target(const std::string& path) {
  std::error_code code;
  const auto target = std::filesystem::symlink_status(path, code);
  if (std::filesystem::exists(target) && !std::filesystem::is_regular_file(target)) {
    return {Fault::io, fmt::format("'{}' is no regular file; name another", path)};
  }
  return {};
}

}  // namespace

Status check_replaceable(const std::string& path) {
  if (Status status = check_target(path); !status.ok()) {
    return status;
  }
  // A name that neither the user nor another process has.
  const std::string fresh = fmt::format("{}.{}", beside(path), ::getpid());
  const FileDescriptor file(
      ::open(fresh.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644));
  if (!file) {
    return io_fault("no file can be made in", folder_of(path));
  }
  ::unlink(fresh.c_str());
  return {};
}

Status write_durably(const std::string& path, std::span<const std::byte> bytes,
                     FileReaders readers) {
  return write_durably(path, std::span<const std::span<const std::byte>>(&bytes, 1), readers);
}

Status write_durably(const std::string& path, std::span<const std::span<const std::byte>> parts,
                     FileReaders readers) {
  if (Status status = check_target(path); !status.ok()) {
    return status;
  }
  const std::string fresh = beside(path);
  ::unlink(fresh.c_str());  // what a process left that was killed while it wrote
  if (Status status = write_and_sync(fresh, parts, mode_for(path, readers)); !status.ok()) {
    ::unlink(fresh.c_str());
    return status;
  }
  if (::rename(fresh.c_str(), path.c_str()) != 0) {
    Status status = io_fault("cannot rename to", path);
    ::unlink(fresh.c_str());
    return status;
  }
  const std::string folder = folder_of(path);
  const FileDescriptor directory(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory || ::fsync(directory.get()) != 0) {
    return io_fault("cannot sync", folder);
  }
  return {};
}

Result<std::vector<std::byte>> read_file(const std::string& path, std::size_t max_bytes) {
  auto bytes = read_bytes(path, max_bytes);
  return bytes.ok() ? std::move(bytes) : bytes.status().with_context("cannot read " + path);
}

}  // namespace sotto
