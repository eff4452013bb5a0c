// A folder of its own for a test's files, and where real data lie.
#pragma once

#include <stdlib.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>

#include <doctest/doctest.h>

#include <sotto/base/error.h>

namespace sotto::test {

/// Made empty, for this user alone, and removed with everything in it.
class Scratch {
 public:
  Scratch() {
    auto pattern = (std::filesystem::temp_directory_path() / "sotto-test-XXXXXX").string();
    const char* const made = ::mkdtemp(pattern.data());
    REQUIRE(made != nullptr);
    path_ = made;
  }
  ~Scratch() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  const std::filesystem::path& path() const { return path_; }

  std::filesystem::path write(std::string_view name, std::string_view content) const {
    const auto file = path_ / name;
    std::ofstream(file, std::ios::binary | std::ios::trunc)
        .write(content.data(), static_cast<std::streamsize>(content.size()));
    return file;
  }

 private:
  std::filesystem::path path_;
};

/// The folder that SOTTO_DATA names, if it does.
inline std::optional<std::filesystem::path> real_data() {
  const char* folder = std::getenv("SOTTO_DATA");
  return folder == nullptr ? std::nullopt : std::optional<std::filesystem::path>(folder);
}

/// The message of the Error that `action` throws; empty, and a failed check, if it throws none.
template <typename Action>
std::string refusal(const Action& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  FAIL_CHECK("no sotto::Error was thrown");
  return {};
}

inline bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

}  // namespace sotto::test
