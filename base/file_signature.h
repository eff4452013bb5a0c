// Recognizes the format of a file that is not text by its first bytes, so that a reader of text can
// name it. Pure functions; thread-safe.
#pragma once

#include <optional>
#include <string_view>

namespace sotto {

/// A format that is known by the bytes a file begins with, and none that sotto reads as text.
struct FileSignature {
  std::string_view format;  ///< "an Excel workbook (xlsx)"
  std::string_view advice;  ///< what would do: "save it as CSV"
  bool packed = false;      ///< the format packs files, which may be text
};

/// The format of a file that begins with these bytes, a kilobyte or all of it; none for text and
/// for an unknown format.
std::optional<FileSignature> find_signature(std::string_view head);

}  // namespace sotto
