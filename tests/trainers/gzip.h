// Files in gzip's format, for readers that take them.
#pragma once

#include <zlib.h>

#include <string>
#include <string_view>

#include <doctest/doctest.h>

#include "support/scratch.h"
#include "support/text_of_file.h"

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
  return text_of_file(file);
}

}  // namespace sotto::test
