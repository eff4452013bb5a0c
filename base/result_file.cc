#include <sotto/base/result_file.h>

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <span>

#include <fmt/format.h>

#include <sotto/base/durable_file.h>
#include <sotto/base/error.h>

namespace sotto {
namespace {

/// Whether something is at `path` that renaming a file over it would replace.
bool stays_in_place(const std::string& path) {
  std::error_code code;
  const auto target = std::filesystem::symlink_status(path, code);
  return std::filesystem::exists(target) && !std::filesystem::is_regular_file(target);
}

Status written_into(const std::string& path, std::string_view text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  return file ? Status() : Status(Fault::io, "it could not be written");
}

}  // namespace

void check_writable(std::string_view option, const std::string& path) {
  if (path.empty()) {
    return;
  }
  if (path == "-") {
    refuse(option, path, "standard output is for the result as JSON; name a file");
  }
  if (std::filesystem::is_directory(path)) {
    refuse(option, path, "it is a folder; name a file");
  }
  if (stays_in_place(path)) {
    // Opening a pipe would already tell its reader something.
    if (std::filesystem::exists(path) && ::access(path.c_str(), W_OK) != 0) {
      refuse(option, path, "it cannot be written");
    }
    return;
  }
  if (const Status status = check_replaceable(path); !status.ok()) {
    refuse(option, path, status.message());
  }
}

void write_result_file(std::string_view option, const std::string& path, std::string_view text) {
  const Status status = stays_in_place(path) ? written_into(path, text)
                                             : write_durably(path, std::as_bytes(std::span(text)));
  if (!status.ok()) {
    throw Shortage(option, fmt::format("'{}': {}", path, status.message()));
  }
}

}  // namespace sotto
