#include "file.h"

#include <system_error>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/base/input_file.h>

namespace sotto {

void refuse_file(const std::filesystem::path& path, std::string_view place,
                 std::string_view reason) {
  throw Error(place.empty() ? fmt::format("{}: {}", path.string(), reason)
                            : fmt::format("{}: {}: {}", path.string(), place, reason));
}

void require_folder(const std::filesystem::path& path, std::string_view expected) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (!std::filesystem::is_directory(status)) {
    refuse_file(path, "",
                fmt::format("{}; {}",
                            std::filesystem::exists(status) ? "a folder is needed, this is none"
                                                            : "there is no such folder",
                            expected));
  }
}

std::uint64_t regular_file_size(const std::filesystem::path& path) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (!std::filesystem::exists(status)) {
    refuse_file(path, "", "there is no such file");
  }
  // A pipe or a device could keep us waiting for ever.
  if (!std::filesystem::is_regular_file(status)) {
    refuse_file(path, "", "a regular file is expected");
  }
  const std::uint64_t size = std::filesystem::file_size(path, error);
  if (error) {
    refuse_file(path, "", error.message());
  }
  return size;
}

std::string read_file(const std::filesystem::path& path, std::uint64_t max_bytes) {
  auto content = read_input(path.string(), max_bytes);
  if (!content.ok()) {
    refuse_file(path, "", content.status().message());
  }
  return std::move(*content);
}

}  // namespace sotto
