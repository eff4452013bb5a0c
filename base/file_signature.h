// Which format a file has that is no text: by its first bytes, for readers of text to say what they
// were given. Pure functions; thread-safe.
#pragma once

#include <optional>
#include <string_view>

namespace sotto {

/// A format that is known by the bytes a file begins with, and none that sotto reads as text.
struct FileSignature {
  std::string_view format;  ///< "an Excel workbook (xlsx)"
  std::string_view advice;  ///< what would do: "save it as CSV"
  bool packed = false;      ///< what is inside may be a text
};

/// The format of a file that begins with these bytes, a kilobyte or all of it; none for text and
/// for what is unknown.
std::optional<FileSignature> find_signature(std::string_view head);

}  // namespace sotto
