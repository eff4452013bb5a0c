// What a file has in it.
#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace sotto::test {

/// All bytes of a file; none where it cannot be read.
inline std::string text_of_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace sotto::test
