// Files in gzip's format, for readers that take them.
#pragma once

#include <zlib.h>

#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

#include <doctest/doctest.h>

#include "support/scratch.h"

namespace sotto::test {

/// The bytes of a gzip file that holds `content`.
inline std::string gzip(std::string_view content) {
  const Scratch scratch;
  const auto file = scratch.path() / "packed";
  gzFile out = gzopen(file.c_str(), "wb");
  REQUIRE(out != nullptr);
  if (!content.empty()) {
    REQUIRE(gzwrite(out, content.data(), static_cast<unsigned>(content.size())) > 0);
  }
  REQUIRE(gzclose(out) == Z_OK);
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

}  // namespace sotto::test
