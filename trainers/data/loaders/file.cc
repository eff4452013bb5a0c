#include "file.h"

#include <system_error>
#include <utility>

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

std::string read_file(const std::filesystem::path& path, std::uint64_t max_bytes) {
  auto content = read_input(path.string(), max_bytes);
  if (!content.ok()) {
    refuse_file(path, "", content.status().message());
  }
  return std::move(*content);
}

}  // namespace sotto
