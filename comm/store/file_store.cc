// A store in a directory: one file a key. A value is written beside its place and renamed into it,
// so that a reader sees the whole value or none.
#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <system_error>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/base/file_descriptor.h>
#include <sotto/base/write_all.h>
#include <sotto/comm/stores.h>

#include "../internal/backoff.h"
#include "../internal/store_key.h"

namespace sotto {
namespace {

namespace fs = std::filesystem;

class FileStore final : public Store {
 public:
  explicit FileStore(fs::path directory) : directory_(std::move(directory)) {}

  Status set(std::string_view key, std::span<const std::byte> value) override;
  Result<std::vector<std::byte>> get(std::string_view key, Deadline deadline) override;
  Status remove(std::string_view key) override;

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

Status FileStore::set(std::string_view key, std::span<const std::byte> value) {
  if (auto fits = internal::check_store_entry(key, value); !fits) {
    return fits;
  }
  const auto target = place(key);
  const auto fresh = scratch();
  constexpr mode_t kMode = 0666;  // nodes of other users may share the directory
  FileDescriptor file(
      ::open(fresh.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, kMode));
  std::error_code code;
  int error = file ? write_all(file.get(), value) : errno;
  if (file && !file.close() && error == 0) {
    error = errno;
  }
  if (error != 0) {
    fs::remove(fresh, code);
    return write_failed(target, std::error_code(error, std::generic_category()));
  }
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
